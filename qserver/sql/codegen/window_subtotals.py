"""Sums, counts and averages of moving frames, as differences of subtotals.

    values      3   1   4   1   5
    subtotals   0   3   4   8   9   14         of rows 2 to 4:  9 - 3

Only of numbers that are exact: integers, and numerics with the same digits behind the point, which
a sum has too. What a double rounds depends on what was added before, as in PostgreSQL.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

from qserver.functions.numbers import numeric_math
from qserver.functions.registry import Aggregate
from qserver.values.sizes import size_of_all

Finish = Callable[[Any, int], Any]
"""From the sum and the number of the values of a frame to the aggregate."""


class Subtotals(NamedTuple):
    """The sum and the number of the values before each row, and of all."""

    sums: Sequence[Any]
    counts: Sequence[int]
    subtract: Callable[[Any, Any], Any]


def subtotals_of(aggregate: Aggregate, feed: Sequence[Any]) -> Subtotals | None:
    """Return the subtotals of the rows' arguments (None: skipped), if differences are exact."""
    if not aggregate.subtracts:
        return None
    if not aggregate.parameters:
        counted = [given is not None for given in feed]
        return Subtotals([0] * (len(feed) + 1), _running(counted), operator.sub)
    values = [None if given is None else given[0] for given in feed]
    counts = _running([value is not None for value in values])
    if aggregate.name == "count":
        return Subtotals([0] * (len(feed) + 1), counts, operator.sub)
    there = [value for value in values if value is not None]
    if not there or type(there[0]) is int:
        sums = list(accumulate([value or 0 for value in values], initial=0))
        return Subtotals(sums, counts, operator.sub)
    exponents = {value.as_tuple().exponent for value in there}
    if len(exponents) > 1 or not isinstance((exponent := exponents.pop()), int):
        return None
    if size_of_all(there):
        return None
    zero = Decimal((0, (0,), exponent))
    terms = [zero if value is None else value for value in values]
    sums = list(accumulate(terms, numeric_math.exact_add, initial=zero))
    return Subtotals(sums, counts, numeric_math.exact_subtract)


def _running(counted: Sequence[bool]) -> list[int]:
    return list(accumulate(counted, initial=0))


@lru_cache(maxsize=64)
def finish_of(aggregate: Aggregate) -> Finish:
    """Return the function that makes the aggregate of the sum and the number of values."""
    states = ("count",) if aggregate.name == "count" else ("total", "count")
    named = {f"s{number}": name for number, name in enumerate(states)}
    finish = aggregate.finish.format(**named)
    if aggregate.name == "sum":
        finish = f"({finish} if count else None)"
    made: Finish = eval(f"lambda total, count: {finish}", dict(aggregate.names))
    return made
