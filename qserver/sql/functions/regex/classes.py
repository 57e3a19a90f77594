"""Sets of characters in regular expressions: [a-z], [[:alpha:]_], \\d, and their negations.

A set becomes a piece of Python's own regular expressions that matches exactly one character.
Python's classes cannot hold every set (all letters, but no digits), so a set with such a member
becomes an alternative of several: [[:alpha:]_] is (?:[^\\W\\d_]|[_]).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

ANY_CHARACTER: Final = r"[\s\S]"
ANY_BUT_NEWLINE: Final = r"[^\n]"

# Letters, digits and blanks are those of Unicode, digits alone those of ASCII.
NAMED: Final = {
    "alnum": r"[^\W_]",
    "alpha": r"[^\W\d_]",
    "blank": r"[ \t]",
    "cntrl": r"[\x00-\x1f\x7f-\x9f]",
    "digit": r"[0-9]",
    "graph": r"[!-~\xa1-\U0010ffff]",
    "print": r"[ -~\xa0-\U0010ffff]",
    "punct": r"[!-/:-@\[-`{-~]",
    "space": r"\s",
    "word": r"\w",
    "xdigit": r"[0-9A-Fa-f]",
}
ESCAPES: Final = {
    "d": r"[0-9]",
    "s": r"\s",
    "w": r"\w",
    "D": r"[^0-9]",
    "S": r"\S",
    "W": r"\W",
}
_LAST_OF_THE_FIRST_PLANE: Final = 0x10000


def named_class(name: str) -> str | None:
    """The source of [:name:]; None if there is no such class."""
    if name in ("lower", "upper"):
        return _cased(name)
    return NAMED.get(name)


@lru_cache(maxsize=2)
def _cased(name: str) -> str:
    """Python has no class of lower or upper letters, so it is spelled out, by ranges."""
    belongs = str.islower if name == "lower" else str.isupper
    ranges: list[str] = []
    start: int | None = None
    for code in range(_LAST_OF_THE_FIRST_PLANE + 1):
        inside = code < _LAST_OF_THE_FIRST_PLANE and belongs(chr(code))
        if inside and start is None:
            start = code
        elif not inside and start is not None:
            ranges.append(range_source(chr(start), chr(code - 1)))
            start = None
    return f"[{''.join(ranges)}]"


def character_source(character: str) -> str:
    """One character inside of [ ]."""
    return f"\\{character}" if character in "\\]^-[&|~" else character


def range_source(first: str, last: str) -> str:
    if first == last:
        return character_source(first)
    return f"{character_source(first)}-{character_source(last)}"


def set_source(members: str, classes: list[str], negated: bool, without_newline: bool) -> str:
    """A whole set: `members` stand inside of [ ], `classes` are sources of their own.

    A negated set holds no newline either in a pattern that minds newlines.
    """
    if not classes:
        if not negated:
            return f"[{members}]"
        return f"[^{members}\\n]" if without_newline else f"[^{members}]"
    parts = [*classes, f"[{members}]"] if members else classes
    if not negated:
        return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"
    rest = ANY_BUT_NEWLINE if without_newline else ANY_CHARACTER
    return f"(?:(?!{'|'.join(parts)}){rest})"
