"""Sorting kept rows: Python's own sort, by keys that put NULL and NaN where SQL wants them.

Keys of one direction become one tuple and one sort. Mixed directions are sorted from the last
run of equal directions to the first, which works because the sort is stable, also in reverse.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from qserver.sql.bound import SortKey
from qserver.sql.codegen.expressions import Rows
from qserver.values.keys import canonical
from qserver.values.types import FLOAT_KINDS, INTEGER_KINDS, TEXT_KINDS, Kind

if TYPE_CHECKING:
    from qserver.sql.codegen.operators import Operators

_NATIVE = frozenset(
    {*INTEGER_KINDS, *TEXT_KINDS, Kind.BOOLEAN, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ}
)
"""Kinds whose values Python compares as SQL does."""


def print_sort(
    operators: Operators,
    name: str,
    keys: tuple[SortKey, ...],
    sources: tuple[int, ...],
    rows: Rows,
) -> None:
    """Print the sorting of a list of kept rows."""
    runs = [(down, list(run)) for down, run in groupby(keys, key=lambda key: key.descending)]
    for descending, run in reversed(runs):
        key = key_function(operators, run, sources, rows)
        reverse = ", reverse=True" if descending else ""
        operators.source.line(f"{name}.sort(key={key}{reverse})")


def key_function(
    operators: Operators, keys: list[SortKey], sources: tuple[int, ...], rows: Rows
) -> str:
    """A lambda from a kept item to what it is sorted by."""
    if len(sources) == 1:
        item = operators.source.fresh("r")
        inner = rows.with_row(sources[0], item)
    else:
        item = operators.source.fresh("t")
        inner = rows
        for position, made in enumerate(sources):
            inner = inner.with_row(made, f"{item}[{position}]")
    elements: list[str] = []
    for key in keys:
        elements += key_elements(operators, key, inner)
    code = elements[0] if len(elements) == 1 else f"({', '.join(elements)})"
    return f"lambda {item}: {code}"


def key_elements(operators: Operators, key: SortKey, rows: Rows) -> list[str]:
    """What a key is compared by: where NULL goes, where NaN goes, then the value."""
    expression = key.expression
    code = operators.printer.value(expression, rows)
    kind = expression.type.kind
    may_be_nan = kind in FLOAT_KINDS or kind is Kind.NUMERIC
    if not (expression.nullable or may_be_nan):
        return [sortable(operators, code, kind)]
    name = operators.source.fresh("v")
    # Descending sorts are reversed as a whole, so NULL must stand on the other side.
    null_is_greater = key.nulls_first == key.descending
    elements = [f"(({name} := {code}) is {'' if null_is_greater else 'not '}None)"]
    if not may_be_nan:
        elements.append(sortable(operators, name, kind))
        return elements
    return [
        *elements,
        f"({name} != {name})",
        f"(0 if {name} is None or {name} != {name} else {name})",
    ]


def sortable(operators: Operators, code: str, kind: Kind) -> str:
    """Code for a value that compares natively in the order of its type; NULL stays None."""
    if kind in _NATIVE:
        return code
    operators.source.name("canonical", canonical)
    return f"canonical({code})"
