"""Notices: what a statement says beside its answer, such as that there was nothing to drop.

They are gathered by the request, anew in each of its runs, and told before its answer is. Only
PostgreSQL's wire has a place for them; over HTTP an answer is its rows.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

NOTICES_MAX: Final = 1000
"""Notices of one statement that are kept: a function may give one for each row."""

_LEVELS: Final = (
    *("debug5", "debug4", "debug3", "debug2", "debug1"),
    *("log", "notice", "warning", "error"),
)
"""The values of client_min_messages in their order."""


class Notice(msgspec.Struct, frozen=True):
    severity: Literal["NOTICE", "WARNING"]
    code: str
    text: str
    detail: str | None = None

    def is_wanted(self, least: str) -> bool:
        """Return whether a client that wants this level, or a higher one, is told."""
        return _LEVELS.index(self.severity.lower()) >= _LEVELS.index(least)


SKIPPED_MISSING: Final = "00000"
SKIPPED_TAKEN: Final = "42P07"
