"""Encodes rows as a stream of Apache Arrow, a column at a time.

    schema ─► record batch … record batch ─► end of the stream

A part of rows is one record batch: its columns are made of the rows' values by pyarrow, in C. The
schema comes first and cannot change, so the type of the column alone decides (docs/http.md has the
table), never a value. A value that its Arrow type cannot hold ends the stream: it is cut off.

pyarrow is an extra, qserver[arrow]. It is imported when the first client asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any, Final

import trio

from qserver.errors import NotAcceptable, NumericValueOutOfRange
from qserver.sql import Rows
from qserver.values.text_output import text_function
from qserver.values.types import Kind, SqlType, is_vector
from qserver.web.statements.json_values import converter
from qserver.web.statements.rows import unique_names

ARROW: Final = b"application/vnd.apache.arrow.stream"
END: Final = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""The end of a stream, as the format has it."""
TYPE_FIELD: Final = b"qserver:type"
"""Names the SQL type in the metadata of a column."""
DECIMAL_DIGITS_MAX, LONG_DECIMAL_DIGITS_MAX = 38, 76
"""Digits of Arrow's decimals of 128 and of 256 bits; with more a NUMERIC is a text."""

Convert = Callable[[Any], Any]


async def require_arrow() -> None:
    """Import pyarrow, which takes a while, or tell the client what it may ask for instead."""
    if find_spec("pyarrow") is None:
        raise NotAcceptable(
            "this server cannot answer in Arrow",
            detail="The package pyarrow is not installed there.",
            hint="Ask for application/json, text/csv or application/x-ndjson; whoever runs the"
            " server can install qserver[arrow].",
        )
    await trio.to_thread.run_sync(_import)


def _import() -> None:
    import pyarrow

    pyarrow.array([])  # looks for pandas, whose import takes longer still


class ArrowEncoder:
    """Encodes the rows of one list of columns and types."""

    def __init__(self, columns: tuple[str, ...], types: tuple[SqlType, ...]) -> None:
        import pyarrow

        self._arrow = pyarrow
        self._columns = [_column(pyarrow, each) for each in types]
        fields = [
            pyarrow.field(name, arrow, metadata={TYPE_FIELD: str(sql_type)})
            for name, sql_type, (arrow, _) in zip(
                unique_names(columns), types, self._columns, strict=True
            )
        ]
        self._schema = pyarrow.schema(fields)
        self.head: bytes = self._schema.serialize().to_pybytes()

    def batch(self, rows: Rows) -> bytes:
        arrays = [
            self._array(values, *column)
            for values, column in zip(zip(*rows, strict=True), self._columns, strict=True)
        ]
        batch = self._arrow.record_batch(arrays, schema=self._schema)
        encoded: bytes = batch.serialize().to_pybytes()
        return encoded

    def _array(self, values: Sequence[Any], arrow: Any, convert: Convert | None) -> Any:
        if convert is not None:
            values = [None if value is None else convert(value) for value in values]
        try:
            return self._arrow.array(values, arrow)
        except (self._arrow.ArrowException, OverflowError, TypeError) as error:
            raise NumericValueOutOfRange(
                f"a value does not fit into Arrow's {arrow}: {error}",
                hint="Have it as a text: …::text.",
            ) from None


def _column(arrow: Any, sql_type: SqlType) -> tuple[Any, Convert | None]:
    """The Arrow type of a column, and what makes its values fit, if they do not."""
    if sql_type.element is not None and not is_vector(sql_type):
        element, convert = _column(arrow, sql_type.element)
        return arrow.list_(element), None if convert is None else _of_array(convert)
    if sql_type.kind in _PLAIN:
        name, given = _PLAIN[sql_type.kind]
        return getattr(arrow, name)(*given), None
    if sql_type.kind is Kind.NUMERIC:
        return _numeric(arrow, sql_type)
    if sql_type.kind in _AS_JSON:
        return arrow.string(), converter(sql_type)
    return arrow.string(), text_function(sql_type)


def _numeric(arrow: Any, sql_type: SqlType) -> tuple[Any, Convert | None]:
    """A decimal where the type says how many digits there are, else a text with all of them."""
    digits, scale = sql_type.precision, sql_type.scale or 0
    if digits is None or digits > LONG_DECIMAL_DIGITS_MAX or not 0 <= scale <= digits:
        return arrow.string(), text_function(sql_type)
    make = arrow.decimal128 if digits <= DECIMAL_DIGITS_MAX else arrow.decimal256
    return make(digits, scale), None


def _of_array(convert: Convert) -> Convert:
    def converted(values: Sequence[Any]) -> list[Any]:
        return [None if value is None else convert(value) for value in values]

    return converted


_PLAIN: Final[dict[Kind, tuple[str, tuple[str, ...]]]] = {
    Kind.BOOLEAN: ("bool_", ()),
    Kind.SMALLINT: ("int16", ()),
    Kind.INTEGER: ("int32", ()),
    Kind.BIGINT: ("int64", ()),
    Kind.OID: ("int64", ()),
    Kind.REAL: ("float32", ()),
    Kind.DOUBLE: ("float64", ()),
    Kind.TEXT: ("string", ()),
    Kind.VARCHAR: ("string", ()),
    Kind.NAME: ("string", ()),
    Kind.DATE: ("date32", ()),
    Kind.TIME: ("time64", ("us",)),
    Kind.TIMESTAMP: ("timestamp", ("us",)),
    Kind.TIMESTAMPTZ: ("timestamp", ("us", "UTC")),
    Kind.BYTEA: ("binary", ()),
}
"""By kind: the function of pyarrow that makes the type, and its arguments."""
_AS_JSON: Final = frozenset({Kind.INTERVAL, Kind.CHAR, Kind.RECORD})
"""What JSON has as a text that is not always the one that PostgreSQL prints."""
