"""hashtext and its kin: the hashes by which tools make numbers of names, often for advisory locks.

They are Bob Jenkins's lookup3 as PostgreSQL calls it, so a number is the same there and here.
"""

from __future__ import annotations

from typing import Final

from qserver.functions.costs import linear
from qserver.functions.registry import Function
from qserver.values.types import BIGINT, INTEGER, TEXT

_MASK: Final = 0xFFFFFFFF
_BLOCK: Final = 12
_GOLDEN: Final = 0x9E3779B9
_SALT: Final = 3923095
_COST: Final = linear(500)
_Three = tuple[int, int, int]


def _turned(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _MASK


def _mixed(a: int, b: int, c: int) -> _Three:
    for turn in (4, 6, 8, 16, 19, 4):
        a = (a - c & _MASK) ^ _turned(c, turn)
        c = c + b & _MASK
        a, b, c = b, c, a  # the three change their places six times, which is none in the end
    return a, b, c


def _finished(a: int, b: int, c: int) -> _Three:
    for turn in (14, 11, 25, 16, 4, 14, 24):
        c = (c ^ b) - _turned(b, turn) & _MASK
        a, b, c = b, c, a
    return c, a, b  # seven changes are one


def _hashed(data: bytes, seed: int) -> _Three:
    a = b = c = _GOLDEN + len(data) + _SALT & _MASK
    if seed:
        a, b, c = _mixed(a + (seed >> 32) & _MASK, b + (seed & _MASK) & _MASK, c)
    end = len(data) // _BLOCK * _BLOCK
    for at in range(0, end, _BLOCK):
        first, second, third = _words(data[at : at + _BLOCK])
        a, b, c = _mixed(a + first & _MASK, b + second & _MASK, c + third & _MASK)
    first, second, third = _words(data[end:])
    # The lowest byte of the third word is that of the length.
    return _finished(a + first & _MASK, b + second & _MASK, c + (third << 8) & _MASK)


def _words(block: bytes) -> _Three:
    read = int.from_bytes
    return read(block[:4], "little"), read(block[4:8], "little"), read(block[8:], "little")


def hash_of_text(text: str) -> int:
    """Return a number of 32 bits, with a sign."""
    found = _hashed(text.encode(), 0)[2]
    return found - (found >> 31 << 32)


def hash_of_text_extended(text: str, seed: int) -> int:
    """Return a number of 64 bits, with a sign."""
    _, high, low = _hashed(text.encode(), seed & 0xFFFFFFFFFFFFFFFF)
    found = high << 32 | low
    return found - (found >> 63 << 64)


FUNCTIONS: Final = (
    Function("hashtext", (TEXT,), INTEGER, hash_of_text, cost=_COST),
    Function("hashtextextended", (TEXT, BIGINT), BIGINT, hash_of_text_extended, cost=_COST),
)
