"""The tag of a statement that has run: `INSERT 0 3`, `CREATE TABLE`."""

from __future__ import annotations

from typing import Final

_DEFINES: Final = frozenset({"create", "alter", "drop"})
_BESIDES: Final = frozenset(
    {"or", "replace", "unique", "temp", "temporary", "global", "local", "unlogged", "recursive"}
)
"""Words between CREATE and what it creates."""
_COUNTED: Final = frozenset({"insert", "update", "delete", "merge"})


def defines(words: tuple[str, ...]) -> bool:
    """Does a statement that begins so change what there is?"""
    return words[:1] != () and words[0] in _DEFINES


def tag(words: tuple[str, ...], affected_rows: int) -> str:
    first = words[0] if words else ""
    if first in _COUNTED:
        oid = "0 " if first == "insert" else ""
        return f"{first.upper()} {oid}{affected_rows}"
    if first in _DEFINES:
        kind = next((each for each in words[1:] if each not in _BESIDES), "")
        return f"{first} {kind}".upper().rstrip()
    return first.upper()
