"""The steps of programs, with numpy.

A step takes vectors and returns one. Bounds go with them: the bounds of the result follow from
those of the operands, and a step whose bounds allow an error raises `Refused` before it computes.
Integers compute in 64 bits. NULLs are carried along: the value at their position lies within the
bounds and has no meaning.

A condition is True where it is true, False where it is false or NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final

import numpy as np

from qserver.functions.numbers.float_math import LARGEST
from qserver.sql.vectors.members import Members
from qserver.values.vectors import INTEGER_MAX, Array, Vector


class Refused(Exception):
    """The rows of this chunk must be computed one by one."""


def full(vector: Vector, length: int) -> Array:
    """Return the values as an array: those of a constant are all the same."""
    values: Array = vector.values
    return values if getattr(values, "ndim", 0) else np.full(length, values)


def is_one(vector: Vector) -> bool:
    """Whether one value stands for all rows."""
    return not getattr(vector.values, "ndim", 0)


def _nulls(left: Vector, right: Vector) -> Array | None:
    if left.nulls is None or left.nulls is right.nulls:
        return right.nulls
    return left.nulls if right.nulls is None else left.nulls | right.nulls


# --- comparisons ---------------------------------------------------------------------------------


def truth_of(values: Any, nulls: Array | None) -> Vector:
    """Return a condition; `values` may be anything where it is NULL."""
    if nulls is not None:
        values = values & ~nulls
    return Vector(values, nulls, False, True)


COMPARE: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "=": eq,
    "<>": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
}


def compare(symbol: str, left: Vector, right: Vector) -> Vector:
    if _is_long(left) or _is_long(right):
        return _compare_long(symbol, left, right)
    if left.scale != right.scale:
        left, right = _aligned(left, right)
    nulls = _nulls(left, right)
    known = _known(symbol, left, right)
    if known is not None:
        return truth_of(known, nulls)
    return truth_of(COMPARE[symbol](left.values, right.values), nulls)


def _is_long(vector: Vector) -> bool:
    """Whether the values are integers of Python, as some averages are."""
    return getattr(vector.values, "dtype", None) == np.object_


def _compare_long(symbol: str, left: Vector, right: Vector) -> Vector:
    scale = max(left.scale, right.scale)
    one, other = (
        np.asarray(each.values).astype(np.object_) * 10 ** (scale - each.scale)
        for each in (left, right)
    )
    found = COMPARE[symbol](one, other)
    return truth_of(np.asarray(found).astype(np.bool_), _nulls(left, right))


def _known(symbol: str, left: Vector, right: Vector) -> bool | None:
    """Return the answer for all rows, if the bounds decide it."""
    below, above = left.high < right.low, left.low > right.high
    if below or above:
        return symbol in ("<>", "<", "<=") if below else symbol in ("<>", ">", ">=")
    if symbol in ("<=", ">") and left.high <= right.low:
        return symbol == "<="
    if symbol in (">=", "<") and left.low >= right.high:
        return symbol == ">="
    if symbol in ("=", "<>") and left.low == left.high == right.low == right.high:
        return symbol == "="
    return None


def in_list(_: None, operand: Vector, items: Members) -> Vector:
    if items.is_empty:
        return Vector(False, None, False, True)
    found = items.found(operand)
    if not items.has_null:
        return truth_of(found, operand.nulls)
    if is_one(operand):
        raise Refused  # NULL everywhere, perhaps
    found = truth_of(full(Vector(found, None), len(operand.values)), operand.nulls).values
    return Vector(found, ~found, False, True)  # NULL unless it is found


def is_distinct(negated: bool, left: Vector, right: Vector) -> Vector:
    same = compare("=", left, right).values
    if left.nulls is not None and right.nulls is not None:
        same = same | (left.nulls & right.nulls)
    return Vector(same if negated else _not(same), None, False, True)


# --- logic ---------------------------------------------------------------------------------------


def _not(values: Any) -> Any:
    return ~values if isinstance(values, np.ndarray) else not values


def conjunction(_: None, first: Vector, *others: Vector) -> Vector:
    values, nulls = first.values, first.nulls
    for other in others:
        both = values & other.values
        if nulls is not None or other.nulls is not None:  # NULL unless one is false
            possible = values if nulls is None else values | nulls
            maybe = other.values if other.nulls is None else other.values | other.nulls
            nulls = possible & maybe & _not(both)
        values = both
    return Vector(values, nulls, False, True)


def disjunction(_: None, first: Vector, *others: Vector) -> Vector:
    values, nulls = first.values, first.nulls
    for other in others:
        values = values | other.values
        nulls = _nulls(Vector(values, nulls), other)
    if nulls is not None:  # NULL unless one is true
        nulls = nulls & _not(values)
    return Vector(values, nulls, False, True)


def negation(_: None, operand: Vector) -> Vector:
    if operand.nulls is None:
        return Vector(_not(operand.values), None, False, True)
    return Vector(~(operand.values | operand.nulls), operand.nulls, False, True)


def is_null(negated: bool, operand: Vector) -> Vector:
    if operand.nulls is None:
        return Vector(negated, None, False, True)
    return Vector(~operand.nulls if negated else operand.nulls, None, False, True)


def is_truth(detail: tuple[bool, bool], operand: Vector) -> Vector:
    truth, negated = detail
    values = operand.values if truth else negation(None, operand).values
    return Vector(_not(values) if negated else values, None, False, True)


def case(conditions: int, *inputs: Any) -> Vector:
    """The first result whose condition is true; None stands for NULL."""
    *results, otherwise = inputs[conditions:]
    known = [each for each in inputs[conditions:] if each is not None]
    if len({each.scale for each in known}) > 1:
        raise Refused  # each row has the digits of its own result
    values: Any = known[0].low if otherwise is None else _wide(otherwise)
    nulls: Any = True if otherwise is None else otherwise.nulls
    for condition, result in zip(reversed(inputs[:conditions]), reversed(results), strict=True):
        if result is None:
            nulls = condition.values | (False if nulls is None else nulls)
            continue
        values = np.where(condition.values, _wide(result), values)
        if nulls is not None or result.nulls is not None:
            other = False if result.nulls is None else result.nulls
            nulls = np.where(condition.values, other, False if nulls is None else nulls)
    return _chosen(values, nulls, known)


class Mixed(Vector):
    """Numbers of one scale that stand for some of fewer digits: `scales` has those of each row."""

    __slots__ = ("scales",)
    scales: Array


def mixed_case(conditions: int, *inputs: Any) -> Vector:
    """CASE whose results have different digits after the point: only sums of it are computed."""
    results = [each for each in inputs[conditions:] if each is not None]
    scales = [each.scale for each in results]
    if len(set(scales)) == 1:
        return case(conditions, *inputs)
    most = max(scales)
    wide = [None if each is None else scaled(each, most) for each in inputs[conditions:]]
    numbers = [
        None if each is None else Vector(np.int64(each.scale), None, each.scale, each.scale)
        for each in inputs[conditions:]
    ]
    whole = case(conditions, *inputs[:conditions], *wide)
    found = Mixed(whole.values, whole.nulls, whole.low, whole.high, most)
    found.scales = case(conditions, *inputs[:conditions], *numbers).values
    return found


def coalesce(_: int, *operands: Any) -> Vector:
    known = [each for each in operands if each is not None]
    if len({each.scale for each in known}) > 1:
        raise Refused
    values, nulls = _wide(known[0]), known[0].nulls
    for other in known[1:]:
        if nulls is None:
            break
        values = np.where(nulls, _wide(other), values)
        nulls = None if other.nulls is None else nulls & other.nulls
    return _chosen(values, nulls, known)


def _chosen(values: Any, nulls: Any, among: list[Vector]) -> Vector:
    """Combine several vectors, choosing one per row."""
    if nulls is not None:
        if not getattr(nulls, "ndim", 0):
            if nulls:
                raise Refused  # NULL everywhere
            nulls = None
        elif np.asarray(values).dtype == np.bool_:
            values = values & ~nulls
    low, high = min([each.low for each in among]), max([each.high for each in among])
    if isinstance(values, bool):
        return Vector(values, nulls, False, True)
    return Vector(values, nulls, low, high, among[0].scale)


# --- integers, and numerics as their digits ------------------------------------------------------


def _wide(vector: Vector) -> Any:
    """Return the values in a type that holds all results."""
    values = vector.values
    if isinstance(values, np.ndarray) and values.dtype.kind == "i":
        return values.astype(np.int64, copy=False)
    # Beside an array, numpy squeezes a Python int into the type of the array.
    return np.int64(values) if type(values) is int else values


def _operands(left: Vector, right: Vector, low: int, high: int) -> tuple[Any, Any]:
    """Return the operands in the smaller type that holds them and their results."""
    least, most = min(low, left.low, right.low), max(high, left.high, right.high)
    if least < -_SHORT_MAX or most > _SHORT_MAX:
        return _wide(left), _wide(right)
    return _short(left.values), _short(right.values)


def _short(values: Any) -> Any:
    return values.astype(np.int32, copy=False) if isinstance(values, np.ndarray) else values


_SHORT_MAX: Final = 2**31 - 1


def _within(low: int, high: int, bounds: tuple[int, int] | None) -> None:
    """Refuse results that may leave their type; numerics are digits of 64 bits."""
    least, most = bounds or (-INTEGER_MAX, INTEGER_MAX)
    if low < least or high > most:
        raise Refused


def _aligned(left: Vector, right: Vector) -> tuple[Vector, Vector]:
    scale = max(left.scale, right.scale)
    return scaled(left, scale), scaled(right, scale)


def scaled(vector: Vector, scale: int) -> Vector:
    """Return the same numbers with more digits after the point."""
    if vector.scale == scale:
        return vector
    factor: int = 10 ** (scale - vector.scale)
    low, high = vector.low * factor, vector.high * factor
    _within(low, max(high, factor), None)
    return Vector(_wide(vector) * factor, vector.nulls, low, high, scale)


def shortened(vector: Vector, scale: int) -> Vector:
    """Return the same numbers with fewer digits after the point; NULL for those that need more."""
    factor: int = 10 ** (vector.scale - scale)
    if factor > INTEGER_MAX:
        raise Refused
    values, rest = np.divmod(_wide(vector), np.int64(factor))
    nulls = rest != 0 if vector.nulls is None else vector.nulls | (rest != 0)
    return Vector(values, nulls, vector.low // factor, vector.high // factor, scale)


def add(bounds: tuple[int, int] | None, left: Vector, right: Vector) -> Vector:
    left, right = _aligned(left, right)
    low, high = left.low + right.low, left.high + right.high
    _within(low, high, bounds)
    one, other = _operands(left, right, low, high)
    values = one + other
    return Vector(values, _nulls(left, right), low, high, left.scale)


def subtract(bounds: tuple[int, int] | None, left: Vector, right: Vector) -> Vector:
    left, right = _aligned(left, right)
    low, high = left.low - right.high, left.high - right.low
    _within(low, high, bounds)
    one, other = _operands(left, right, low, high)
    values = one - other
    return Vector(values, _nulls(left, right), low, high, left.scale)


def multiply(bounds: tuple[int, int] | None, left: Vector, right: Vector) -> Vector:
    low, high = _corners(left, right)
    _within(low, high, bounds)
    one, other = _operands(left, right, low, high)
    values = one * other
    return Vector(values, _nulls(left, right), low, high, left.scale + right.scale)


def _corners(left: Vector, right: Vector) -> tuple[Any, Any]:
    corners = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
    return min(corners), max(corners)


def negative(bounds: tuple[int, int] | None, operand: Vector) -> Vector:
    _within(-operand.high, -operand.low, bounds)
    return Vector(-_wide(operand), operand.nulls, -operand.high, -operand.low, operand.scale)


def absolute(bounds: tuple[int, int] | None, operand: Vector) -> Vector:
    most = _magnitude(operand)
    _within(0, most, bounds)
    return Vector(np.abs(_wide(operand)), operand.nulls, 0, most, operand.scale)


def _magnitude(vector: Vector) -> Any:
    return max(abs(vector.low), abs(vector.high))


def to_numeric(_: None, operand: Vector) -> Vector:
    """Convert integers, which are their own digits."""
    return operand


def fit(bounds: tuple[int, int], operand: Vector) -> Vector:
    _within(operand.low, operand.high, bounds)
    return operand


def _refuse_zero(divisor: Vector) -> None:
    if divisor.low <= 0 <= divisor.high:
        raise Refused


def quotient(bounds: tuple[int, int], left: Vector, right: Vector) -> Vector:
    """Divide integers and truncate."""
    _refuse_zero(right)
    _within(left.low, left.high, (-INTEGER_MAX, INTEGER_MAX))
    most = _magnitude(left) // min(abs(right.low), abs(right.high))
    is_natural = left.low >= 0 and right.low > 0
    low = 0 if is_natural else -most
    _within(low, most, bounds)
    dividend, divisor = _wide(left), _wide(right)
    if not is_natural:
        dividend = dividend - np.fmod(dividend, divisor)
    return Vector(dividend // divisor, _nulls(left, right), low, most)


def remainder(bounds: tuple[int, int], left: Vector, right: Vector) -> Vector:
    """The remainder has the sign of the dividend."""
    _refuse_zero(right)
    _within(left.low, left.high, (-INTEGER_MAX, INTEGER_MAX))
    nulls = _nulls(left, right)
    if left.low >= 0 and right.low > left.high:
        return Vector(left.values, nulls, left.low, left.high)
    most = min(_magnitude(right) - 1, _magnitude(left))
    low, high = (0 if left.low >= 0 else -most), (0 if left.high <= 0 else most)
    if left.low >= 0 and right.low > 0 and is_one(right):
        # Division by a number known before is quicker than a remainder; all of it fits.
        values = left.values
        return Vector(values - values // right.values * right.values, nulls, low, high)
    return Vector(np.fmod(_wide(left), _wide(right)), nulls, low, high)


# --- floats --------------------------------------------------------------------------------------


def _finite(low: float, high: float) -> None:
    if low < -LARGEST or high > LARGEST:
        raise Refused


def add_floats(_: None, left: Vector, right: Vector) -> Vector:
    low, high = left.low + right.low, left.high + right.high
    _finite(low, high)
    return Vector(left.values + right.values, _nulls(left, right), low, high)


def subtract_floats(_: None, left: Vector, right: Vector) -> Vector:
    low, high = left.low - right.high, left.high - right.low
    _finite(low, high)
    return Vector(left.values - right.values, _nulls(left, right), low, high)


def multiply_floats(_: None, left: Vector, right: Vector) -> Vector:
    low, high = _corners(left, right)
    _finite(low, high)
    values = left.values * right.values
    _refuse_underflow(values, (left.values == 0.0) | (right.values == 0.0))
    return Vector(values, _nulls(left, right), low, high)


def divide_floats(_: None, left: Vector, right: Vector) -> Vector:
    _refuse_zero(right)
    most = _magnitude(left) / min(abs(right.low), abs(right.high))
    _finite(-most, most)
    values = left.values / right.values
    _refuse_underflow(values, left.values == 0.0)
    return Vector(values, _nulls(left, right), -most, most)


def _refuse_underflow(values: Any, may_be_zero: Any) -> None:
    """Refuse a zero that only rounding made."""
    if np.any((values == 0.0) & _not(may_be_zero)):
        raise Refused


def negative_floats(_: None, operand: Vector) -> Vector:
    return Vector(-operand.values, operand.nulls, -operand.high, -operand.low)


def absolute_floats(_: None, operand: Vector) -> Vector:
    return Vector(np.abs(operand.values), operand.nulls, 0.0, _magnitude(operand))


_EXACT_FLOAT: Final = 2**53


def to_float(_: None, operand: Vector) -> Vector:
    """Convert digits: exact integers below 2^53, divided once, round as one conversion does."""
    if operand.scale and _magnitude(operand) >= _EXACT_FLOAT:
        raise Refused
    divisor = float(10**operand.scale)
    values = np.asarray(operand.values).astype(np.float64)
    if operand.scale:
        values = values / divisor
    return Vector(values, operand.nulls, operand.low / divisor, operand.high / divisor)
