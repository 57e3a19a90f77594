"""A follower shows what its owner has made durable: no more, nothing left out, never back."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from random import Random
from weakref import ref

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from qserver.control.access import Access
from qserver.control.shares import Shares
from qserver.control.store import Store
from qserver.durability.memory import MemoryLog
from qserver.durability.page_cache import PageCache
from qserver.durability.recovery import recover
from qserver.engine.follower import DoesNotFollow, FollowedDatabase
from qserver.engine.following import Message, records_after
from qserver.engine.snapshot_base import SnapshotBase
from qserver.engine.world import OrdinaryWorld
from qserver.errors import (
    DatabaseUnavailable,
    HistoryTooOld,
    QueryCanceled,
    ReadOnlyTransaction,
    Unauthorized,
    UndefinedTable,
)
from qserver.query.sql_database import SqlDatabase
from qserver.query.sql_port import ReadableDatabase
from qserver.storage.footprint import Footprint
from simulations.pages import FickleCache
from tests.control.planes import FIRST_KEY, opened_plane
from tests.engine import counters
from tests.engine.fakes import HeldLog, Laboratory, Observed, opened, until_restarted
from tests.engine.followers import ALWAYS, NEVER, catch_up, contents, following, newest


async def given(*messages: Message) -> AsyncGenerator[Message, None]:
    for message in messages:
        yield message


# --- bases ---------------------------------------------------------------------------------------


async def base_of(base: SnapshotBase) -> MemoryLog:
    log = MemoryLog()
    await log.save_pages(list(base.pages()))
    await log.save_checkpoint(base.snapshot.version, base.record())
    return log


@pytest.mark.parametrize("rows", [0, 1, 5000])
async def test_a_base_recovers_to_an_equal_snapshot_and_changes_no_page(rows: int) -> None:
    log, cache = MemoryLog(), FickleCache()
    async with opened(log, shards=2, counters=rows, policy=NEVER, cache=cache) as database:
        if rows:
            await database.checkpoint()
            await database.transact(counters.increment(0))  # some pages are saved, and some not
        snapshot = newest(database)
        recovered = await recover(await base_of(SnapshotBase(snapshot)), 2)
        assert contents(recovered.snapshot) == contents(snapshot)
        await database.checkpoint()
        cache.evict_all()
        assert contents(newest(database)) == contents(recovered.snapshot)
    async with opened(log, shards=2) as database:
        assert contents(newest(database)) == contents(recovered.snapshot)


async def test_pages_of_a_base_may_be_evicted_between_its_steps() -> None:
    cache = FickleCache()
    async with opened(shards=2, counters=5000, cache=cache) as database:
        await database.checkpoint()
        base, log = SnapshotBase(newest(database)), MemoryLog()
        for page in base.pages():
            await log.save_pages([page])
            cache.evict_all()
        await log.save_checkpoint(base.snapshot.version, base.record())
        recovered = await recover(log, 2)
        assert contents(recovered.snapshot) == contents(newest(database))


async def test_others_run_between_the_pages_of_a_base() -> None:
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with opened(shards=2, counters=20_000) as database, trio.open_nursery() as nursery:
        pages = sum(1 for _ in SnapshotBase(newest(database)).pages())
        nursery.start_soon(count_turns)
        async with aclosing(records_after(database, None)) as messages:
            async for message in messages:
                if message[0] == "base":
                    break
        assert pages > 50 and turns >= pages
        nursery.cancel_scope.cancel()


# --- the stream ----------------------------------------------------------------------------------


async def test_a_follower_begins_with_a_base_and_goes_on_with_records() -> None:
    async with opened(counters=5) as database, following() as followed:
        assert await catch_up(followed, database) == ["pages", "base"]
        assert contents(newest(followed)) == contents(newest(database))
        for number in range(3):
            await database.transact(counters.increment(number))
        assert await catch_up(followed, database) == ["records"]
        assert contents(newest(followed)) == contents(newest(database))
        assert (followed.statistics().records, followed.statistics().bases) == (3, 1)


async def test_a_follower_whose_version_left_the_log_gets_a_base_and_one_at_the_end_none() -> None:
    async with opened(counters=5, policy=NEVER) as database, following() as followed:
        await catch_up(followed, database)
        await database.checkpoint()
        assert await catch_up(followed, database) == []
        await database.transact(counters.increment(1))
        await database.transact(counters.increment(1))
        await database.checkpoint()
        assert await catch_up(followed, database) == ["pages", "base"]
        assert contents(newest(followed)) == contents(newest(database))


async def test_an_empty_database_is_followed_from_its_first_version() -> None:
    async with opened() as database, following() as followed:
        assert await catch_up(followed, database) == ["base"]
        assert followed.version == 0
        await database.transact(counters.create(3))
        assert await catch_up(followed, database) == ["records"]
        assert contents(newest(followed)) == contents(newest(database))


async def test_what_is_not_durable_is_not_sent() -> None:
    log = HeldLog()
    async with opened(log, counters=5) as database, following() as followed:
        await catch_up(followed, database)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(followed.follow, records_after(database, followed.version))
            log.hold()
            nursery.start_soon(database.transact, counters.increment(1))
            await wait_all_tasks_blocked()
            ahead = database.snapshots.take(newest=True)
            assert ahead is not None and ahead.version == 2 and followed.version == 1
            log.release()
            await followed.wait_durable_snapshot(version=2)
            nursery.cancel_scope.cancel()


async def test_what_a_log_holds_beyond_what_is_durable_is_not_sent() -> None:
    class AheadLog(HeldLog):
        """Gives a record to readers before it is synced."""

        async def read(self, after: int, most: int) -> list[tuple[int, bytes]]:
            found = await super().read(after, most)
            return [*found, (found[-1][0] + 1, b"unsynced")] if found else []

    async with opened(AheadLog()) as database, following() as followed:
        await catch_up(followed, database)
        await database.transact(counters.create(3))
        await catch_up(followed, database)
        assert followed.version == 1


async def test_a_stream_outlives_generations_of_its_database(autojump_clock: MockClock) -> None:
    world, log = Laboratory(), HeldLog()
    async with opened(log, world, counters=5) as database, following() as followed:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(followed.follow, records_after(database, None))
            await followed.wait_durable_snapshot()
            world.kill("coordinator")
            await until_restarted(database)
            await database.transact(counters.increment(1))
            await followed.wait_durable_snapshot(version=2)
            log.fails_after_append = True  # it is in the log, and nobody knows
            Observed(nursery, lambda: database.transact(counters.increment(1)))
            await until_restarted(database, 2)
            log.fails_after_append = False
            await followed.wait_durable_snapshot(version=3)
            await database.transact(counters.increment(1))
            await followed.wait_durable_snapshot(version=4)
            assert contents(newest(followed)) == contents(newest(database))
            nursery.cancel_scope.cancel()


# --- what a follower refuses ---------------------------------------------------------------------


async def test_a_gap_a_repeat_and_records_before_a_base_are_refused() -> None:
    log = MemoryLog()
    async with opened(log, counters=5, policy=NEVER) as database, following() as followed:
        for number in range(3):
            await database.transact(counters.increment(number))
        records = await log.read(0, 10)
        with pytest.raises(DoesNotFollow, match="version 1 does not follow None"):
            await followed.follow(given(("records", records[:1])))
        await catch_up(followed, database)
        with pytest.raises(DoesNotFollow, match="version 4 does not follow 4"):
            await followed.follow(given(("records", records[3:])))
        with pytest.raises(DoesNotFollow, match="version 6 does not follow 4"):
            await followed.follow(given(("records", [(6, b"")])))
        assert followed.version == 4


async def test_a_base_that_lacks_pages_is_refused() -> None:
    async with opened(counters=500) as database, following() as followed:
        base = SnapshotBase(newest(database))
        pages = list(base.pages())
        end: Message = ("base", 1, base.record())
        first: Message = ("pages", pages[:1])
        for messages, problem in (
            ((first, end), f"a base has {len(pages)} pages, and 1 came"),
            ((("pages", pages[1:]), end), "page 2 comes after 0"),
            ((first, first, end), "page 1 comes after 1"),
        ):
            with pytest.raises(DoesNotFollow, match=problem):
                await followed.follow(given(*messages))
        assert followed.snapshots.take() is None


async def test_an_older_base_is_refused_and_a_newer_one_replaces_everything() -> None:
    async with opened(counters=5, policy=NEVER) as database, following() as followed:
        old = SnapshotBase(newest(database))
        pages = list(old.pages())
        await database.transact(counters.increment(1))
        await catch_up(followed, database)
        held, before = newest(followed), contents(newest(followed))
        with pytest.raises(DoesNotFollow, match="version 1 is older than 2"):
            await followed.follow(given(("pages", pages), ("base", 1, old.record())))
        assert newest(followed) is held
        await database.transact(counters.increment(2))
        new = SnapshotBase(newest(database))
        pages = list(new.pages())
        await followed.follow(given(("pages", pages), ("base", 3, new.record())))
        assert contents(newest(followed)) == contents(newest(database))
        assert contents(held) == before, "who reads the one before can go on"


async def test_a_follower_of_another_database_gets_a_base_that_it_refuses() -> None:
    async with opened(counters=5) as database, following() as followed:
        for number in range(3):
            await database.transact(counters.increment(number))
        await catch_up(followed, database)
        async with opened(counters=5) as other:
            with pytest.raises(DoesNotFollow, match="version 1 is older than 4"):
                await followed.follow(records_after(other, followed.version))
        assert contents(newest(followed)) == contents(newest(database))


# --- readers -------------------------------------------------------------------------------------


async def test_readers_wait_for_a_version_until_their_deadline(autojump_clock: MockClock) -> None:
    async with opened(counters=5) as database, following() as followed:
        with pytest.raises(QueryCanceled):
            await followed.wait_durable_snapshot(trio.current_time() + 1)
        await catch_up(followed, database)
        assert (await followed.wait_durable_snapshot(version=1)).version == 1
        with pytest.raises(QueryCanceled):
            await followed.wait_durable_snapshot(trio.current_time() + 1, version=2)
        assert await followed.snapshot_at(1) is newest(followed)
        await database.transact(counters.increment(1))
        await catch_up(followed, database)
        for as_of in (1, 0, 1000.0):
            with pytest.raises(HistoryTooOld, match="has only version 2"):
                await followed.snapshot_at(as_of)
        with pytest.raises(QueryCanceled):
            await followed.snapshot_at(3, trio.current_time() + 1)


async def test_who_waits_for_a_version_keeps_no_pages() -> None:
    world = OrdinaryWorld(lambda: 1000.0, Random(0), lambda text, error: None)  # keeps nothing
    async with opened(world=world, counters=5) as database, following(policy=ALWAYS) as followed:
        await catch_up(followed, database)
        async with trio.open_nursery() as nursery:
            for each in (database, followed):
                lease = newest(each).lease
                assert lease is not None
                held = ref(lease)
                del lease
                nursery.start_soon(partial(each.wait_durable_snapshot, version=3))
                await wait_all_tasks_blocked()
                await database.checkpoint()  # the newest snapshot has another lease from here on
                await database.transact(counters.increment(1))
                await catch_up(followed, database)
                await wait_all_tasks_blocked()
                assert held() is None
            await database.transact(counters.increment(1))
            await catch_up(followed, database)


async def test_a_follower_that_is_closed_shows_nothing_and_lets_waiters_go() -> None:
    cache = PageCache()
    async with opened(counters=500) as database, following(cache=cache) as followed:
        await catch_up(followed, database)
        contents(newest(followed))
        assert cache.statistics().cached
        async with trio.open_nursery() as nursery:
            waiting = Observed(nursery, lambda: followed.wait_durable_snapshot(version=9))
            stream = Observed(
                nursery, lambda: followed.follow(records_after(database, followed.version))
            )
            await wait_all_tasks_blocked()
            followed.close()
            await wait_all_tasks_blocked()
            assert isinstance(waiting.outcome, DatabaseUnavailable)
            await database.transact(counters.increment(1))
            await wait_all_tasks_blocked()
            assert isinstance(stream.outcome, DatabaseUnavailable)
        assert followed.snapshots.take() is None
        assert cache.statistics().cached == cache.statistics().bytes_unsaved == 0
        with pytest.raises(DatabaseUnavailable):
            await followed.follow(records_after(database, None))


async def test_new_pages_of_a_follower_can_be_evicted_and_dead_ones_are_forgotten() -> None:
    cache = FickleCache()
    async with (
        opened(counters=500, policy=NEVER) as database,
        following(policy=ALWAYS, cache=cache) as followed,
    ):
        await catch_up(followed, database)
        sizes = []
        for number in range(30):
            await database.transact(counters.increment(number * 16))
            await catch_up(followed, database)
            await wait_all_tasks_blocked()
            cache.evict_all()
            assert contents(newest(followed)) == contents(newest(database))
            assert cache.statistics().bytes_unsaved == 0
            checkpointer = followed._checkpointer
            assert checkpointer is not None
            sizes.append(await checkpointer.log.load_pages(0, 10_000))
        assert len(sizes[-1]) <= len(sizes[0]) + 2


async def test_sql_reads_a_follower_and_refuses_writes_and_sequences() -> None:
    world = Laboratory()
    async with opened(world=world) as database, following(world) as followed:
        writer = SqlDatabase(database, world)
        await writer.execute("create table t (id serial primary key, v text)")
        await writer.execute("insert into t (v) values ('a'), ('b')")
        await catch_up(followed, database)
        sql = SqlDatabase(followed, world)
        assert (await sql.execute("select v from t order by id")).rows == [("a",), ("b",)]
        for statement in ("delete from t", "create table u (a int)", "select nextval('t_id_seq')"):
            with pytest.raises(ReadOnlyTransaction) as refused:
                await sql.execute(statement)
            assert refused.value.code == "25006"
        await writer.execute("alter table t add column w int default 7")
        await catch_up(followed, database)
        assert (await sql.execute("select w from t")).rows == [(7,), (7,)]
        await writer.execute("drop table t")
        await catch_up(followed, database)
        with pytest.raises(UndefinedTable):
            await sql.execute("select w from t")


async def test_a_watch_of_a_follower_wakes_by_what_matters() -> None:
    async with opened(counters=5, policy=NEVER) as database, following() as followed:
        await catch_up(followed, database)
        table = newest(followed).catalog.tables[counters.NAME]
        watch = followed.watches.open()
        footprint = Footprint()
        footprint.add_key(table.id, (1,))
        followed.watches.arm(watch, footprint, newest(followed))
        await database.transact(counters.increment(2))
        await catch_up(followed, database)
        assert watch.armed
        await database.transact(counters.increment(1))
        await catch_up(followed, database)
        assert not watch.armed and watch.base is not None and watch.base.version == 2
        followed.watches.arm(watch, footprint, newest(followed))
        await database.transact(counters.increment(1))
        await database.checkpoint()
        assert "base" in await catch_up(followed, database)
        assert not watch.armed and watch.base is not None and watch.base.version == 3


# --- the control database ------------------------------------------------------------------------


async def test_a_request_is_authenticated_by_a_follower_of_control() -> None:
    async with opened_plane() as opened, following() as followed:
        plane, world = opened.plane, opened.world
        owner = plane._store.sql.database
        await catch_up(followed, owner)
        store = Store(world.now)
        store.follow(SqlDatabase(followed, world), plane._store.source)
        access = Access(store, plane.databases, world.now, Shares(), plane.owners)
        assert (await access.authenticate(FIRST_KEY)).key_id == opened.grant.key_id
        record, secret = await plane.keys.create(opened.grant, "test")
        _, token = await plane.sessions.create(await plane.authenticate(secret))
        with pytest.raises(Unauthorized):
            await access.authenticate(secret)
        await catch_up(followed, owner)
        assert (await access.authenticate(secret)).key_id == record.id
        assert (await access.authenticate(token)).key_id == record.id
        assert access.grant_nowait(secret) is not None
        with await access.database(opened.grant, "main") as main:
            assert main.name == "main"
        await plane.keys.revoke(opened.grant, record.id)
        await catch_up(followed, owner)
        assert access.grant_nowait(secret) is None
        for each in (secret, token):
            with pytest.raises(Unauthorized, match="revoked"):
                await access.authenticate(each)


def reading_half(followed: FollowedDatabase) -> ReadableDatabase:
    """What mypy checks: a follower can be read."""
    return followed
