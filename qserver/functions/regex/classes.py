"""Character sets in regular expressions: [a-z], [[:alpha:]_], \\d, and their negations.

A set becomes a piece of a Python regular expression that matches exactly one character. Python's
classes cannot express every set (all letters, but no digits), so a set with such a member becomes
an alternative: [[:alpha:]_] is (?:[^\\W\\d_]|[_]).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

ANY_CHARACTER: Final = r"[\s\S]"
ANY_BUT_NEWLINE: Final = r"[^\n]"

# alpha, alnum, space and word follow Unicode; digit is ASCII.
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
    """Return the source of [:name:]; None if there is no such class."""
    if name in ("lower", "upper"):
        return _cased(name)
    return NAMED.get(name)


@lru_cache(maxsize=2)
def _cased(name: str) -> str:
    """Return the ranges of lower or upper letters, for which Python has no class."""
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
    """Return one character inside of [ ]."""
    return f"\\{character}" if character in "\\]^-[&|~" else character


def range_source(first: str, last: str) -> str:
    if first == last:
        return character_source(first)
    return f"{character_source(first)}-{character_source(last)}"


def set_source(members: str, classes: list[str], negated: bool, without_newline: bool) -> str:
    """Return a whole set: `members` are inside of [ ], `classes` are separate sources.

    `without_newline`: a negated set does not match a newline either.
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
