"""Where the objects of a document are in PostgreSQL's binary form of it.

`.keyvalue()` numbers objects by that place. An array or object is a head of four bytes, four bytes
for each part (for a key and for a value), and then the parts: texts as they are, while numbers,
arrays and objects begin at a multiple of four.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from qserver.values.jsonb import Structure

_WORD: Final = 4
_GROUP: Final = 4
"""Digits of a number that take two bytes."""
_SHORT_SCALE_MAX: Final = 63
_SHORT_WEIGHT: Final = range(-64, 64)


def places_of(document: Structure) -> tuple[dict[int, int], int]:
    """Return the place of each object and array, by identity, and the number of all parts."""
    places = _Places()
    places.put(document, 0)
    return places.found, places.parts


class _Places:
    def __init__(self) -> None:
        self.found: dict[int, int] = {}
        self.parts = 0

    def put(self, value: Structure, at: int) -> int:
        """Note where a value and its parts begin; return where it ends."""
        self.parts += 1
        if isinstance(value, str):
            return at + len(value.encode())
        if value is None or isinstance(value, bool):
            return at
        at += -at % _WORD
        if not isinstance(value, list | dict):
            return at + _bytes_of_number(value)
        self.found[id(value)] = at
        if isinstance(value, list):
            at += _WORD * (1 + len(value))
            parts = value
        else:
            at += _WORD * (1 + 2 * len(value)) + sum(len(key.encode()) for key in value)
            parts = list(value.values())
        for part in parts:
            at = self.put(part, at)
        return at


def _bytes_of_number(value: int | Decimal) -> int:
    """Digits are in groups of four; zeros at either end take no place."""
    number = Decimal(value)
    if not number:
        return _WORD + 2
    scale = max(-int(number.as_tuple().exponent), 0)
    highest = number.adjusted() // _GROUP
    digits = number.as_tuple()
    zeros = len(digits.digits) - len("".join(map(str, digits.digits)).rstrip("0"))
    lowest = (int(digits.exponent) + zeros) // _GROUP
    is_short = scale <= _SHORT_SCALE_MAX and highest in _SHORT_WEIGHT
    return _WORD + (2 if is_short else 4) + 2 * (highest - lowest + 1)
