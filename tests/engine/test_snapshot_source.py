"""Every snapshot that somebody is given is taken in one place."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial

import pytest
import trio
from trio.testing import MockClock

from qserver.engine.database import Database
from qserver.engine.gateway import Outcome
from qserver.engine.messages import Work
from qserver.engine.snapshot_source import SnapshotSource
from qserver.engine.versions import Versions
from qserver.engine.work import FOREVER, begin, run
from qserver.errors import DatabaseUnavailable
from qserver.query.sql_database import RunOptions, SqlDatabase, Statement
from qserver.storage.snapshot import Snapshot, empty_snapshot
from qserver.storage.transaction import Transaction
from tests.engine import counters
from tests.engine.fakes import Laboratory, opened


def at(version: int) -> Snapshot:
    return Snapshot(version, 0.0, empty_snapshot(1).catalog, empty_snapshot(1).trees, 1)


def test_it_shows_what_it_was_told_to_and_nothing_else() -> None:
    snapshots, published = SnapshotSource(), Versions(at(1), lambda: 0.0)
    assert (snapshots.take(), snapshots.take(newest=True)) == (None, None)
    assert repr(snapshots) == "shows nothing"
    recovered = at(1)
    snapshots.show(recovered)
    assert snapshots.take() is snapshots.take(newest=True) is recovered
    snapshots.follow(published)
    published.publish(at(2))
    assert snapshots.take() is published.durable and snapshots.take(newest=True) is published.newest
    assert repr(snapshots) == "shows version 1"
    snapshots.shut()
    assert (snapshots.take(), snapshots.take(newest=True)) == (None, None)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[Snapshot]:
    """The snapshots that were taken."""
    snapshots: list[Snapshot] = []
    take = SnapshotSource.take

    def noting(self: SnapshotSource, newest: bool = False) -> Snapshot | None:
        snapshot = take(self, newest)
        if snapshot is not None:
            snapshots.append(snapshot)
        return snapshot

    monkeypatch.setattr(SnapshotSource, "take", noting)
    return snapshots


def seen_by(seen: list[Snapshot], work: Work) -> Work:
    """Work that notes the snapshot of each of its runs."""

    def noting(transaction: Transaction) -> object:
        seen.append(transaction.snapshot)
        return work(transaction)

    return noting


async def test_every_attempt_runs_on_a_snapshot_that_was_taken_there(
    autojump_clock: MockClock, taken: list[Snapshot]
) -> None:
    async with opened(counters=3) as database, trio.open_nursery() as nursery:
        seen: list[Snapshot] = []

        def long(transaction: Transaction) -> Generator[None, None, None]:
            yield
            counters.put(transaction, 2, 5)

        async def check(transacting: Generator[object, object, Outcome]) -> None:
            taken.clear()
            seen.clear()
            await run(transacting)
            assert seen and all(any(each is snapshot for snapshot in taken) for each in seen)

        transacting = partial(database.transacting, deadline=FOREVER)
        tried = seen_by(seen, counters.increment(1))
        await check(transacting(tried, max_retries=1, untried=False))
        await check(transacting(tried, max_retries=1, untried=True))
        await check(transacting(seen_by(seen, long), max_retries=1, untried=False))
        await check(transacting(seen_by(seen, counters.look(1)), max_retries=1, untried=True))
        disturbed = counters.disturbed(database, nursery, 1, times=1)
        await check(transacting(seen_by(seen, disturbed), max_retries=1, untried=False))
        assert database.statistics().gateway.exclusive == 1


async def test_a_read_in_sql_takes_one_snapshot(taken: list[Snapshot]) -> None:
    world = Laboratory()
    async with opened(world=world) as database:
        sql = SqlDatabase(database, world)
        await sql.execute("select 1")
        taken.clear()
        begin(sql.perform((Statement("select 1"),), RunOptions()))
        assert len(taken) == 1


async def test_what_is_closed_shows_nothing() -> None:
    async with opened(counters=1) as database:
        assert database.snapshots.take() is not None
    assert database.snapshots.take() is None
    await refuses(database)


async def refuses(database: Database) -> None:
    with pytest.raises(DatabaseUnavailable):
        await database.wait_durable_snapshot()
    with pytest.raises(DatabaseUnavailable):
        await database.transact(counters.look(0))
