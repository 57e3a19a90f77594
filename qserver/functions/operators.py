"""Arithmetic and bit operators, for each pair of types that PostgreSQL has.

Mixed pairs exist only among integers and among floats; all others use implicit casts: integer +
numeric is numeric + numeric, numeric + real is double precision + double precision.

Templates handle the ordinary case inline and call a function for errors, signs and special values.
`v` is a fresh name from the compiler.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from itertools import product
from typing import Any, Final

from qserver.functions.costs import FREE, Cost, linear
from qserver.functions.numbers import float_math, integer_math, numeric_math, numeric_powers
from qserver.functions.numbers.numeric_costs import power_cost
from qserver.functions.registry import Function
from qserver.values.types import (
    BIGINT,
    DOUBLE,
    INTEGER,
    INTEGER_BITS,
    NUMERIC,
    REAL,
    SMALLINT,
    SqlType,
)

_INTEGERS: Final = (SMALLINT, INTEGER, BIGINT)


def _operator(
    symbol: str,
    parameters: tuple[SqlType, ...],
    returns: SqlType,
    call: Callable[..., Any],
    inline: str | None = None,
    names: Mapping[str, Any] | None = None,
    *,
    cost: Cost | None = None,
    explodes: bool = False,
) -> Function:
    return Function(
        symbol,
        parameters,
        returns,
        call,
        inline=inline,
        names=names or {},
        symbol=symbol,
        cost=cost,
        explodes=explodes,
    )


# --- integers ------------------------------------------------------------------------------------


def _integer_pairs() -> Iterator[Function]:
    for left, right in product(_INTEGERS, _INTEGERS):
        yield from _integer_arithmetic(left, right)
    for each in _INTEGERS:
        yield from _integer_signs(each)
        yield from _integer_bits(each)


def _integer_arithmetic(left: SqlType, right: SqlType) -> Iterator[Function]:
    returns = max(left, right, key=lambda each: INTEGER_BITS[each.kind])
    low, high = integer_math.bounds(returns)
    fit, overflow = integer_math.fitting(returns), integer_math.overflow_name(returns)
    names = {overflow: integer_math.overflow_of(returns)}
    for symbol, compute in (("+", operator.add), ("-", operator.sub), ("*", operator.mul)):
        yield _operator(
            symbol,
            (left, right),
            returns,
            _checked(compute, fit),
            f"({{v}} if {low} <= ({{v}} := {{0}} {symbol} {{1}}) <= {high} else {overflow}())",
            names,
        )
    divide, name = integer_math.divider(returns), integer_math.divider_name(returns)
    yield _operator(
        "/",
        (left, right),
        returns,
        divide,
        f"({{0}} // {{1}} if {{0}} >= 0 and {{1}} > 0 else {name}({{0}}, {{1}}))",
        {name: divide},
    )
    if left == right:  # % exists for equal types only
        yield _operator(
            "%",
            (left, right),
            returns,
            integer_math.remainder,
            "({0} % {1} if {0} >= 0 and {1} > 0 else integer_remainder({0}, {1}))",
            {"integer_remainder": integer_math.remainder},
        )


def _checked(compute: Callable[[int, int], int], fit: Callable[[int], int]) -> Any:
    return lambda left, right: fit(compute(left, right))


def _integer_signs(each: SqlType) -> Iterator[Function]:
    low, _ = integer_math.bounds(each)
    fit, overflow = integer_math.fitting(each), integer_math.overflow_name(each)
    names = {overflow: integer_math.overflow_of(each)}
    not_lowest = f"if {{0}} != {low} else {overflow}())"
    yield _operator("+", (each,), each, operator.pos, "{0}")
    yield _operator("-", (each,), each, lambda value: fit(-value), f"(-{{0}} {not_lowest}", names)
    yield _operator(
        "@", (each,), each, lambda value: fit(abs(value)), f"(abs({{0}}) {not_lowest}", names
    )


def _integer_bits(each: SqlType) -> Iterator[Function]:
    yield _operator("&", (each, each), each, operator.and_, "({0} & {1})")
    yield _operator("|", (each, each), each, operator.or_, "({0} | {1})")
    yield _operator("#", (each, each), each, operator.xor, "({0} ^ {1})")
    yield _operator("~", (each,), each, operator.invert, "(~{0})")
    yield _operator("<<", (each, INTEGER), each, integer_math.shift_left(each))
    yield _operator(">>", (each, INTEGER), each, integer_math.shift_right(each))


# --- floats --------------------------------------------------------------------------------------

_BETWEEN: Final = f"-{float_math.LARGEST!r} <= ({{v}} := {{0}} %s {{1}}) <= {float_math.LARGEST!r}"


def _float_pairs() -> Iterator[Function]:
    for left, right in ((REAL, DOUBLE), (DOUBLE, REAL), (DOUBLE, DOUBLE)):
        pair = left, right
        yield from _double_arithmetic(pair)
    for symbol in "+-*/":
        yield _operator(symbol, (REAL, REAL), REAL, _real(symbol))
    for each in (REAL, DOUBLE):
        yield _operator("+", (each,), each, operator.pos, "{0}")
        yield _operator("-", (each,), each, operator.neg, "(-{0})")
        yield _operator("@", (each,), each, abs, "abs({0})")
    yield _operator("^", (DOUBLE, DOUBLE), DOUBLE, float_math.power)
    yield _operator("|/", (DOUBLE,), DOUBLE, float_math.square_root)
    yield _operator("||/", (DOUBLE,), DOUBLE, float_math.cube_root)


def _double_arithmetic(pair: tuple[SqlType, SqlType]) -> Iterator[Function]:
    for symbol, call in (("+", float_math.add), ("-", float_math.subtract)):
        yield _operator(
            symbol,
            pair,
            DOUBLE,
            call,
            f"({{v}} if {_BETWEEN % symbol} else checked_sum({{v}}, {{0}}, {{1}}))",
            {"checked_sum": float_math.checked_sum},
        )
    yield _operator(
        "*",
        pair,
        DOUBLE,
        float_math.multiply,
        f"({{v}} if {_BETWEEN % '*'} and {{v}} else checked_product({{v}}, {{0}}, {{1}}))",
        {"checked_product": float_math.checked_product},
    )
    yield _operator(
        "/",
        pair,
        DOUBLE,
        float_math.divide,
        f"({{v}} if {{1}} and {_BETWEEN % '/'} and {{v}} else divide_float({{0}}, {{1}}))",
        {"divide_float": float_math.divide},
    )


def _real(symbol: str) -> Callable[[float, float], float]:
    return lambda left, right: float_math.real(symbol, left, right)


# --- numeric -------------------------------------------------------------------------------------


def _numeric_operators() -> Iterator[Function]:
    pair = (NUMERIC, NUMERIC)
    add, subtract = numeric_math.exact_add, numeric_math.exact_subtract
    yield _operator(
        "+",
        pair,
        NUMERIC,
        numeric_math.add,
        "exact_add({0}, {1})",
        {"exact_add": add},
        cost=FREE,
    )
    yield _operator(
        "-",
        pair,
        NUMERIC,
        numeric_math.subtract,
        "exact_subtract({0}, {1})",
        {"exact_subtract": subtract},
        cost=FREE,
    )
    yield _operator(
        "*",
        pair,
        NUMERIC,
        numeric_math.multiply,
        "({v} if ({v} := exact_multiply({0}, {1})) else {v}.copy_abs())",  # no -0
        {"exact_multiply": numeric_math.exact_multiply},
    )
    yield _operator("/", pair, NUMERIC, numeric_math.divide, cost=linear(1200))
    yield _operator("%", pair, NUMERIC, numeric_math.remainder, cost=linear(1200))
    yield _operator("^", pair, NUMERIC, numeric_powers.power, cost=power_cost, explodes=True)
    yield _operator("+", (NUMERIC,), NUMERIC, lambda value: value, "{0}", cost=FREE)
    yield _operator(
        "-",
        (NUMERIC,),
        NUMERIC,
        negate,
        "exact_minus({0})",
        {"exact_minus": numeric_math.exact_minus},
        cost=FREE,
    )
    yield _operator("@", (NUMERIC,), NUMERIC, Decimal.copy_abs, "{0}.copy_abs()", cost=FREE)


def negate(value: Decimal) -> Decimal:
    return numeric_math.exact_minus(value)


OPERATORS: Final = (*_integer_pairs(), *_float_pairs(), *_numeric_operators())
