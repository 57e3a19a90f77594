"""Rounds that are made by hand: what the tests of the coordinator share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import trio

from qserver.durability.memory import MemoryLog
from qserver.durability.recovery import Recovered
from qserver.durability.saved_pages import SavedPages
from qserver.engine.coordinator import CoordinatorStatistics
from qserver.engine.generation import Generation
from qserver.engine.mailbox import Reply
from qserver.engine.messages import Answer, Commit, Committed, Work
from qserver.engine.snapshot_source import SnapshotSource
from qserver.engine.work import run_at_once
from qserver.storage.snapshot import Snapshot, empty_snapshot
from qserver.storage.transaction import Transaction
from tests.engine import counters
from tests.engine.fakes import Laboratory

SHARDS = 4


class Bench:
    """A generation whose commits are made by hand, so that a test decides what is in a round."""

    def __init__(self, world: Laboratory, generation: Generation) -> None:
        self.world = world
        self.generation = generation
        self._numbers = count(1)

    @property
    def snapshot(self) -> Snapshot:
        return self.generation.versions.newest

    def commit(self, work: Work, *, on: Snapshot | None = None, again: bool = False) -> Commit:
        """A commit of work that was run on a snapshot, the newest if none is given."""
        transaction = Transaction(on or self.snapshot)
        run_at_once(work, transaction)
        return Commit(next(self._numbers), transaction, work if again else None, Reply())

    def untried(self, work: Work) -> Commit:
        """A commit of work that was not run yet."""
        return Commit(next(self._numbers), None, work, Reply())

    async def round(self, *commits: Commit) -> list[Answer]:
        """All of them in one round; what each was answered, and in `world.sent` how."""
        self.world.sent.clear()
        for commit in commits:
            self.generation.requests.put_nowait(commit)
        return [await commit.reply.wait() for commit in commits]

    async def read(self, work: Work) -> Any:
        return run_at_once(work, Transaction(self.snapshot))

    def statistics(self) -> CoordinatorStatistics:
        return self.generation.statistics().coordinator


@asynccontextmanager
async def bench(
    rows: int = 0, shards: int = SHARDS, log: MemoryLog | None = None
) -> AsyncIterator[Bench]:
    """Version 1 has the table with that many counters."""
    world = Laboratory()
    snapshots = SnapshotSource()
    generation = Generation(
        Recovered(empty_snapshot(shards), SavedPages(), 0), log or MemoryLog(), world, snapshots
    )
    snapshots.follow(generation.versions)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(generation.run)
        made = Bench(world, generation)
        assert await made.round(made.commit(counters.create(rows))) == [Committed(1)]
        yield made
        nursery.cancel_scope.cancel()


def of_kind(world: Laboratory, kind: type) -> list[Any]:
    return [message for _, message in world.sent if isinstance(message, kind)]
