"""JSON as rows of columns that the statement names: json_to_recordset('…') AS t(a int, b text).

The columns are known only with the statement, so these functions are in no table: `record_function`
creates one for a list of columns. A member is read as text of the column's type, a JSON array as an
array, and JSON as it is; a missing member is NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from qserver.errors import InvalidParameterValue, InvalidTextRepresentation
from qserver.functions.registry import Function, TableFunction
from qserver.values.arrays import is_rectangular
from qserver.values.casts import assignment_function, reader
from qserver.values.json_input import jsonb_from_text
from qserver.values.json_parts import elements, kind_of, member, scalar_text
from qserver.values.records import Record
from qserver.values.types import JSON, JSONB, Kind, SqlType

Columns = tuple[tuple[str, SqlType], ...]
RowIterable = Iterable[tuple[Any, ...]]
RowMaker = Callable[..., tuple[Any, ...]]
"""From the text of a JSON object, and an optional row with defaults."""

RECORD_FUNCTIONS: Final = frozenset(
    {"json_to_record", "jsonb_to_record", "json_to_recordset", "jsonb_to_recordset"}
)
POPULATING: Final = frozenset(
    {
        "json_populate_record",
        "jsonb_populate_record",
        "json_populate_recordset",
        "jsonb_populate_recordset",
    }
)
"""Their first argument is a row with defaults for missing members."""


def record_function(name: str, columns: Columns, base: SqlType | None = None) -> TableFunction:
    """Return the function for rows of these columns; `base`: the type of a given row."""
    own = JSON if name.startswith("json_") else JSONB
    row = _row_maker(columns)
    if base is not None:
        return _populating(name, own, base, columns, row)
    assert name in RECORD_FUNCTIONS, f"{name} makes no records"
    if name.endswith("recordset"):
        return TableFunction(name, (own,), columns, _rows_maker(name, row))

    def one_row(value: Any) -> RowIterable:
        return [(None,) * len(columns) if value is None else row(str(value))]

    return TableFunction(name, (own,), columns, one_row, strict=False)


def populate_function(name: str, base: SqlType) -> Function:
    row = _row_maker(base.columns)

    def populated(given: tuple[Any, ...] | None, value: Any) -> Record | None:
        if value is None:
            return None if given is None else Record(given)
        return Record(row(str(value), given))

    own = JSON if name.startswith("json_") else JSONB
    return Function(name, (base, own), base, populated, strict=False, gives_null=True)


def _populating(
    name: str, own: SqlType, base: SqlType, columns: Columns, row: RowMaker
) -> TableFunction:
    def one_row(given: tuple[Any, ...] | None, value: Any) -> RowIterable:
        if value is None:
            return [given or (None,) * len(columns)]
        return [row(str(value), given)]

    def rows(given: tuple[Any, ...] | None, value: Any) -> RowIterable:
        if value is None:
            return []
        return _rows_maker(name, lambda text: row(text, given))(value)

    call = rows if name.endswith("recordset") else one_row
    return TableFunction(name, (base, own), columns, call, strict=False)


def _rows_maker(name: str, row: RowMaker) -> Callable[[Any], RowIterable]:
    def rows(value: Any) -> RowIterable:
        text = str(value)
        kind = kind_of(text)
        if kind != "array":
            what = "an object" if kind == "object" else "a scalar"
            what = what if name.startswith("json_") else "a non-array"
            raise InvalidParameterValue(f"cannot call {name} on {what}")
        parts = elements(text)
        if any(kind_of(part) != "object" for part in parts):
            raise InvalidParameterValue(f"argument of {name} must be an array of objects")
        return [row(part) for part in parts]

    return rows


def _row_maker(columns: Columns) -> RowMaker:
    converters = [(name, _converter(sql_type)) for name, sql_type in columns]

    def row(text: str, given: tuple[Any, ...] | None = None) -> tuple[Any, ...]:
        kind = kind_of(text)
        if kind != "object":
            what = "an array" if kind == "array" else "a scalar"
            raise InvalidParameterValue(f"cannot call populate_composite on {what}")
        values = list(given or (None,) * len(columns))
        for at, (name, convert) in enumerate(converters):
            part = member(text, name)
            if part is not None:
                values[at] = None if part == "null" else convert(part)
        return tuple(values)

    return row


def _converter(sql_type: SqlType) -> Callable[[str], Any]:
    """Return the function from the text of a JSON value to a value of the type."""
    if sql_type.kind is Kind.JSON:
        return str
    if sql_type.kind is Kind.JSONB:
        return jsonb_from_text
    read, fit = reader(sql_type.bare), assignment_function(sql_type.bare, sql_type)
    if sql_type.element is None:
        return lambda part: fit(read(scalar_text(part) or ""))
    element = _converter(sql_type.element)

    def array(part: str) -> tuple[Any, ...]:
        if kind_of(part) == "string":
            made: tuple[Any, ...] = fit(read(scalar_text(part) or ""))
            return made
        if kind_of(part) != "array":
            raise InvalidTextRepresentation("expected JSON array")
        return _array(part, element)

    return array


def _array(part: str, convert: Callable[[str], Any]) -> tuple[Any, ...]:
    parts = elements(part)
    if parts and all(kind_of(each) == "array" for each in parts):
        array = tuple([_array(each, convert) for each in parts])
        if not is_rectangular(array):
            raise InvalidTextRepresentation(
                "malformed JSON array",
                detail="Multidimensional arrays must have sub-arrays with matching dimensions.",
            )
        return array
    return tuple([None if each == "null" else convert(each) for each in parts])
