"""Bounds of the texts that match a pattern: LIKE 'ab%' is 'ab' <= s AND s < 'ac', and more.

So is ~ '^ab'; and ~ '^(ab)$', which psql sends for a name, is s = 'ab'. Texts compare by code
point, so all texts with the prefix `ab` are within the bounds. A pattern without a fixed prefix has
bounds, too, which include all texts: a plan may run with any pattern.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from qserver.functions.registry import Function
from qserver.values.keys import NULL_KEY
from qserver.values.types import TEXT

NEXT: Final = "\0"
"""A text with this behind it is the next one in order: no text has it in it."""

_WHOLE: Final = re.compile(r"\^(?:\(((?:\w|\\\W)+)\)|((?:\w|\\\W)+))\$", re.ASCII)
_BEGINNING: Final = re.compile(r"\^((?:\w|\\\W)+)(?![*?{|])", re.ASCII)


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


def regex_low(pattern: str) -> str:
    return _regex_text(pattern)[0]


def regex_high(pattern: str) -> Any:
    text, is_whole = _regex_text(pattern)
    return text + NEXT if is_whole else text_after(text)


def _regex_text(pattern: str) -> tuple[str, bool]:
    """Return the text that all matches begin with, and whether it is all of them."""
    whole = _WHOLE.fullmatch(pattern)
    if whole is not None:
        return _plain(whole[1] or whole[2]), True
    beginning = None if "|" in pattern else _BEGINNING.match(pattern)
    return ("" if beginning is None else _plain(beginning[1])), False


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


def _bounds(low: Callable[[str], str], high: Callable[[str], Any]) -> tuple[Function, Function]:
    first = Function("first text of a pattern", (TEXT,), TEXT, low)
    return first, Function("text after a pattern", (TEXT,), TEXT, high)


_LIKE: Final = "like with a prefix"
_REGEX: Final = "regex with a prefix"
_BOUNDS: Final = {
    _LIKE: _bounds(fixed_part, lambda pattern: text_after(fixed_part(pattern))),
    _REGEX: _bounds(regex_low, regex_high),
}


def marked(function: Function, pattern: Any) -> Function:
    """Mark a match whose pattern probably has a fixed prefix: an index is worth a try."""
    name = {"~~": _LIKE, "~": _REGEX}.get(function.name)
    if name is None or not isinstance(pattern, str):
        return function
    return _named(function, name) if _BOUNDS[name][0].call(pattern) else function


@lru_cache(maxsize=16)
def _named(function: Function, name: str) -> Function:
    return replace(function, name=name)


def bounds_of(function: Function) -> tuple[Function, Function] | None:
    """Return functions of the pattern, to the first text and to the one after the last."""
    return _BOUNDS.get(function.name)
