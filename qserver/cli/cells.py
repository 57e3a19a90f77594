"""Formats the JSON values of an answer as cells, as psql would print them.

The column's type decides the format, as it did on the server: `t` and `f`, timestamps with a space,
bytes as hexadecimal, arrays in braces. NULL has no text here; each layout shows it in its own way.

Text for a terminal is escaped first: a value may hold escape sequences, and text that someone else
stored must not move the reader's cursor.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from qserver.values.text_output import text_of_double, text_of_real

Writer = Callable[[Any], str]

_NUMBERS: Final = frozenset(
    {
        *("smallint", "integer", "bigint", "real", "double precision", "numeric"),
        *("oid", "xid", "xid8", "cid", "money"),
    }
)
# Control characters except the line feed, line and paragraph separators, direction changes.
_HARMFUL: Final = re.compile(
    r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_NAMED: Final = {"\t": r"\t", "\r": r"\r", "\f": r"\f", "\v": r"\v", "\b": r"\b"}
_NEEDS_QUOTES: Final = re.compile(r'[\s{},"\\]|\A\Z|\A[nN][uU][lL][lL]\Z')


def is_number(sql_type: str) -> bool:
    return sql_type.partition("(")[0] in _NUMBERS


def writers_of(columns: Sequence[str], types: Sequence[str]) -> list[Writer]:
    """The functions that format the values of the columns of a result, except NULL."""
    return [
        _plan if column == ("QUERY PLAN", "json") else writer_of(column[1])
        for column in zip(columns, types, strict=True)
    ]


def writer_of(sql_type: str) -> Writer:
    """The function that formats the values of a column, except NULL."""
    if sql_type.endswith("[]"):
        return _array_writer(writer_of(sql_type.removesuffix("[]")))
    return _WRITERS.get(sql_type.partition("(")[0], _plain)


def harmless(text: str) -> str:
    """The text with everything escaped that a terminal would execute; line feeds stay."""
    return _HARMFUL.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    character = found.group()
    number = ord(character)
    return _NAMED.get(character) or (f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}")


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return value
    return str(value) if type(value) in (int, float) else as_json(value)


def as_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _plan(value: Any) -> str:
    """As EXPLAIN (FORMAT JSON) writes it, which an answer holds as a value."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def _jsonb(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _boolean(value: Any) -> str:
    return {True: "t", False: "f"}.get(value, str(value))


def _double(value: Any) -> str:
    return value if isinstance(value, str) else text_of_double(float(value))


def _real(value: Any) -> str:
    return value if isinstance(value, str) else text_of_real(float(value))


def _bytes(value: Any) -> str:
    try:
        return "\\x" + base64.b64decode(value, validate=True).hex()
    except (binascii.Error, TypeError, ValueError):
        return str(value)


def _timestamp(value: Any) -> str:
    return str(value).replace("T", " ", 1)


def _timestamp_with_zone(value: Any) -> str:
    text = str(value).replace("T", " ", 1)
    return text.removesuffix("Z") + "+00" if text.endswith("Z") else text


def _array_writer(element: Writer) -> Writer:
    def write(value: Any) -> str:
        if not isinstance(value, list):
            return _plain(value)
        return "{" + ",".join(map(one, value)) + "}"

    def one(value: Any) -> str:
        if value is None:
            return "NULL"
        if isinstance(value, list):
            return write(value)
        text = element(value)
        if _NEEDS_QUOTES.search(text):
            text = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return text

    return write


_WRITERS: Final[dict[str, Writer]] = {
    "boolean": _boolean,
    "real": _real,
    "double precision": _double,
    "bytea": _bytes,
    "timestamp": _timestamp,
    "timestamp without time zone": _timestamp,
    "timestamptz": _timestamp_with_zone,
    "timestamp with time zone": _timestamp_with_zone,
    "json": as_json,
    "jsonb": _jsonb,
}
