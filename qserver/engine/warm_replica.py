"""A replica on a file that can become the database: it takes over with what it has in memory.

    file, which others append to ─► begin ─► shown ◄── apply: what the file has got
    this process is to own it ─► hand_over: snapshot, pages and checkpoints ─► `Database`

Its file has the records of the owner's log, from another way than this (`replication.following`),
and checkpoints of its own. So who opens the file afterwards needs only the records behind the
snapshot, and the pages that are in memory stay there.
"""

from __future__ import annotations

import trio

from qserver.durability.kept import KeptCheckpoint
from qserver.durability.page_store import LoggedPages
from qserver.durability.port import Log, StoredRecord
from qserver.durability.recovery import Recovered, recover
from qserver.engine.checkpointer import Checkpointer
from qserver.engine.replica import Replica
from qserver.errors import LogFailed


class WarmReplica(Replica):
    _hands_over = False

    async def begin(self) -> WarmReplica:
        """Begin with what the file has; return this."""
        recovered = await recover(self._log, self._shards, self.pages, may_save=True)
        self._begin_with(self._log, recovered)
        return self

    async def apply(self, records: list[StoredRecord]) -> None:
        """Show records that the file has got."""
        async with self._applying:
            for record in records:
                if self._life.cancel_called:
                    return
                await self._apply(record)
                await trio.lowlevel.checkpoint()

    async def pin(self, name: str, version: int) -> KeptCheckpoint | None:
        """Keep the checkpoint from which a version can be rebuilt, see `Checkpointer.pin`."""
        return await self._last_checkpointer().pin(name, version)

    async def unpin(self, name: str) -> None:
        await self._last_checkpointer().unpin(name)

    def _last_checkpointer(self) -> Checkpointer:
        """Return who changes the pins of the file; once that is another's, raise LogFailed."""
        if self._checkpointer is None:
            raise LogFailed(f"the replica of database {self.name} has been handed over")
        return self._checkpointer

    def hand_over(self) -> None:
        """Show nothing from now on, and leave pages in memory for the database of this file."""
        self._hands_over = self._checkpointer is not None
        self.close()

    def handed_over(self) -> Recovered | None:
        """Return what was handed over, once `run` has ended. Who does not use it closes its pages.

        It equals the file up to its version. The replica keeps no snapshot: as long as one is alive
        its pages are not forgotten.
        """
        last = self._checkpointer
        if last is None or not self._hands_over:
            return None
        self._checkpointer = None
        return Recovered(last.versions.durable, last.saved, last.logged, last.ahead)

    def _log_over(self, log: Log) -> Log:
        return log

    def _drop_pages(self, store: LoggedPages) -> None:
        if not self._hands_over:
            super()._drop_pages(store)

    def _close_pages(self, store: LoggedPages) -> None:
        if not self._hands_over:
            super()._close_pages(store)

    def __repr__(self) -> str:
        return f"a replica of database {self.name} on its file, at version {self.version}"
