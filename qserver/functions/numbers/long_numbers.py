"""Roots, exponentials and logarithms to hundreds or thousands of digits.

    root           Newton's method for 1/√x, each step with twice the digits of the last, then × x
    exponential    of x/2^k by its series, then squared k times
    logarithm      Halley's method with the exponential, each step with three times the digits

`decimal` computes long ones digit by digit, in time that grows with the cube of the digits. Here
they are built from products, which `decimal` computes fast.

Results have a few digits more than requested, nearly all of them correct; the caller rounds once.
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from math import isqrt, log, log2, sqrt
from typing import Final

_ONE: Final = Decimal(1)
_TWO: Final = Decimal(2)
_HALF: Final = Decimal("0.5")
_LOG_OF_TEN: Final = 2.302585092994046
_FLOAT_DIGITS: Final = 14
_SPARE: Final = 12
_SHORT_BYTES: Final = 128


def _context(digits: int) -> Context:
    return Context(
        prec=digits + _SPARE, rounding=ROUND_HALF_EVEN, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[]
    )


def long_root(value: Decimal, digits: int) -> Decimal:
    """Return the square root of a positive number with this many digits."""
    half = value.adjusted() // 2
    context = _context(digits)
    reduced = context.scaleb(context.plus(value), -2 * half)
    inverse = Decimal(1 / sqrt(float(reduced)))
    known = _FLOAT_DIGITS
    while known < digits + _SPARE:
        known = min(2 * known, digits + _SPARE)
        step = _context(known)
        number = step.plus(reduced)
        missing = step.subtract(_ONE, step.multiply(number, step.multiply(inverse, inverse)))
        inverse = step.add(inverse, step.multiply(step.multiply(inverse, missing), _HALF))
    return context.scaleb(context.multiply(reduced, inverse), half)


def long_exponential(value: Decimal, digits: int) -> Decimal:
    """Return e to the power of a number below 10^6 in size, with this many digits."""
    # As many products for the series as squares after it; a short number makes the first cheap.
    short = value.__sizeof__() <= _SHORT_BYTES
    halvings = int(log2(abs(float(value)) + 1)) + isqrt(digits // 4 if short else 3 * digits)
    context = _context(digits + halvings // 3)
    reduced = context.divide(context.plus(value), context.power(_TWO, halvings))
    least = -context.prec - 1
    result = term = _ONE
    number = 1
    while term and term.adjusted() > least:
        term = context.divide(context.multiply(term, reduced), Decimal(number))
        result = context.add(result, term)
        number += 1
    for _ in range(halvings):
        result = context.multiply(result, result)
    return result


def long_logarithm(value: Decimal, digits: int) -> Decimal:
    """Return the natural logarithm of a positive number with this many digits after the point."""
    exponent = value.adjusted()
    first = _context(digits).plus(value)
    guess = log(float(first.scaleb(-exponent))) + exponent * _LOG_OF_TEN
    result = Decimal(guess)
    known = _FLOAT_DIGITS - len(str(abs(exponent)))
    whole = len(str(abs(int(guess))))
    while known < digits + whole:
        known = min(3 * known, digits + whole + _SPARE)
        step = _context(known + whole)
        number = step.plus(value)
        power = long_exponential(result, known + whole)
        change = step.divide(step.subtract(number, power), step.add(number, power))
        result = step.add(result, step.multiply(_TWO, change))
    return result
