"""Encodes rows as CSV (RFC 4180), a column at a time.

    id,name,tags                     the names of the columns
    1,"say ""hi"" ","{a,b}"          each value as the text that its type prints, and reads again
    2,"",                            an empty text is two quotes, NULL is nothing

Only cells that need quotes have them. `bulk_rows` reads exactly what is written here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final

from qserver.sql import Rows
from qserver.values.text_output import text_function
from qserver.values.types import Kind, SqlType
from qserver.web.statements.rows import unique_names

LINE_END: Final = b"\r\n"
_NEEDS_QUOTES: Final = re.compile(r'[",\r\n]|\A\Z')
_PLAIN: Final = frozenset(
    (
        Kind.BOOLEAN,
        Kind.SMALLINT,
        Kind.INTEGER,
        Kind.BIGINT,
        Kind.REAL,
        Kind.DOUBLE,
        Kind.NUMERIC,
        Kind.DATE,
        Kind.TIMESTAMP,
        Kind.TIMESTAMPTZ,
        Kind.TIME,
        Kind.TIMETZ,
        Kind.UUID,
        Kind.BYTEA,
    )
)
"""Types whose texts never need quotes."""


class CsvEncoder:
    """Encodes the rows of one list of columns and types."""

    def __init__(self, columns: tuple[str, ...], types: tuple[SqlType, ...]) -> None:
        self.header = _line(map(_quoted, unique_names(columns))) if columns else b""
        self._cells = [_cell_function(each) for each in types]

    def lines(self, rows: Rows) -> bytes:
        columns = [
            ["" if value is None else cell(value) for value in column]
            for cell, column in zip(self._cells, zip(*rows, strict=True), strict=True)
        ]
        return b"".join(map(_line, zip(*columns, strict=True)))


@lru_cache(maxsize=1024)
def _cell_function(sql_type: SqlType) -> Callable[[Any], str]:
    """The function from a value, not NULL, to its cell."""
    text = text_function(sql_type)
    if sql_type.element is None and sql_type.kind in _PLAIN:
        return text
    return lambda value: _quoted(text(value))


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if _NEEDS_QUOTES.search(text) else text


def _line(cells: Iterable[str]) -> bytes:
    return ",".join(cells).encode() + LINE_END
