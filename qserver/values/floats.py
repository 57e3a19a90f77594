"""Rounds exact numbers to 64-bit and 32-bit floats, once and to the nearest.

Python has no 32-bit type: a REAL is a `float` whose value fits in 32 bits. Rounding a text, an
integer or a Decimal by way of a double would round twice, which fails when the double lies exactly
between two REALs: then `real_from_exact` uses the exact number.

As in PostgreSQL, a finite number that becomes infinite, or a nonzero one that becomes zero, is an
error.
"""

from __future__ import annotations

import struct
from decimal import Decimal
from math import inf, isinf

from qserver.errors import NumericValueOutOfRange

_FLOAT32 = struct.Struct("<f")
_BITS32 = struct.Struct("<I")


def double_from_exact(exact: int | Decimal, text: str | None = None) -> float:
    """The double nearest to an exact number; an error shows `text`."""
    result = _to_double(exact)
    if _lost(result, exact):
        raise _out_of_range(exact, text, "double precision")
    return result


def real_from_exact(exact: int | Decimal, text: str | None = None) -> float:
    """The REAL nearest to an exact number."""
    double = _to_double(exact)
    result = round_to_real(double)
    if result != double and not isinf(double) and exact != double:
        # The double was rounded already. If it is now halfway between two REALs, the exact number,
        # which is not, decides.
        other = _neighbour(result, upward=double > result)
        if not isinf(other) and (result + other) / 2 == double:
            result = max(result, other) if exact > double else min(result, other)
    if _lost(result, exact):
        raise _out_of_range(exact, text, "real")
    return result


def real_from_double(value: float) -> float:
    """Round a double to REAL."""
    result = round_to_real(value)
    if isinf(result) and not isinf(value):
        raise NumericValueOutOfRange("value out of range: overflow")
    if result == 0.0 and value != 0.0:
        raise NumericValueOutOfRange("value out of range: underflow")
    return result


def round_to_real(value: float) -> float:
    """The nearest 32-bit float, which may be zero or infinite."""
    try:
        result: float = _FLOAT32.unpack(_FLOAT32.pack(value))[0]
    except OverflowError:
        return inf if value > 0 else -inf
    return result


def _to_double(exact: int | Decimal) -> float:
    try:
        return float(exact)
    except OverflowError:
        return inf if exact > 0 else -inf


def _lost(result: float, exact: int | Decimal) -> bool:
    if isinf(result):
        return not (isinstance(exact, Decimal) and exact.is_infinite())
    return result == 0.0 and exact != 0


def _neighbour(value: float, upward: bool) -> float:
    """The next REAL: for one sign, the bits of floats increase with their size."""
    if value == 0.0:
        smallest: float = _FLOAT32.unpack(_BITS32.pack(1))[0]
        return smallest if upward else -smallest
    bits = _BITS32.unpack(_FLOAT32.pack(value))[0]
    away_from_zero = upward == (value > 0)
    result: float = _FLOAT32.unpack(_BITS32.pack(bits + 1 if away_from_zero else bits - 1))[0]
    return result


def _out_of_range(exact: int | Decimal, text: str | None, name: str) -> NumericValueOutOfRange:
    shown = format(exact, "f" if isinstance(exact, Decimal) else "d") if text is None else text
    return NumericValueOutOfRange(f'"{shown}" is out of range for type {name}')
