"""Reads integers of any length, for callers that refuse long ones anyway."""

from __future__ import annotations

from typing import Final

DIGITS_KEPT: Final = 19
"""More than a 32-bit integer has; Python refuses to read some thousands of them."""


def clipped_integer(text: str) -> int:
    """Return the integer; only its first digits count if it has more than DIGITS_KEPT."""
    digits = text.strip()
    number = int(digits.lstrip("+-").lstrip("0")[:DIGITS_KEPT] or 0)
    return -number if digits.startswith("-") else number
