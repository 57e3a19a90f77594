"""Reads booleans and numbers from text as PostgreSQL does.

Blanks around a value are ignored. An error shows the original text. The patterns are ASCII only:
Python's own readers also accept other digits and underscores. `datetime_input` reads dates and
times.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from math import inf, nan
from typing import Final

from qserver.errors import InvalidTextRepresentation, NumericValueOutOfRange
from qserver.values.floats import double_from_exact, real_from_exact
from qserver.values.numerics import NOT_A_NUMBER, plain_numeric
from qserver.values.types import INTEGER_BITS, Kind

BLANKS: Final = " \t\n\v\f\r"

_INTEGER = re.compile(r"[ \t\n\v\f\r]*([+-]?)0*([0-9]+)")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?([0-9]+))?")
_SHORT_NUMERIC = re.compile(r"-?[0-9]{1,20}(?:\.[0-9]{1,20})?")
"""What most numbers look like: nothing is to be looked at in them, but a zero's sign."""

_SPECIAL_NUMBERS: dict[str, float] = {
    sign + name: (-inf if sign == "-" else inf)
    for sign in ("", "+", "-")
    for name in ("inf", "infinity")
}

# An exponent with more digits overflows in any case.
_EXPONENT_DIGITS_MAX = 9


def boolean_from_text(text: str) -> bool:
    """Reads `t`, `true`, `y`, `yes`, `on`, `1` and the like; any prefix of a word will do."""
    word = text.strip(BLANKS).lower()
    if word:
        if word == "1" or word == "on" or "true".startswith(word) or "yes".startswith(word):
            return True
        if word == "0" or word in ("of", "off") or "false".startswith(word):
            return False
        if "no".startswith(word):
            return False
    raise bad_text(text, "boolean")


def integer_reader(kind: Kind) -> Callable[[str], int]:
    name, bits = kind.value, INTEGER_BITS[kind]
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1)
    short = len(str(high))

    def integer_from_text(text: str) -> int:
        if len(text) < short and text.isascii() and text.isdecimal():
            return int(text)
        match = _INTEGER.match(text)
        if match is None:
            raise bad_text(text, name)
        sign, digits = match.groups()
        # Check the limit first: Python refuses to read thousands of digits.
        value = int(sign + digits) if len(digits) < 20 else high
        if not low <= value < high:
            raise NumericValueOutOfRange(f'value "{text}" is out of range for type {name}')
        if text[match.end() :].strip(BLANKS):
            raise bad_text(text, name)
        return value

    return integer_from_text


def double_from_text(text: str) -> float:
    """Reads a number, `infinity`, `inf` or `nan`, in any case."""
    special = _special_float(text)
    if special is not None:
        return special
    word = text.strip(BLANKS)
    exact = _exact(text, "double precision", f'"{word}" is out of range for type double precision')
    return double_from_exact(exact, word) if exact else _zero(text)


def real_from_text(text: str) -> float:
    """The same, rounded to 32 bits."""
    special = _special_float(text)
    if special is not None:
        return special
    exact = _exact(text, "real", f'"{text}" is out of range for type real')
    return real_from_exact(exact, text) if exact else _zero(text)


def numeric_from_text(text: str) -> Decimal:
    """Keeps all digits, trailing zeros included."""
    if _SHORT_NUMERIC.fullmatch(text):
        value = Decimal(text)
        return value if value else value.copy_abs()
    word = text.strip(BLANKS).lower()
    if word in _SPECIAL_NUMBERS:
        return Decimal(_SPECIAL_NUMBERS[word])
    if word == "nan":
        return NOT_A_NUMBER
    return plain_numeric(_exact(text, "numeric", "value overflows numeric format"))


def bad_text(text: str, name: str) -> InvalidTextRepresentation:
    """The error for a text that is not a value of the type."""
    return InvalidTextRepresentation(f'invalid input syntax for type {name}: "{text}"')


def _special_float(text: str) -> float | None:
    word = text.strip(BLANKS).lower()
    if word in ("nan", "+nan", "-nan"):
        return nan
    return _SPECIAL_NUMBERS.get(word)


def _exact(text: str, name: str, overflow: str) -> Decimal:
    word = text.strip(BLANKS)
    match = _NUMBER.fullmatch(word)
    if match is None:
        raise bad_text(text, name)
    exponent = match.group(1)
    if exponent is not None and len(exponent.lstrip("0")) > _EXPONENT_DIGITS_MAX:
        raise NumericValueOutOfRange(overflow)
    try:
        return Decimal(word)
    except InvalidOperation:
        raise NumericValueOutOfRange(overflow) from None


def _zero(text: str) -> float:
    return -0.0 if text.lstrip(BLANKS).startswith("-") else 0.0
