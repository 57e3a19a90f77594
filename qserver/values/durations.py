"""A length of time as people write it: seconds, or a number with m, h or d behind it."""

from __future__ import annotations

from typing import Final

UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def seconds_of(text: str, most: float) -> float:
    """Return the seconds, or raise ValueError that says what is wrong."""
    number, unit = (text[:-1], UNITS[text[-1]]) if text[-1:] in UNITS else (text, 1)
    if not (number.isascii() and number.isdigit() and len(number) < 12):
        raise ValueError("it is a number of seconds, or one with m, h or d behind it, such as 24h")
    if int(number) * unit > most:
        raise ValueError(f"it is at most {most / 86_400:.0f}d")
    return float(int(number) * unit)
