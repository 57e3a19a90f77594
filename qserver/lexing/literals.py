"""Reads literals: from the text of a token to a kind and a Python value.

    kind             written as                                value
    i  integer       42, up to 2147483647                      int
    l  bigint        larger, up to 9223372036854775807         int
    n  numeric       larger still, 1.5, .5, 5., 1e3            Decimal
    s  text          'it''s'  E'a\\n'  U&'\\0061'  N'a'  $$a$$   str
    b  bits          B'101'  X'1F'                             str of 0 and 1

A minus is an operator, not part of a literal.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Final

from qserver.errors import InvalidTextRepresentation, NumericValueOutOfRange, QserverError
from qserver.lexing.string_escapes import escaped_text, unicode_text, unquoted
from qserver.values.numerics import plain_numeric

INTEGER_MIN: Final = -(2**31)
INTEGER_MAX: Final = 2**31 - 1
BIGINT_MIN: Final = -(2**63)
BIGINT_MAX: Final = 2**63 - 1
KIND_NAMES: Final = {"i": "integer", "l": "bigint", "n": "numeric", "s": "text", "b": "bits"}
LITERAL_TOKENS: Final = frozenset({"number", "string"})

Value = int | Decimal | str

_BIGINT_DIGITS = len(str(BIGINT_MAX))
_SHORT = 100  # a shorter numeric without an exponent is within every range
_NUMBER_SIGNS = frozenset("0123456789.")
_DIGITS = {"b": "01", "x": "0123456789abcdefABCDEF"}
_DIGITS_WORD = {"b": "binary", "x": "hexadecimal"}


def read_literal(text: str, start: int) -> tuple[str, Value]:
    """Return kind and value of a number or string token that begins at offset `start`."""
    try:
        if text[0] in _NUMBER_SIGNS:
            return read_number(text)
        if text[0] == "$":
            tag_length = text.index("$", 1) + 1
            return "s", text[tag_length:-tag_length]
        match text[0].lower():
            case "'":
                return "s", unquoted(text[1:-1])
            case "e":
                return "s", escaped_text(text[2:-1])
            case "u":
                return "s", unicode_text(text)
            case "n":
                return "s", unquoted(text[2:-1])
            case prefix:
                return "b", _bits(prefix, unquoted(text[2:-1]))
    except QserverError as error:
        error.position = start + 1
        raise


def read_number(text: str) -> tuple[str, int | Decimal]:
    if text.isdigit():
        digits = text if len(text) < _BIGINT_DIGITS else text.lstrip("0")
        if len(digits) <= _BIGINT_DIGITS:  # within the length that int() accepts
            number = int(digits or "0")
            if number <= INTEGER_MAX:
                return "i", number
            if number <= BIGINT_MAX:
                return "l", number
    try:
        numeric = Decimal(text)
    except InvalidOperation:  # an exponent beyond Decimal's range
        raise NumericValueOutOfRange("value overflows numeric format") from None
    if len(text) < _SHORT and "e" not in text and "E" not in text:
        return "n", numeric
    return "n", plain_numeric(numeric)


def _bits(prefix: str, digits: str) -> str:
    wrong = set(digits).difference(_DIGITS[prefix])
    if wrong:
        first = next(digit for digit in digits if digit in wrong)
        raise InvalidTextRepresentation(f'"{first}" is not a valid {_DIGITS_WORD[prefix]} digit')
    return digits if prefix == "b" else f"{int('1' + digits, 16):b}"[1:]
