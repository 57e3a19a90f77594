"""Upper and lower case, one code point for one code point.

Python's `upper` follows Unicode's full mapping, in which ß becomes two letters; here a letter
without a single counterpart does not change. ASCII, which is nearly all text, has a fast path, and
so has text without such letters.
"""

from __future__ import annotations

from functools import lru_cache


def upper(text: str) -> str:
    if text.isascii() or has_plain_case(text):
        return text.upper()
    return text.translate({ord(letter): upper_letter(letter) for letter in set(text)})


def lower(text: str) -> str:
    if text.isascii() or has_plain_case(text):
        return text.lower()
    return text.translate({ord(letter): lower_letter(letter) for letter in set(text)})


def has_plain_case(text: str) -> bool:
    """Tell whether each letter has one counterpart, whatever is around it: Σ has two small ones."""
    return "Σ" not in text and len(text) == len(text.upper()) == len(text.lower())


def initcap(text: str) -> str:
    """Capitalize each run of letters and digits, the rest in lower case."""
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
