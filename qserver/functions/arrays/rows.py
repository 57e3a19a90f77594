"""Set-returning functions of arrays: unnest, generate_subscripts, string_to_table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from itertools import zip_longest
from typing import Any, Final

from qserver.errors import UndefinedFunction
from qserver.functions.arrays.functions import length, string_to_array
from qserver.functions.costs import flat_cost, parts_cost
from qserver.functions.registry import TableFunction
from qserver.functions.signatures import Generic
from qserver.values.arrays import Array, flat
from qserver.values.types import (
    ANY,
    ANYARRAY,
    ANYELEMENT,
    BOOLEAN,
    INT2VECTOR,
    INTEGER,
    OIDVECTOR,
    TEXT,
    Kind,
    SqlType,
)

RowIterable = Iterable[tuple[Any, ...]]


def unnest(array: Array) -> RowIterable:
    """Return the elements one by one, whatever the dimensions."""
    return zip(flat(array))


def _unnest_several(types: tuple[SqlType, ...]) -> TableFunction:
    """Unnest several arrays side by side; the shorter ones are padded with NULL."""
    elements = [each.element for each in types]
    if None in elements:
        shown = ", ".join(map(str, types))
        raise UndefinedFunction(
            f"function unnest({shown}) does not exist",
            hint="No function matches the given name and argument types. "
            "You might need to add explicit type casts.",
        )
    columns = tuple(("unnest", each) for each in elements if each is not None)
    return TableFunction("unnest", types, columns, _side_by_side, strict=False, cost=flat_cost)


def _side_by_side(*arrays: Array | None) -> RowIterable:
    return zip_longest(*[flat(array or ()) for array in arrays])


def is_array_of_rows(sql_type: SqlType) -> bool:
    """Tell whether the elements are rows of a type with a name."""
    element = sql_type.element
    return element is not None and element.kind is Kind.RECORD and element.oid != 0


@lru_cache(maxsize=256)
def unnest_rows(types: tuple[SqlType, ...]) -> TableFunction:
    """Return unnest as FROM has it: each field of an array's rows is a column."""
    columns: list[tuple[str, SqlType]] = []
    widths: list[int | None] = []
    elements = [each.element for each in types if each.element is not None]
    for array, element in zip(types, elements, strict=True):
        fields = element.columns if is_array_of_rows(array) else None
        columns += fields if fields is not None else [("unnest", element)]
        widths.append(None if fields is None else len(fields))

    def rows(*arrays: Array | None) -> RowIterable:
        for values in _side_by_side(*arrays):
            row: list[Any] = []
            for value, width in zip(values, widths, strict=True):
                if width is None:
                    row.append(value)
                else:
                    row += value if value is not None else (None,) * width
            yield tuple(row)

    row_oid = elements[0].oid if len(elements) == 1 else 0
    made = TableFunction("unnest", types, tuple(columns), rows, strict=False, cost=flat_cost)
    return replace(made, row_oid=row_oid)


def subscripts(array: Array, dimension: int, backward: bool = False) -> RowIterable:
    places = range(1, (length(array, dimension) or 0) + 1)
    return zip(reversed(places) if backward else places)


def _subscripts_from_0(array: Array, dimension: int, backward: bool = False) -> RowIterable:
    return ((place - 1,) for (place,) in subscripts(array, dimension, backward))


def _string_rows(text: str | None, delimiter: str | None, null: str | None = None) -> RowIterable:
    return zip(string_to_array(text, delimiter, null) or ())


TABLE_FUNCTIONS: Final = (
    TableFunction("unnest", (ANYARRAY,), (("unnest", ANYELEMENT),), unnest, cost=flat_cost),
    Generic("unnest", (ANY, ANY), _unnest_several, variadic=True),
    *(
        TableFunction(
            "generate_subscripts", parameters, (("generate_subscripts", INTEGER),), subscripts
        )
        for parameters in ((ANYARRAY, INTEGER), (ANYARRAY, INTEGER, BOOLEAN))
    ),
    *(
        TableFunction(
            "generate_subscripts",
            (vector, INTEGER, *more),
            (("generate_subscripts", INTEGER),),
            _subscripts_from_0,
        )
        for vector in (INT2VECTOR, OIDVECTOR)
        for more in ((), (BOOLEAN,))
    ),
    *(
        TableFunction(
            "string_to_table",
            (TEXT,) * count,
            (("string_to_table", TEXT),),
            _string_rows,
            strict=False,
            cost=parts_cost,
        )
        for count in (2, 3)
    ),
)
