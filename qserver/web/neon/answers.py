"""What the driver reads: fields with oids, rows of texts, errors with PostgreSQL's fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from qserver.errors import NotFound, QserverError, Unauthorized
from qserver.pgwire.problems import code_of
from qserver.pgwire.tags import finished
from qserver.pgwire.types import modifier_of, oid_of, size_of
from qserver.query.results import Result
from qserver.values.text_output import shown_function
from qserver.values.types import Kind, SqlType
from qserver.web.description.neon_shapes import NeonError, NeonField

WRONG_PASSWORD: Final = "28P01"
_AS_JSON: Final = frozenset(
    {Kind.BOOLEAN, Kind.SMALLINT, Kind.INTEGER, Kind.REAL, Kind.DOUBLE, Kind.JSON, Kind.JSONB}
)
"""Whose values are JSON values where the client does not want texts."""
_COUNTED: Final = frozenset({"SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "COPY"})

Shown = Callable[[Any], Any]


class Form(msgspec.Struct, frozen=True):
    """How rows are written."""

    raw: bool
    """Every value is a text."""
    arrays: bool
    """Rows are arrays, not objects."""


@lru_cache(maxsize=1024)
def fields_json(columns: tuple[str, ...], types: tuple[SqlType, ...]) -> bytes:
    return msgspec.json.encode(
        [
            NeonField(name, oid_of(each), 0, 0, size_of(each), modifier_of(each), "text")
            for name, each in zip(columns, types, strict=True)
        ]
    )


@lru_cache(maxsize=4096)
def value_writer(sql_type: SqlType, raw: bool) -> Shown:
    """Return what makes a JSON value of a value, except NULL."""
    shown = shown_function(sql_type)
    if raw:
        return shown
    if sql_type.element is not None:
        inner = value_writer(sql_type.element, raw)
        return lambda value: _nested(value, inner)
    if sql_type.kind in (Kind.JSON, Kind.JSONB):
        return lambda value: msgspec.Raw(shown(value).encode())
    if sql_type.kind in (Kind.REAL, Kind.DOUBLE):
        return lambda value: value if abs(value) < float("inf") else shown(value)
    return (lambda value: value) if sql_type.kind in _AS_JSON else shown


def _nested(value: Any, inner: Shown) -> Any:
    if value is None:
        return None
    if isinstance(value, list | tuple):
        return [_nested(each, inner) for each in value]
    return inner(value)


class RowsWriter:
    """Writes the rows of one list of columns."""

    def __init__(self, columns: tuple[str, ...], types: tuple[SqlType, ...], form: Form) -> None:
        self._writers = [value_writer(each, form.raw) for each in types]
        self._columns = None if form.arrays else columns

    def write(self, rows: Sequence[Any]) -> bytes:
        """Rows as JSON, with commas between them, without brackets."""
        return msgspec.json.encode([self._row(row) for row in rows])[1:-1]

    def _row(self, row: Sequence[Any]) -> Any:
        values = [
            None if value is None else write(value)
            for value, write in zip(row, self._writers, strict=True)
        ]
        return values if self._columns is None else dict(zip(self._columns, values, strict=True))


def result_parts(
    result: Result, tag: str, form: Form, slices: Sequence[Sequence[Any]]
) -> Iterator[bytes]:
    """The object of one result, in parts, each made when it is wanted."""
    whole = finished(result.tag or tag, len(result.rows), result.affected_rows)
    command, count = whole.partition(" ")[0], whole.rpartition(" ")[2]
    rows_count = count.encode() if command in _COUNTED and count.isdigit() else b"null"
    yield b'{"command":%b,"rowCount":%b,"rowAsArray":%b,"fields":%b,"rows":[' % (
        msgspec.json.encode(command),
        rows_count,
        b"true" if form.arrays else b"false",
        fields_json(result.columns, result.types),
    )
    writer = RowsWriter(result.columns, result.types, form)
    for number, rows in enumerate(slices):
        yield (b"," if number else b"") + writer.write(rows)
    yield b"]}"


def error_json(error: QserverError, database: str | None) -> bytes:
    """An error of a request for a database. Clients look for names where PostgreSQL has them."""
    message = error.message
    if isinstance(error, NotFound) and database is not None:
        message = f'database "{database}" does not exist'
    code = WRONG_PASSWORD if isinstance(error, Unauthorized) else code_of(error)
    told = NeonError(
        message=message,
        code=code,
        severity="ERROR",
        detail=error.detail,
        hint=error.hint,
        position=None if error.position is None else str(error.position),
        internal_position=None,
        internal_query=None,
        where=None,
        schema=None if error.table is None else "public",
        table=error.table,
        column=error.column,
        data_type=None,
        constraint=error.constraint,
        file=None,
        line=None,
        routine=None,
    )
    return msgspec.json.encode(told)
