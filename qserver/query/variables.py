"""SHOW and SET: the settings that clients of PostgreSQL ask for or make.

A request has no session, so nothing that is SET lasts. SET is accepted if it states the present
value or changes nothing that qserver has, because tools send it unasked; it is refused if it would
change the meaning of statements.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from qserver.errors import FeatureNotSupported, UndefinedObject
from qserver.sql import Rows

VARIABLES: Final[Mapping[str, tuple[str, str]]] = {
    "application_name": ("", "Name of the client."),
    "bytea_output": ("hex", "How bytea is written."),
    "client_encoding": ("UTF8", "Encoding of texts that clients send and get."),
    "client_min_messages": ("notice", "Which messages clients get."),
    "datestyle": ("ISO, MDY", "How dates are written, and read where they are ambiguous."),
    "default_transaction_isolation": ("serializable", "Isolation of every transaction."),
    "default_transaction_read_only": ("off", "Whether transactions may only read."),
    "extra_float_digits": ("1", "Digits of floats: as many as needed to read them again."),
    "integer_datetimes": ("on", "Whether times are counted in microseconds."),
    "intervalstyle": ("postgres", "How intervals are written."),
    "max_identifier_length": ("63", "Bytes of the longest name."),
    "search_path": ("public", "Where names without a schema are looked for."),
    "server_encoding": ("UTF8", "Encoding of stored texts."),
    "server_version": ("15.0", "The release of PostgreSQL whose dialect this is."),
    "server_version_num": ("150000", "The same as a number."),
    "standard_conforming_strings": ("on", "Whether a backslash in a text is only a backslash."),
    "statement_timeout": ("0", "Milliseconds that a statement may take; the request says."),
    "timezone": ("UTC", "The zone in which times with a zone are written."),
    "transaction_isolation": ("serializable", "Isolation of this transaction."),
    "transaction_read_only": ("off", "Whether this transaction may only read."),
}
ALIASES: Final = {"time zone": "timezone", "names": "client_encoding"}
WRITTEN_AS: Final = {"datestyle": "DateStyle", "timezone": "TimeZone"}
FREE: Final = frozenset({"application_name", "client_min_messages"})
"""May be set to anything, because nothing depends on them."""

HARMLESS_PREFIXES: Final = ("enable_", "log_", "work_mem", "max_parallel", "jit", "lock_timeout")


def show_variable(name: str) -> tuple[tuple[str, ...], Rows]:
    key = ALIASES.get(name.lower(), name.lower())
    if key == "all":
        rows = [
            (WRITTEN_AS.get(each, each), value, text) for each, (value, text) in VARIABLES.items()
        ]
        return ("name", "setting", "description"), rows
    if key not in VARIABLES:
        raise _unknown(name)
    return (WRITTEN_AS.get(key, key),), [(VARIABLES[key][0],)]


def set_variable(name: str, value: str | None) -> None:
    """Accept a value that changes nothing; refuse any other."""
    key = ALIASES.get(name.lower(), name.lower())
    if key == "all" or key.startswith(HARMLESS_PREFIXES) or key in FREE:
        return
    if key not in VARIABLES:
        raise _unknown(name)
    if value is None or _same(key, value):
        return
    raise FeatureNotSupported(
        f'parameter "{key}" cannot be set to {value!r}: it is {VARIABLES[key][0]!r} for everyone',
        hint=HINTS.get(key),
    )


HINTS: Final = {
    "statement_timeout": "Give the request a timeout_ms.",
    "search_path": "Write names in other schemas with theirs.",
}


def _same(key: str, value: str) -> bool:
    wanted = value.strip().strip("'\"").lower()
    if wanted == "default":
        return True
    current = VARIABLES[key][0].lower()
    if key == "client_encoding":
        return wanted.replace("-", "") in ("utf8", "unicode")
    if key == "search_path":
        searched = [each.strip().strip("'\"") for each in wanted.split(",")]
        return [each for each in searched if each not in ("$user", "pg_catalog")] == ["public"]
    if key == "datestyle":
        return wanted.replace(" ", "") in ("iso", "iso,mdy", "iso,us", "iso,noneuropean", "mdy,iso")
    if key == "extra_float_digits":
        return wanted in ("1", "2", "3")
    if key == "statement_timeout":
        return re.fullmatch(r"0+\s*(us|ms|s|min|h|d)?", wanted) is not None
    if key == "timezone":
        return wanted in ("utc", "gmt", "0", "etc/utc", "zulu", "+00", "+00:00")
    if current in ("on", "off"):
        words = {"on": ("on", "true", "yes", "1"), "off": ("off", "false", "no", "0")}
        return wanted in words[current]
    return wanted == current


def _unknown(name: str) -> UndefinedObject:
    return UndefinedObject(f'unrecognized configuration parameter "{name}"')
