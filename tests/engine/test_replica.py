"""A replica: a follower with a log of its own, which has history and a feed besides."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest
import trio

from qserver.durability.late_log import LATE_RECORDS
from qserver.durability.memory import MemoryLog
from qserver.durability.port import Log
from qserver.durability.sqlite import open_log
from qserver.engine.checkpointer import CheckpointPolicy
from qserver.engine.follower import DoesNotFollow
from qserver.engine.following import records_after
from qserver.engine.replica import Replica
from qserver.engine.snapshot_source import NO_VERSION
from qserver.errors import (
    DatabaseDropped,
    HistoryTooOld,
    InvalidRequest,
    LogFailed,
    LogTaken,
    OutcomeUnknown,
)
from qserver.query.sql_database import SqlDatabase
from tests.engine import counters
from tests.engine.fakes import HeldLog, Laboratory, opened
from tests.engine.followers import catch_up, contents, newest

LONG = CheckpointPolicy(log_bytes=1, seconds=1e9, history=1e9)


@asynccontextmanager
async def replica(
    log: Log | None = None, policy: CheckpointPolicy | None = None
) -> AsyncIterator[Replica]:
    """A replica that follows nobody yet, inside the block."""
    world = Laboratory()
    made = Replica(log or MemoryLog(), world, policy=policy or CheckpointPolicy(history=1e9))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(made.run)
        yield made
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("rows", [0, 5, 5000])
async def test_a_replica_in_a_file_holds_what_its_owner_holds(tmp_path: Path, rows: int) -> None:
    async with (
        await open_log(tmp_path / "a.qserver", syncs_appends=False) as log,
        opened(counters=rows) as database,
        replica(log, LONG) as followed,
    ):
        await catch_up(followed, database)
        for _ in range(20 if rows else 0):
            await database.transact(counters.increment(0))
            assert await catch_up(followed, database) == ["records"]
        assert contents(newest(followed)) == contents(newest(database))


async def test_older_versions_are_read_from_its_base_on() -> None:
    async with opened(counters=5) as database, replica(policy=LONG) as followed:
        await database.transact(counters.increment(0))
        base = newest(database).version
        await catch_up(followed, database)
        before = []
        for _ in range(10):
            before.append(contents(newest(database)))
            await database.transact(counters.increment(0))
        await catch_up(followed, database)
        for snapshot in before:
            assert contents(await followed.snapshot_at(snapshot[0])) == snapshot
        with pytest.raises(HistoryTooOld):
            await followed.snapshot_at(base - 1)
        with pytest.raises(InvalidRequest, match="no version"):
            await followed.snapshot_at(base + 100)


async def test_a_time_that_may_have_later_versions_is_the_owners_to_tell() -> None:
    async with opened(counters=1) as database, replica() as followed:
        await catch_up(followed, database)
        with pytest.raises(HistoryTooOld):
            await followed.snapshot_at(newest(database).time)


async def test_readers_of_its_feed_get_each_version_once() -> None:
    async with opened(counters=5) as database, replica(policy=LONG) as followed:
        await catch_up(followed, database)
        since = newest(followed).version
        for _ in range(5):
            await database.transact(counters.increment(0))
        await catch_up(followed, database)  # before anybody reads: these come from its log
        followed.feed.open()
        found = []
        async with aclosing(followed.feed.after(since, followed.catch_up)) as versions:
            async for each in versions:
                found.append(each.version)
                if len(found) == 5:
                    await database.transact(counters.increment(0))
                    await catch_up(followed, database)
                if len(found) == 6:
                    break
        assert found == list(range(since + 1, since + 7))
        followed.feed.close()


async def test_a_second_base_is_refused() -> None:
    async with opened(counters=5) as database, replica() as followed:
        await catch_up(followed, database)
        with pytest.raises(DoesNotFollow, match="one base"):
            await followed.follow(records_after(database, None))


async def test_records_that_came_before_the_link_broke_are_kept_once() -> None:
    async with opened(counters=5) as database, replica(policy=LONG) as followed:
        await catch_up(followed, database)
        for _ in range(50):
            await database.transact(counters.increment(0))
        async with trio.open_nursery() as nursery:  # cut somewhere between the records
            nursery.start_soon(followed.follow, records_after(database, followed.version))
            await followed.wait_durable_snapshot(version=newest(database).version - 25)
            nursery.cancel_scope.cancel()
        await catch_up(followed, database)
        assert contents(newest(followed)) == contents(newest(database))


async def test_it_ends_when_its_log_fails() -> None:
    log = HeldLog()
    async with opened(counters=5) as database, replica(log) as followed:
        await catch_up(followed, database)
        log.fails_before_append = True
        for _ in range(2 * LATE_RECORDS):
            await database.transact(counters.increment(0))
        with pytest.raises(LogFailed):
            await followed.follow(records_after(database, followed.version))


async def test_readers_that_wait_get_their_version_or_what_they_fall_back_on() -> None:
    async with opened(counters=5) as database, replica() as followed:
        await catch_up(followed, database)
        version, late = newest(database).version, ValueError("it took too long")
        first, second, third = (
            followed.waiters.add(version + ahead, 100.0 * ahead, late) for ahead in (1, 2, 3)
        )
        await database.transact(counters.increment(0))
        await catch_up(followed, database)
        assert [each.answered for each in (first, second, third)] == [True, False, False]
        followed.waiters.expire(250.0)
        assert second.error is late and not third.answered
    assert third.error is late, "a replica that closes keeps nobody waiting"


async def test_statements_that_read_run_and_those_of_a_deleted_database_do_not() -> None:
    world = Laboratory()
    async with opened(world=world) as database, replica() as followed:
        owner = SqlDatabase(database, world)
        await owner.execute("create table t (id int primary key, a text)")
        await owner.execute("insert into t values (1, 'one'), (2, NULL)")
        await catch_up(followed, database)
        read = await SqlDatabase(followed, world).execute("select * from t where id = $1", [2])
        assert read.rows == [(2, None)]
        followed.check_not_deleted("main")
        followed.is_deleted = True
        with pytest.raises(DatabaseDropped):
            followed.check_not_deleted("main")


# --- what the owner announces ---------------------------------------------------------------------


async def test_each_version_is_announced_before_its_answer_leaves() -> None:
    announced: list[int] = []
    async with opened(counters=1) as database:
        database.snapshots.announce_by(announced.append)
        assert announced == [newest(database).version]
        for _ in range(3):
            outcome = await database.transact(counters.increment(0))
            assert announced[-1] == outcome.version


async def test_what_is_recovered_is_announced_before_it_is_shown() -> None:
    log, world = HeldLog(), Laboratory()
    announced: list[int] = []
    async with opened(log, world, counters=1) as database:
        database.snapshots.announce_by(announced.append)
        log.fails_after_append = True  # the version is in the log, and its sender does not know
        with pytest.raises(OutcomeUnknown):
            await database.transact(counters.increment(0))
        log.fails_after_append = False
        assert (await database.wait_durable_snapshot()).version == 2
        assert announced[-1] == 2


async def test_nothing_is_current_when_the_log_was_taken_over() -> None:
    announced: list[int] = []
    async with opened(counters=1) as database:
        database.snapshots.announce_by(announced.append)
        database._end(LogTaken("another process has it"))
        assert announced[-1] == NO_VERSION
