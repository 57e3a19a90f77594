"""Checks what callers send to the control plane: names, scopes, times, pages of lists.

A cursor is the id that a page ended with, encoded so that callers treat it as opaque. The id is
enough, because lists are in the order of ids, and it stays good when that record is gone.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

from qserver.control.records import SCOPES, Grant
from qserver.errors import Forbidden, InvalidRequest
from qserver.limits import (
    KEY_NAME_LENGTH_MAX,
    LIST_LENGTH_DEFAULT,
    LIST_LENGTH_MAX,
    NAME_LENGTH_MAX,
)

_NAME: Final = re.compile(rf"[a-z][a-z0-9_-]{{0,{NAME_LENGTH_MAX - 1}}}")
_ID: Final = re.compile(r"[a-z]+_[0-9a-z]{22}")
Item = TypeVar("Item")


def require(grant: Grant, scope: str) -> None:
    if not grant.has(scope):
        raise Forbidden(
            f"this needs the scope {scope}",
            detail=f"The key has {', '.join(sorted(grant.scopes)) or 'no scope'}.",
            hint=f"Use a key with the scope {scope}, or have one made.",
        )


def checked_name(what: str, name: str) -> str:
    """Return a valid name of a database or an organization, or raise."""
    if not _NAME.fullmatch(name):
        raise InvalidRequest(
            f"{name!r} cannot be the name of {what}",
            detail=f"A name has 1 to {NAME_LENGTH_MAX} characters: a lower-case letter, then"
            " lower-case letters, digits, _ or -.",
        )
    return name


def checked_key_name(name: str) -> str:
    """Return a valid name of a key, which is any text for people, or raise."""
    length_is_good = 1 <= len(name) <= KEY_NAME_LENGTH_MAX
    if not length_is_good or not name.isprintable() or name.isspace():
        raise InvalidRequest(
            "this cannot be the name of a key",
            detail=f"A key's name has 1 to {KEY_NAME_LENGTH_MAX} printable characters.",
        )
    return name


def checked_scopes(scopes: Iterable[str]) -> tuple[str, ...]:
    """Return each scope once, in the order in which they are documented, or raise."""
    given = set(scopes)
    unknown = sorted(map(str, given.difference(SCOPES)))
    if unknown or not given:
        what = f"there is no scope {unknown[0]!r}" if unknown else "no scope was given"
        raise InvalidRequest(what, hint=f"Scopes are {', '.join(SCOPES)}.")
    return tuple(scope for scope in SCOPES if scope in given)


def checked_seconds(what: str, seconds: float, least: float, most: float) -> float:
    if not least <= seconds <= most:
        raise InvalidRequest(f"{what} has to be a number from {least:,} to {most:,} seconds")
    return seconds


class Page:
    """The requested part of a list: up to `length` records behind the id `after`."""

    __slots__ = ("after", "length")

    def __init__(self, kind: str, cursor: str | None, limit: int | None) -> None:
        self.length = LIST_LENGTH_DEFAULT if limit is None else limit
        if not 1 <= self.length <= LIST_LENGTH_MAX:
            raise InvalidRequest(f"limit has to be a number from 1 to {LIST_LENGTH_MAX}")
        self.after = "" if cursor is None else _id_of(kind, cursor)

    def cut(
        self, rows: Sequence[tuple[Any, ...]], read: Callable[[tuple[Any, ...]], Item]
    ) -> tuple[list[Item], str | None]:
        """Return a page's records and the next cursor, from one row more than fits on the page.

        The first column is the id.
        """
        more = len(rows) > self.length
        rows = rows[: self.length]
        cursor = urlsafe_b64encode(rows[-1][0].encode()).decode() if more else None
        return [read(row) for row in rows], cursor


def _id_of(kind: str, cursor: str) -> str:
    try:
        found = urlsafe_b64decode(cursor.encode("ascii")).decode("ascii")
    except ValueError:
        found = ""
    if not _ID.fullmatch(found) or not found.startswith(f"{kind}_"):
        raise InvalidRequest(
            "this cursor is not one of this list",
            hint="Send next_cursor as it came, or none to begin with the first page.",
        )
    return found
