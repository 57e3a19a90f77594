"""What the documentation says of each guard: a status, an error, and whether anything is applied.

`plain` is what becomes of a statement without a guard. Each guard is a function that says where it
differs from that.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

from tests.web.guards.kinds import Kind

BAD_REQUEST: Final = "QS001"
FORBIDDEN: Final = "QS005"
NO_METHOD: Final = "QS007"
TOO_MANY: Final = "QS003"
CONFLICT: Final = "40001"
READ_ONLY: Final = "25006"
UNSUPPORTED: Final = "0A000"
GETS: Final = ("get", "get_lines")
FULL: Final = "53100"


@dataclass(frozen=True)
class Expected:
    status: int = 200
    code: str | None = None
    applied: bool = False
    affected: int = 0


REFUSED: Final = Expected(400, BAD_REQUEST)
IS_FORBIDDEN: Final = Expected(403, FORBIDDEN)


def plain(kind: Kind, way: str) -> Expected:
    """GET runs only queries, a live query depends on tables alone; all other ways are equal."""
    if way in GETS and not kind.is_query:
        return Expected(405, NO_METHOD)
    if way == "live":
        if kind.of_system or kind.draws:
            return Expected(200, UNSUPPORTED)
        if not kind.is_query:
            return REFUSED
    return Expected(200, None, kind.changes and kind.has_effect, kind.affected)


def with_max_affected(kind: Kind, way: str, most: int) -> Expected:
    """A field, which neither a text nor a URL has."""
    if way in ("text", *GETS):
        return REFUSED
    if kind.most > most and way != "live":
        return Expected(200, TOO_MANY)
    return plain(kind, way)


def with_if_version(kind: Kind, way: str, *, is_stale: bool) -> Expected:
    """Not for an open transaction, which sees one version, nor for a live query."""
    if way in ("text", *GETS, "open", "live"):
        return REFUSED
    if is_stale and kind.of_log:
        return Expected(200, CONFLICT)
    return plain(kind, way)


def with_dry_run(kind: Kind, way: str) -> Expected:
    """Everything but the commit; it cannot be streamed, and what takes effect at once is 0A000."""
    if way in ("text", *GETS, "stream", "lines", "live"):
        return REFUSED
    if kind.sets:
        return Expected(200, UNSUPPORTED)
    return replace(plain(kind, way), applied=False)


def only_reading(kind: Kind, way: str) -> Expected:
    """In a read-only transaction, or as of a version: what writes, or would, is refused."""
    if way in GETS and not kind.is_query:
        return Expected(405, NO_METHOD)
    if kind.changes or kind.draws:
        return Expected(200, READ_ONLY)
    return plain(kind, way)


def with_as_of(kind: Kind, way: str) -> Expected:
    """Not a step of an open transaction, nor a live query: both have their version."""
    if way in ("text", "open", "live"):
        return REFUSED
    return only_reading(kind, way)


LIVE_ERRORS: Final = (UNSUPPORTED, BAD_REQUEST)
"""What cannot be live is told whoever asks."""


def with_scopes(kind: Kind, way: str, scopes: Collection[str]) -> Expected:
    needed = {
        scope
        for scope, needs in (
            ("data:read", kind.reads),
            ("data:write", kind.writes),
            ("schema", kind.defines),
        )
        if needs
    }
    usable = {"data:read", "data:write", "schema"}.intersection(scopes)
    if way == "open" and not usable:
        return IS_FORBIDDEN
    if way in GETS and not (kind.is_query or kind.draws):
        return Expected(405, NO_METHOD)
    if way in (*GETS, "live"):
        found = plain(kind, way)
        return found if "data:read" in scopes or found.code in LIVE_ERRORS else IS_FORBIDDEN
    if way == "stream" and kind.draws and "data:read" in scopes and "data:write" not in scopes:
        return Expected(200, FORBIDDEN)  # the row that draws is an event that has become an error
    return plain(kind, way) if needed.issubset(scopes) else IS_FORBIDDEN


def with_idempotency_key(kind: Kind, way: str) -> Expected:
    """Only for requests that may change a row or a definition, and answer as a whole."""
    if way not in ("query", "text", "transaction") or not kind.changes:
        return REFUSED
    return replace(plain(kind, way), applied=True)  # the answer is stored, whatever was changed


def when_full(kind: Kind, way: str) -> Expected:
    """Reads, DELETE, TRUNCATE and DROP work."""
    found = plain(kind, way)
    return Expected(200, FULL) if kind.stores and found.status == 200 else found
