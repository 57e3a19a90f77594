"""generate_series over numbers, lazily."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from qserver.errors import InvalidParameterValue
from qserver.functions.numbers import numeric_math
from qserver.functions.registry import TableFunction
from qserver.values.types import BIGINT, INTEGER, NUMERIC


def integers(start: int, stop: int, step: int = 1) -> Iterator[tuple[int]]:
    if step == 0:
        raise InvalidParameterValue("step size cannot equal zero")
    return zip(range(start, stop + (1 if step > 0 else -1), step))


def numerics(
    start: Decimal, stop: Decimal, step: Decimal = numeric_math.ONE
) -> Iterator[tuple[Decimal]]:
    for name, value in (("start", start), ("stop", stop), ("step size", step)):
        if not value.is_finite():
            what = "NaN" if value.is_nan() else "infinity"
            raise InvalidParameterValue(
                f"{name} value cannot be {what}".replace("size value", "size")
            )
    if not step:
        raise InvalidParameterValue("step size cannot equal zero")
    return _numerics(start, stop, step)


def _numerics(start: Decimal, stop: Decimal, step: Decimal) -> Iterator[tuple[Decimal]]:
    # Every number of a series has the digits of both its start and its step.
    value = start
    while value <= stop if step > 0 else value >= stop:
        yield (value,)
        value = numeric_math.add(value, step)


def _series() -> Iterator[TableFunction]:
    name = "generate_series"
    for each in (INTEGER, BIGINT):
        for count in (2, 3):
            yield TableFunction(name, (each,) * count, ((name, each),), integers)
    for count in (2, 3):
        yield TableFunction(name, (NUMERIC,) * count, ((name, NUMERIC),), numerics)


TABLE_FUNCTIONS: Final = tuple(_series())
