"""Parses `as_of` of a request: a version, or a time with its zone."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from qserver.engine.history import AsOf
from qserver.errors import InvalidRequest
from qserver.web.description.shapes import QueryRequest, TransactionRequest

MICROSECOND: Final = 1e-6
"""Times are shown to the microsecond, rounded; a shown time means all of its microsecond, so that
the time of a version finds that version."""


def as_of_of(request: QueryRequest | TransactionRequest) -> AsOf | None:
    """The version or time that a request reads, if it names one; raise if it may not."""
    if request.as_of is None:
        return None
    if request.dry_run:
        raise InvalidRequest(
            "as_of only reads, so there is nothing to try", hint="Leave out dry_run, or as_of."
        )
    if isinstance(request, TransactionRequest) and request.branch:
        raise InvalidRequest(
            "a transaction leaves a branch of the newest version, not of an older one",
            hint="Make the branch with POST /v1/databases (branch_of, as_of), and use it.",
        )
    return as_of_given(request.as_of)


def as_of_given(given: int | str, name: str = "as_of") -> AsOf:
    """The version or time in a field or parameter of this name; raise if it is neither."""
    if isinstance(given, str) and given.isascii() and given.isdigit() and len(given) < 18:
        given = int(given)
    if isinstance(given, int):
        if given < 0:
            raise InvalidRequest(f"{name} is not negative: there is no version {given}")
        return given
    try:
        time = datetime.fromisoformat(given)
    except ValueError:
        raise InvalidRequest(
            f"{name} is a version or a time, not {given[:40]!r}",
            hint="Write a time as RFC 3339 does: 2026-01-31T12:00:00Z. In a URL, + is %2B.",
        ) from None
    if time.tzinfo is None:
        raise InvalidRequest(
            f"the time of {name} has no zone",
            hint="Put Z behind it, or an offset such as +01:00 (in a URL %2B01:00).",
        )
    return time.timestamp() + MICROSECOND
