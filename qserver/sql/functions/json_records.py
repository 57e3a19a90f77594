"""JSON as rows of columns that the statement names: json_to_recordset('…') AS t(a int, b text).

Their types are known only with the statement, so these stand in no table: `record_function` makes
one for a list of columns. A member is read as text of the column's type, an array of JSON as an
array, and JSON as it is; what is missing is NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from qserver.errors import InvalidParameterValue, InvalidTextRepresentation
from qserver.sql.functions.registry import TableFunction
from qserver.values.arrays import is_rectangular
from qserver.values.casts import assignment_function, reader
from qserver.values.json_input import jsonb_from_text
from qserver.values.json_parts import elements, kind_of, member, scalar_text
from qserver.values.types import JSON, JSONB, Kind, SqlType

Columns = tuple[tuple[str, SqlType], ...]
Rows = Iterable[tuple[Any, ...]]

RECORD_FUNCTIONS: Final = frozenset(
    {"json_to_record", "jsonb_to_record", "json_to_recordset", "jsonb_to_recordset"}
)


def record_function(name: str, columns: Columns) -> TableFunction:
    """The function of that name for rows of these columns."""
    assert name in RECORD_FUNCTIONS, f"{name} makes no records"
    own = JSON if name.startswith("json_") else JSONB
    row = _row_maker(columns)
    if name.endswith("recordset"):
        return TableFunction(name, (own,), columns, _rows_maker(name, row))

    def one_row(value: Any) -> Rows:
        return [(None,) * len(columns) if value is None else row(str(value))]

    return TableFunction(name, (own,), columns, one_row, strict=False)


def _rows_maker(name: str, row: Callable[[str], tuple[Any, ...]]) -> Callable[[Any], Rows]:
    def rows(value: Any) -> Rows:
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


def _row_maker(columns: Columns) -> Callable[[str], tuple[Any, ...]]:
    converters = [(name, _converter(sql_type)) for name, sql_type in columns]

    def row(text: str) -> tuple[Any, ...]:
        kind = kind_of(text)
        if kind != "object":
            what = "an array" if kind == "array" else "a scalar"
            raise InvalidParameterValue(f"cannot call populate_composite on {what}")
        parts = [(member(text, name), convert) for name, convert in converters]
        return tuple(
            [None if part is None or part == "null" else convert(part) for part, convert in parts]
        )

    return row


def _converter(sql_type: SqlType) -> Callable[[str], Any]:
    """From the text of a JSON value to a value of the type."""
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
