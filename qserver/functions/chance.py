"""Random numbers, and what is drawn with them: random, random_normal, array_shuffle …"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from qserver.errors import InvalidParameterValue
from qserver.functions.costs import linear
from qserver.functions.numbers.numeric_math import EXACT, scale_of
from qserver.functions.registry import Function
from qserver.values.arrays import Array
from qserver.values.binary_text import uuid_from_text
from qserver.values.types import (
    ANYARRAY,
    BIGINT,
    DOUBLE,
    INTEGER,
    NUMERIC,
    UUID_TYPE,
    VOID,
    SqlType,
)

if TYPE_CHECKING:
    from qserver.functions.context import Context


def random(context: Context) -> float:
    return context.random.random()


def set_seed(context: Context, seed: float) -> None:
    if not -1.0 <= seed <= 1.0:
        raise InvalidParameterValue(f"setseed parameter {seed:g} is out of allowed range [-1,1]")
    context.random.seed(seed)


def random_uuid(context: Context) -> Any:
    """Return a UUID of version 4: 122 random bits."""
    bits = context.random.getrandbits(128)
    bits = bits & ~(0xF << 76) | 4 << 76
    bits = bits & ~(0x3 << 62) | 2 << 62
    return uuid_from_text(f"{bits:032x}")


def random_normal(context: Context, mean: float = 0.0, deviation: float = 1.0) -> float:
    return context.random.normalvariate(mean, deviation)


def random_integer(context: Context, low: int, high: int) -> int:
    _check_order(low <= high)
    return context.random.randint(low, high)


def random_numeric(context: Context, low: Decimal, high: Decimal) -> Decimal:
    """Draw one of the numbers that have as many digits behind the point as the bounds."""
    for name, bound in (("lower", low), ("upper", high)):
        if not bound.is_finite():
            what = "NaN" if bound.is_nan() else "infinity"
            raise InvalidParameterValue(f"{name} bound cannot be {what}")
    _check_order(low <= high)
    scale = max(scale_of(low), scale_of(high))
    first, last = (int(each.scaleb(scale, EXACT)) for each in (low, high))
    return Decimal(context.random.randint(first, last)).scaleb(-scale, EXACT)


def _check_order(is_so: bool) -> None:
    if not is_so:
        raise InvalidParameterValue("lower bound must be less than or equal to upper bound")


def _drawn_digits_cost(*bounds: Any) -> int:
    """The digits become an integer of Python, and a draw digits, in quadratic time."""
    finite = [each for each in bounds if each is not None and each.is_finite()]
    places = max(map(scale_of, finite), default=0) + max(map(Decimal.adjusted, finite), default=0)
    return max(places, 0) ** 2 // 3000


# --- arrays --------------------------------------------------------------------------------------


def shuffle(context: Context, array: Array) -> Array:
    return sample(context, array, len(array))


def sample(context: Context, array: Array, count: int) -> Array:
    """Draw elements, or parts of an array with several dimensions."""
    if not 0 <= count <= len(array):
        raise InvalidParameterValue(f"sample size must be between 0 and {len(array)}")
    return tuple(context.random.sample(array, count))


# --- the table -----------------------------------------------------------------------------------


def _drawn(
    name: str,
    parameters: tuple[SqlType, ...],
    returns: SqlType,
    call: Callable[..., Any],
    **more: Any,
) -> Function:
    return Function(name, parameters, returns, call, volatile=True, needs_context=True, **more)


FUNCTIONS: Final = (
    _drawn("random", (), DOUBLE, random),
    _drawn("random", (INTEGER, INTEGER), INTEGER, random_integer),
    _drawn("random", (BIGINT, BIGINT), BIGINT, random_integer),
    _drawn("random", (NUMERIC, NUMERIC), NUMERIC, random_numeric, cost=_drawn_digits_cost),
    *(_drawn("random_normal", (DOUBLE,) * count, DOUBLE, random_normal) for count in range(3)),
    _drawn("setseed", (DOUBLE,), VOID, set_seed, gives_null=True),
    _drawn("gen_random_uuid", (), UUID_TYPE, random_uuid),
    _drawn("array_shuffle", (ANYARRAY,), ANYARRAY, shuffle, cost=linear(60)),
    _drawn("array_sample", (ANYARRAY, INTEGER), ANYARRAY, sample, cost=linear(60)),
)
