"""Reads rows from text, as PostgreSQL's record_in: `(1,"a b",)`.

nothing between commas     NULL
""                         a quote in quotes; outside of them, nothing
\\x                         the character x, whatever it is
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from qserver.errors import InvalidTextRepresentation, QserverError
from qserver.values.records import Record

Read = Callable[[str], Any]

_BLANKS: Final = " \t\n\v\f\r"
_FIELD: Final = re.compile(r'(?:[^",()\\]|\\.|"(?:[^"\\]|\\.|"")*")*', re.DOTALL)
_PART: Final = re.compile(r'"((?:[^"\\]|\\.|"")*)"|(\\.|[^"\\]+)', re.DOTALL)
_ESCAPED: Final = re.compile(r'\\(.)|"(")', re.DOTALL)


def record_reader(fields: Sequence[Read]) -> Callable[[str], Record]:
    """Return the function that reads a row; each of `fields` reads one of its values."""

    def record_from_text(text: str) -> Record:
        given = list(_fields(text)) if fields else _nothing(text)
        if len(given) < len(fields):
            raise _malformed(text, "Too few columns.")
        if len(given) > len(fields):
            raise _malformed(text, "Too many columns.")
        values = [
            None if each is None else read(each) for each, read in zip(given, fields, strict=True)
        ]
        return Record(values)

    return record_from_text


def _nothing(text: str) -> list[str | None]:
    """Read the row of a relation without columns."""
    return [] if text.strip(_BLANKS) == "()" else list(_fields(text))


def _fields(text: str) -> Iterator[str | None]:
    at = len(text) - len(text.lstrip(_BLANKS))
    if text[at : at + 1] != "(":
        raise _malformed(text, "Missing left parenthesis.")
    end = ""
    while end != ")":
        found = _FIELD.match(text, at + 1)
        assert found is not None, "it matches nothing, too"
        at = found.end()
        end = text[at : at + 1]
        if end not in (",", ")"):
            raise _malformed(text, "Unexpected end of input.")
        yield _plain(found[0]) if found[0] else None
    if text[at + 1 :].strip(_BLANKS):
        raise _malformed(text, "Junk after right parenthesis.")


def _plain(field: str) -> str:
    """Return what a field says, without its quotes and backslashes."""
    if '"' not in field and "\\" not in field:
        return field
    return "".join(
        _ESCAPED.sub(r"\1\2", part[1] if part[1] is not None else part[2])
        for part in _PART.finditer(field)
    )


def _malformed(text: str, detail: str) -> QserverError:
    return InvalidTextRepresentation(f'malformed record literal: "{text}"', detail=detail)
