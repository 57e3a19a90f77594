"""Upper and lower case, one code point for one code point.

Python's own `upper` follows the full mapping of Unicode, in which ß becomes two letters; here a
letter without a single counterpart stays what it is. ASCII, which is nearly all text, takes the
short way.
"""

from __future__ import annotations

from functools import lru_cache


def upper(text: str) -> str:
    if text.isascii():
        return text.upper()
    return text.translate({ord(letter): upper_letter(letter) for letter in set(text)})


def lower(text: str) -> str:
    if text.isascii():
        return text.lower()
    return text.translate({ord(letter): lower_letter(letter) for letter in set(text)})


def initcap(text: str) -> str:
    """Each run of letters and digits begins with a capital and goes on in lower case."""
    result: list[str] = []
    inside = False
    for letter in text:
        result.append(lower_letter(letter) if inside else upper_letter(letter))
        inside = letter.isalnum()
    return "".join(result)


@lru_cache(maxsize=4096)
def upper_letter(letter: str) -> str:
    mapped = letter.upper()
    return mapped if len(mapped) == 1 else letter


@lru_cache(maxsize=4096)
def lower_letter(letter: str) -> str:
    mapped = letter.lower()
    return mapped if len(mapped) == 1 else mapped[0] if letter == "\u0130" else letter
