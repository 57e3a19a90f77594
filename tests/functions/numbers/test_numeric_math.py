"""NUMERIC against fractions, which are exact."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal, getcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.errors import DivisionByZero, NumericValueOutOfRange
from qserver.functions.numbers import numeric_math, numeric_powers
from qserver.functions.numbers.mathematics import cut_numeric, divide_whole, round_numeric
from qserver.values.numerics import plain_numeric

NUMBERS = st.builds(
    lambda digits, scale: plain_numeric(Decimal(digits).scaleb(-scale, Context(prec=100))),
    st.one_of(st.integers(-1000, 1000), st.integers(-(10**40), 10**40)),
    st.integers(0, 30),
)
HUGE = Decimal("9" * 131_072)


@given(NUMBERS, NUMBERS)
def test_sums_and_products_are_exact(left: Decimal, right: Decimal) -> None:
    first, second = Fraction(left), Fraction(right)
    assert Fraction(numeric_math.add(left, right)) == first + second
    assert Fraction(numeric_math.subtract(left, right)) == first - second
    assert Fraction(numeric_math.multiply(left, right)) == first * second


@given(NUMBERS, NUMBERS.filter(bool))
def test_a_quotient_is_rounded_once_with_halves_away_from_zero(
    left: Decimal, right: Decimal
) -> None:
    result = numeric_math.divide(left, right)
    scale = numeric_math.scale_of(result)
    exact = abs(Fraction(left) / Fraction(right)) * 10**scale
    assert abs(Fraction(result)) * 10**scale == int(exact + Fraction(1, 2))


@given(NUMBERS, NUMBERS.filter(bool))
def test_a_quotient_has_sixteen_digits_and_no_fewer_than_its_operands(
    left: Decimal, right: Decimal
) -> None:
    result = numeric_math.divide(left, right)
    scale = numeric_math.scale_of(result)
    assert scale >= numeric_math.scale_of(left) and scale >= numeric_math.scale_of(right)
    if left and scale < 1000:
        assert result.adjusted() + scale >= 15


@given(NUMBERS, NUMBERS.filter(bool))
def test_whole_quotient_and_remainder_make_up_the_dividend(left: Decimal, right: Decimal) -> None:
    whole, rest = divide_whole(left, right), numeric_math.remainder(left, right)
    assert Fraction(whole) * Fraction(right) + Fraction(rest) == Fraction(left)
    assert abs(rest) < abs(right)
    assert not rest or (rest < 0) == (left < 0)


@given(NUMBERS, st.integers(-5, 35))
def test_rounding_and_cutting_leave_so_many_digits(value: Decimal, digits: int) -> None:
    step = Fraction(10) ** -digits
    rounded, cut = Fraction(round_numeric(value, digits)), Fraction(cut_numeric(value, digits))
    assert abs(rounded - Fraction(value)) <= step / 2
    assert abs(cut) <= abs(Fraction(value)) < abs(cut) + step
    assert (rounded / step).denominator == (cut / step).denominator == 1


@given(NUMBERS.map(abs))
def test_a_root_is_the_nearest_with_its_digits(value: Decimal) -> None:
    root = numeric_powers.square_root(value)
    half_step = Fraction(1, 2 * 10 ** numeric_math.scale_of(root))
    low, high = Fraction(root) - half_step, Fraction(root) + half_step
    assert (low <= 0 or low * low <= Fraction(value)) and Fraction(value) <= high * high


@given(st.integers(-50, 50).map(Decimal), st.integers(0, 20))
def test_a_whole_power_of_a_whole_number_is_exact(base: Decimal, exponent: int) -> None:
    assert numeric_powers.power(base, Decimal(exponent)) == int(base) ** exponent


@given(NUMBERS)
def test_no_result_is_a_negative_zero(value: Decimal) -> None:
    zero = Decimal("0.0")
    for result in (
        numeric_math.multiply(value, zero),
        numeric_math.exact_minus(zero),
        round_numeric(numeric_math.multiply(value, Decimal("1e-99"))),
        cut_numeric(value, -40),
    ):
        assert result or not result.is_signed()


def test_the_largest_number_is_a_limit() -> None:
    computations: tuple[Callable[[], Decimal], ...] = (
        lambda: numeric_math.add(HUGE, Decimal(1)),
        lambda: numeric_math.multiply(HUGE, Decimal(2)),
        lambda: numeric_powers.power(Decimal(10), Decimal(200_000)),
        lambda: numeric_powers.exponential(Decimal(6000)),
    )
    for compute in computations:
        with pytest.raises(NumericValueOutOfRange, match="value overflows numeric format"):
            compute()
    assert numeric_math.add(HUGE, Decimal(-1)).adjusted() == 131_071


def test_dividing_by_zero_is_an_error_whatever_is_divided() -> None:
    for dividend in ("0", "1", "Infinity"):
        with pytest.raises(DivisionByZero):
            numeric_math.divide(Decimal(dividend), Decimal("0.00"))
    assert numeric_math.divide(Decimal("NaN"), Decimal(0)).is_nan()


def test_the_thread_s_own_context_plays_no_part() -> None:
    value = Decimal("1." + "3" * 60)
    assert getcontext().prec < 60
    assert str(numeric_math.add(value, value)) == "2." + "6" * 60
