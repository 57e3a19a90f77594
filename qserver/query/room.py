"""Whether a database may store more: asked before each statement that would.

Who measures sets `full`; see `control.space`. Reading, DELETE, TRUNCATE and DROP do not ask, so
that those who have too much can remove some.
"""

from __future__ import annotations

from typing import Final

from qserver.errors import DiskFull


class Room:
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


UNBOUNDED: Final = Room()
"""For databases whose files nobody measures: it is never full."""
