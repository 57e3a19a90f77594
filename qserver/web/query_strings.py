"""Parses the query string of a URL strictly: ambiguous input is an error, never a guess.

    sql=SELECT+1&max_rows=5 ─► {"sql": "SELECT 1", "max_rows": "5"} ─► `whole_number`, or text

The library's `parse_qsl` keeps a bad escape as text, and a dict of its pairs drops all but the last
of several values. Both would run another request than the one that was sent.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final
from urllib.parse import unquote_to_bytes

from qserver.errors import InvalidRequest

BIGINT_MAX: Final = 2**63 - 1
_DIGITS_MAX: Final = len(str(BIGINT_MAX))
_BAD_ESCAPE: Final = re.compile(rb"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
_WHOLE: Final = re.compile(r"-?[0-9]+", re.ASCII)


def read_query_string(query: bytes, known: Collection[str]) -> dict[str, str]:
    """The parameters by name: each is one of `known`, and appears at most once."""
    return {name: values[0] for name, values in read_query_lists(query, known).items()}


def read_query_lists(
    query: bytes, known: Collection[str], several: Collection[str] = ()
) -> dict[str, list[str]]:
    """The values of parameters by name; only those of `several` appear more than once."""
    given: dict[str, list[str]] = {}
    for part in query.split(b"&"):
        if not part:
            continue
        raw_name, _, raw_value = part.partition(b"=")
        name = _decoded(raw_name)
        if name not in known:
            told = f"Known are: {', '.join(known)}." if known else "There are none here."
            raise InvalidRequest(f"unknown parameter {name[:100]!r}", hint=told)
        if name in given and name not in several:
            raise InvalidRequest(f"the parameter {name} is there more than once")
        given.setdefault(name, []).append(_decoded(raw_value))
    return given


def names_in(query: bytes) -> list[str]:
    """The names of all parameters, of a query string that may have anything in it."""
    parts = (part.partition(b"=")[0] for part in query.split(b"&"))
    return [unquote_to_bytes(name.replace(b"+", b" ")).decode("latin-1") for name in parts]


def whole_number(name: str, text: str, least: int = -BIGINT_MAX, most: int = BIGINT_MAX) -> int:
    """A parameter that is a whole number, from `least` to `most`."""
    if _WHOLE.fullmatch(text) is None or len(text.lstrip("-")) > _DIGITS_MAX:
        raise InvalidRequest(f"{name} is a whole number, not {text[:100]!r}")
    number = int(text)
    if not least <= number <= most:
        raise InvalidRequest(f"{name} is {least} to {most}, not {number}")
    return number


def _decoded(raw: bytes) -> str:
    """Text without its escapes."""
    if not raw.isascii():
        raise _unreadable(f"{raw[:100]!r} is not ASCII; write other characters as %XX, in UTF-8")
    bad = _BAD_ESCAPE.search(raw)
    if bad is not None:
        raise _unreadable(f"{bad[0].decode()!r} is no escape; write % itself as %25")
    if b"%00" in raw:
        raise _unreadable("a value has a NUL character, which no text can hold")
    try:
        return unquote_to_bytes(raw.replace(b"+", b" ")).decode()
    except UnicodeDecodeError:
        raise _unreadable("a value is not UTF-8") from None


def _unreadable(why: str) -> InvalidRequest:
    return InvalidRequest(f"the query string cannot be read: {why}")
