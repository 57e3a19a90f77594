"""How new a snapshot must be for a request, and the wait for one that is.

    SnapshotSource.take_fresh ─┬─ a snapshot
                               └─ None ─► wait_fresh ─┬─ a snapshot
                                                      └─ NotFreshEnough, after a while

The owner of a database shows every commit that was acknowledged, so all that a request can ask of
it is a version that it has, or has not yet. A copy may be behind: it decides in `take_fresh` and
`wait_fresh` of its own whether what it has will do.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

import msgspec
import trio

from qserver.engine.work import FOREVER
from qserver.errors import NotFreshEnough, QueryCanceled
from qserver.limits import VERSION_WAIT_SECONDS
from qserver.storage.snapshot import Snapshot


class Freshness(msgspec.Struct, frozen=True):
    """What a request says of the snapshot that it wants; without anything, it is the newest."""

    min_version: int = 0
    """It is of this version or a later one."""
    replica: bool = False
    """It may be that of a copy, which lacks the last commits."""
    max_age_ms: int | None = None
    """So long ago the copy may have heard of its owner for the last time; None: at any time."""


STRONG: Final = Freshness()


class FreshSnapshots:
    """The wait, for every database that can be read."""

    @abstractmethod
    async def wait_durable_snapshot(self, deadline: float = FOREVER, version: int = 0) -> Snapshot:
        """Return the newest durable snapshot; wait until its version is at least `version`."""

    async def wait_fresh(self, freshness: Freshness, deadline: float = FOREVER) -> Snapshot:
        """Return the newest durable snapshot, which is fresh enough, or raise NotFreshEnough.

        Whatever a database recovers from is waited for until the deadline. A version that it does
        not have then is waited for no longer than a while: it may be another database's.
        """
        wanted = freshness.min_version
        snapshot = await self.wait_durable_snapshot(deadline)
        if snapshot.version >= wanted:
            return snapshot
        known = snapshot.version
        del snapshot  # or its pages could not be forgotten while this waits
        until = min(deadline, trio.current_time() + VERSION_WAIT_SECONDS)
        try:
            return await self.wait_durable_snapshot(until, wanted)
        except QueryCanceled:
            raise NotFreshEnough(
                f"the database has not reached version {wanted}",
                detail=f"It had version {known} when this began to wait. Nothing was applied.",
                hint="Try again. If the version is from another database, or from before this one"
                " was deleted and made anew, read without min_version.",
            ) from None
