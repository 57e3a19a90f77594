"""Bounds of the texts that match a LIKE pattern: LIKE 'ab%' is 'ab' <= s AND s < 'ac', and more.

Texts compare by code point, so all texts with the prefix `ab` are within the bounds. A pattern
without a fixed prefix has bounds, too, which include all texts: a plan may run with any pattern.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from qserver.functions.registry import Function
from qserver.values.keys import NULL_KEY
from qserver.values.types import TEXT

_LIKE_WITH_PREFIX: Final = "like with a prefix"


def fixed_part(pattern: str) -> str:
    """Return the prefix of a LIKE pattern before any special character."""
    for at, character in enumerate(pattern):
        if character in "%_\\":
            return pattern[:at]
    return pattern


def text_after(prefix: str) -> Any:
    """Return the least key above all texts with the prefix."""
    while prefix:
        code = ord(prefix[-1]) + 1
        if code <= 0x10FFFF:
            return prefix[:-1] + chr(0xE000 if code == 0xD800 else code)
        prefix = prefix[:-1]
    return NULL_KEY


def has_prefix(pattern: Any) -> bool:
    return isinstance(pattern, str) and fixed_part(pattern) != ""


@lru_cache(maxsize=16)
def with_prefix(like: Function) -> Function:
    """Mark LIKE whose pattern probably has a fixed prefix: an index is worth a try."""
    return replace(like, name=_LIKE_WITH_PREFIX)


def probably_has_prefix(function: Function) -> bool:
    return function.name == _LIKE_WITH_PREFIX


LOW: Final = Function("first text of a pattern", (TEXT,), TEXT, fixed_part)
HIGH: Final = Function(
    "text after a pattern", (TEXT,), TEXT, lambda pattern: text_after(fixed_part(pattern))
)
