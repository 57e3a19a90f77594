"""Compiled patterns mean the same in every release of Python 3.11.

Before 3.11.5 a group that is repeated possessively keeps what its last, failed attempt has read:
`(?:ab?c)?+` matches the first letter of "abd". An atomic group inside puts it back: `(?>ab?c)?+`.
Debian 12 has 3.11.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages
from re import _constants as codes
from re import _parser as parser
from typing import Any

import pytest

import qserver

ONE = frozenset(
    {codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN, codes.RANGE, codes.CATEGORY}
)


def group_without_an_atom(pattern: str | bytes, flags: int = 0) -> bool:
    """Whether a pattern repeats possessively what can fail after it has read something."""
    return any(
        code is codes.POSSESSIVE_REPEAT and not _fails_at_once(content[2])
        for code, content in _parts(parser.parse(pattern, flags))
    )


def _fails_at_once(repeated: Any) -> bool:
    return len(repeated) == 1 and repeated[0][0] in ONE | {codes.ATOMIC_GROUP}


def _parts(tree: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(tree, parser.SubPattern):
        for code, content in tree:
            yield code, content
            yield from _parts(content)
    elif isinstance(tree, tuple | list):
        for each in tree:
            yield from _parts(each)


def _patterns(value: object) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _patterns(each)
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _patterns(each)


@pytest.mark.parametrize("pattern", [r"(?:ab?c)?+", r"x(?:'[^']*+')*+", r"(?:(?:ab)*+|c)++"])
def test_a_group_that_keeps_what_it_read_is_found(pattern: str) -> None:
    assert group_without_an_atom(pattern)


@pytest.mark.parametrize("pattern", [r"[^']*+", r"a?+", r"(?>ab?c)?+", r"(?:ab)*", r"(?:[ab])*+"])
def test_what_fails_at_once_is_left_alone(pattern: str) -> None:
    assert not group_without_an_atom(pattern)


def test_groups_that_are_repeated_possessively_are_atomic() -> None:
    found, seen = [], set()
    for module in walk_packages(qserver.__path__, "qserver."):
        if module.name.endswith("__main__"):
            continue
        try:
            names = vars(import_module(module.name))
        except ImportError:
            continue  # it needs an extra
        for name, value in names.items():
            for pattern in _patterns(value):
                seen.add(pattern.pattern)
                if group_without_an_atom(pattern.pattern, pattern.flags & ~re.UNICODE):
                    found.append(f"{module.name}.{name}")
    assert not found
    assert len(seen) > 50
