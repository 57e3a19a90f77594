"""`as_of` of a request: a version, or a time with its zone."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from qserver.engine.history import AsOf
from qserver.errors import InvalidRequest

MICROSECOND: Final = 1e-6
"""Times are shown to the microsecond, rounded; a shown time means all of its microsecond, so that
the time of a version finds that version."""


def as_of_given(given: int | str) -> AsOf:
    """The version or the time that a request names, or raise."""
    if isinstance(given, str) and given.isascii() and given.isdigit() and len(given) < 18:
        given = int(given)
    if isinstance(given, int):
        if given < 0:
            raise InvalidRequest("a version is not negative")
        return given
    try:
        time = datetime.fromisoformat(given)
    except ValueError:
        raise InvalidRequest(
            f"as_of is a version or a time, not {given[:40]!r}",
            hint="Write a time as RFC 3339 does: 2026-01-31T12:00:00Z. In a URL, + is %2B.",
        ) from None
    if time.tzinfo is None:
        raise InvalidRequest(
            "the time of as_of has no zone",
            hint="Put Z behind it, or an offset such as +01:00 (in a URL %2B01:00).",
        )
    return time.timestamp() + MICROSECOND
