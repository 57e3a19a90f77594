"""The statements of a database, as all processes together have counted them.

    a database ─► its owner, replicas of it, earlier owners ─► numbers of each ─► added

A process that does not answer soon is left out: what it has counted is there again the next time.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from qserver.control.owners import Owners
from qserver.query.statement_statistics import StatementNumbers, StatementStatistics, added


class StatementCounts:
    def __init__(self, owners: Owners, here: StatementStatistics) -> None:
        self._owners = owners
        self._here = here
        here.ask_all, here.reset_all = self.rows, self.reset
        owners.answer("statements", here.rows_here)
        owners.answer("reset statements", here.reset_here)

    async def rows(self, database_id: str) -> list[StatementNumbers]:
        """Return what is known of each statement of a database."""
        if self._owners.is_alone:
            return await self._here.rows_here(database_id)
        found = await self._owners.try_all("statements", database_id)
        parts = [each for each in found.values() if isinstance(each, Sequence)]
        return added(msgspec.convert(part, list[StatementNumbers]) for part in parts)

    async def reset(self, database_id: str, number: int = 0) -> None:
        """Begin anew in all processes, for one statement or (0) for all."""
        if self._owners.is_alone:
            await self._here.reset_here(database_id, number)
        else:
            await self._owners.try_all("reset statements", database_id, number)

    def __repr__(self) -> str:
        return f"statements that are counted by {self._owners!r}"
