"""Roots, exponentials and logarithms of many digits are those of `decimal`, which takes longer."""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal

import pytest

from qserver.functions.numbers.long_numbers import long_exponential, long_logarithm, long_root
from qserver.functions.numbers.mathematics import factorial
from qserver.functions.numbers.numeric_powers import is_odd, square_root

DIGITS = (60, 250, 700)


def context_of(digits: int) -> Context:
    return Context(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


@pytest.mark.parametrize("digits", DIGITS)
@pytest.mark.parametrize("text", ["2", "0.0007", "7" * 99, "123456.789", "4e-500"])
def test_a_root_has_the_digits_of_decimal(text: str, digits: int) -> None:
    context = context_of(digits)
    assert context.plus(long_root(Decimal(text), digits)) == context.sqrt(Decimal(text))


@pytest.mark.parametrize("digits", DIGITS)
@pytest.mark.parametrize("text", ["0", "1", "-3.5", "5999.1", "0.0001", "5." + "3" * 300])
def test_an_exponential_has_the_digits_of_decimal(text: str, digits: int) -> None:
    context = context_of(digits)
    assert context.plus(long_exponential(Decimal(text), digits)) == context.exp(Decimal(text))


@pytest.mark.parametrize("digits", DIGITS)
@pytest.mark.parametrize("text", ["2.5", "1.0000000000000001", "7" * 300, "4e-500", "123456.789"])
def test_a_logarithm_has_the_digits_of_decimal(text: str, digits: int) -> None:
    context = context_of(digits)
    assert context.plus(long_logarithm(Decimal(text), digits)) == context.ln(Decimal(text))


def test_the_root_of_a_long_square_is_exact() -> None:
    root = Decimal("7" * 3000)
    assert square_root(context_of(6000).multiply(root, root)) == root


def test_a_long_number_is_odd_by_its_last_digit() -> None:
    assert is_odd(Decimal("2" * 100_000 + "1"))
    assert not is_odd(Decimal("1" * 100_000 + "2"))


def test_a_factorial_is_the_product() -> None:
    assert factorial(500) == context_of(2000).multiply(factorial(499), Decimal(500))
