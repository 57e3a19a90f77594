"""Tells whether a database may store more: checked before each statement that would.

`control.space` measures files and sets `full`. SELECT, DELETE, TRUNCATE and DROP do not check it,
so that a full organization can remove rows.
"""

from __future__ import annotations

from qserver.errors import DiskFull


class StorageQuota:
    """One that nobody sets is never full."""

    __slots__ = ("full", "refused")

    def __init__(self) -> None:
        self.full: DiskFull | None = None
        """Why no more may be stored."""
        self.refused = 0
        """Statements that were refused."""

    def check(self) -> None:
        full = self.full
        if full is not None:
            self.refused += 1
            raise DiskFull(full.message, detail=full.detail, hint=full.hint)

    def __repr__(self) -> str:
        return "no room for more" if self.full is not None else "room for more"
