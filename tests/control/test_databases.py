"""Databases are opened on demand, shared, closed when idle, and never while in use."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from qserver.control.databases import Databases, OpenDatabase
from qserver.control.logs import Logs, MemoryLogs
from qserver.errors import DatabaseDropped, DatabaseUnavailable, TooManyRequests
from qserver.limits import DATABASE_CLOSE_SECONDS_MAX
from tests.control.planes import TestWorld, TroubledLogs, outcome_of, until
from tests.engine.fakes import HeldLog


@asynccontextmanager
async def opened_databases(logs: Logs | None = None, **options: Any) -> AsyncIterator[Databases]:
    databases = Databases(logs or MemoryLogs(), TestWorld(), **({"shards": 1} | options))
    async with trio.open_nursery() as nursery:
        await nursery.start(databases.run)
        yield databases
        nursery.cancel_scope.cancel()


class OneLog(MemoryLogs):
    """Every name has the same log, which the test holds."""

    def __init__(self, log: HeldLog) -> None:
        super().__init__()
        self.log = log

    @asynccontextmanager
    async def open(self, name: str) -> AsyncIterator[HeldLog]:
        yield self.log


def open_names(databases: Databases) -> set[str]:
    return {each.id for each in databases.statistics()}


async def test_a_database_is_opened_when_it_is_wanted_and_shared() -> None:
    async with opened_databases() as databases:
        assert databases.use_nowait("one") is None
        first = await databases.use("one")
        await first.sql.execute("create table t (id integer primary key)")
        second = databases.use_nowait("one")
        assert second is first and first.users == 2
        assert await databases.use("one") is first
        for _ in range(3):
            first.release()
        (statistics,) = databases.statistics()
        assert (statistics.id, statistics.users, statistics.database.state) == ("one", 0, "open")
        assert databases.logs.size_bytes("one") > 0
        assert repr(databases) == "1 databases open, 0 opening, 0 closing"


async def test_as_a_block_it_is_released_at_the_end() -> None:
    async with opened_databases() as databases:
        with await databases.use("one") as database:
            assert database.users == 1
            assert repr(database) == "database one, open, 0 restarts, with 1 users"
        assert database.users == 0


async def test_to_release_more_often_than_used_is_a_mistake() -> None:
    async with opened_databases() as databases:
        database = await databases.use("one")
        database.release()
        with pytest.raises(AssertionError):
            database.release()


async def test_those_who_want_it_at_once_share_one_opening() -> None:
    logs = TroubledLogs()
    logs.hold()
    found: list[Any] = []

    async def want(databases: Databases) -> None:
        found.append(await databases.use("one"))

    async with opened_databases(logs) as databases:
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(want, databases)
            await until(lambda: logs.openings == ["one"])
            assert repr(databases) == "0 databases open, 1 opening, 0 closing"
            logs.gate.set()
        assert logs.openings == ["one"]
        assert found == [found[0]] * 5
        assert found[0].users == 5
        for each in found:
            each.release()


async def test_an_opening_that_fails_tells_all_who_wait_and_the_next_tries_again() -> None:
    logs = TroubledLogs()
    logs.hold()
    logs.fail_open = True
    errors: list[Any] = []

    async def want(databases: Databases) -> None:
        errors.append(await outcome_of(databases.use("one")))

    async with opened_databases(logs) as databases:
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(want, databases)
            await until(lambda: logs.openings == ["one"])
            logs.gate.set()
        assert [type(error) for error in errors] == [DatabaseUnavailable] * 3
        assert errors[0].detail == "the disk is full" and errors[0].retryable
        logs.fail_open = False
        (await databases.use("one")).release()
        assert logs.openings == ["one", "one"]


async def test_a_log_that_cannot_be_read_fails_the_opening(autojump_clock: object) -> None:
    log = HeldLog()
    log.fails_read = True
    async with opened_databases(OneLog(log)) as databases:
        with pytest.raises(DatabaseUnavailable) as refused:
            await databases.use("one")
        assert refused.value.detail == "the disk is away"
        log.fails_read = False
        (await databases.use("one")).release()


async def test_a_waiter_that_gives_up_leaves_the_opening_to_the_others() -> None:
    logs = TroubledLogs()
    logs.hold()
    async with opened_databases(logs) as databases:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(databases.use, "one")
            await until(lambda: logs.openings == ["one"])
            nursery.cancel_scope.cancel()
        logs.gate.set()
        database = await databases.use("one")
        assert database.users == 1
        database.release()


async def test_an_idle_database_is_closed_and_keeps_its_rows(autojump_clock: object) -> None:
    async with opened_databases(idle_seconds=100) as databases:
        with await databases.use("one") as database:
            await database.sql.execute("create table t (id integer primary key)")
            await database.sql.execute("insert into t values (7)")
        await trio.sleep(49)
        assert open_names(databases) == {"one"}
        await trio.sleep(200)
        assert open_names(databases) == set()
        with await databases.use("one") as again:
            assert again is not database
            assert (await again.sql.execute("select id from t")).rows == [(7,)]


async def test_a_database_in_use_is_not_closed_however_long(autojump_clock: object) -> None:
    async with opened_databases(idle_seconds=100) as databases:
        database = await databases.use("one")
        await trio.sleep(10_000)
        assert open_names(databases) == {"one"}
        await database.sql.execute("select 1")
        database.release()
        await trio.sleep(200)
        assert open_names(databases) == set()


async def test_use_makes_idleness_begin_anew(autojump_clock: object) -> None:
    async with opened_databases(idle_seconds=100) as databases:
        for _ in range(10):
            (await databases.use("one")).release()
            await trio.sleep(60)
        (statistics,) = databases.statistics()
        assert statistics.unused_seconds == pytest.approx(60)


async def test_at_most_so_many_are_open_and_the_one_unused_for_longest_goes(
    autojump_clock: object,
) -> None:
    async with opened_databases(open_max=3, idle_seconds=10_000) as databases:
        for name in ("one", "two", "three"):
            (await databases.use(name)).release()
            await trio.sleep(1)
        (await databases.use("one")).release()
        (await databases.use("four")).release()
        assert open_names(databases) == {"one", "three", "four"}


async def test_when_all_are_in_use_one_more_is_refused_for_now() -> None:
    async with opened_databases(open_max=2) as databases:
        one, two = await databases.use("one"), await databases.use("two")
        with pytest.raises(TooManyRequests, match="in use") as refused:
            await databases.use("three")
        assert refused.value.retryable
        one.release()
        three = await databases.use("three")
        assert open_names(databases) == {"two", "three"}
        two.release()
        three.release()


def test_bounds_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 2"):
        Databases(MemoryLogs(), TestWorld(), open_max=1)
    with pytest.raises(ValueError, match="more than 0 seconds"):
        Databases(MemoryLogs(), TestWorld(), idle_seconds=0)


async def test_many_users_of_more_databases_than_fit_all_get_through() -> None:
    async with opened_databases(open_max=3) as databases:
        done: list[int] = []

        async def use(number: int) -> None:
            for step in range(5):
                with await patiently(databases, f"db{(number + step) % 7}") as database:
                    await database.sql.execute("select 1")
                    assert len(databases.statistics()) <= 3
            done.append(number)

        async with trio.open_nursery() as nursery:
            for number in range(6):
                nursery.start_soon(use, number)
        assert sorted(done) == list(range(6))


async def patiently(databases: Databases, name: str) -> OpenDatabase:
    while True:
        try:
            return await databases.use(name)
        except TooManyRequests:
            await trio.lowlevel.checkpoint()


async def test_a_removed_database_is_gone_with_its_log() -> None:
    logs = MemoryLogs()
    async with opened_databases(logs) as databases:
        with await databases.use("one") as database:
            await database.sql.execute("create table t (id integer primary key)")
        await databases.remove("one")
        assert logs.names() == [] and databases.logs.size_bytes("one") == 0
        await databases.remove("one")
        with await databases.use("one") as anew:
            assert await anew.database.wait_durable_snapshot() is not None
            assert anew.database.snapshots.take().version == 0  # type: ignore[union-attr]


async def test_a_removal_waits_for_an_opening_that_began_before(autojump_clock: object) -> None:
    logs = TroubledLogs()
    logs.hold()
    async with opened_databases(logs) as databases, trio.open_nursery() as nursery:
        outcomes: list[Any] = []

        async def want() -> None:
            outcomes.append(await outcome_of(databases.use("one")))

        nursery.start_soon(want)
        await until(lambda: logs.openings == ["one"])
        await databases.remove("one")
        assert logs.names() == []
        await until(lambda: bool(outcomes))
        assert isinstance(outcomes[0], DatabaseUnavailable)


async def test_a_removal_does_not_wait_for_ever_for_users(autojump_clock: object) -> None:
    async with opened_databases() as databases:
        database = await databases.use("one")
        began = trio.current_time()
        await databases.remove("one")
        assert trio.current_time() - began == pytest.approx(DATABASE_CLOSE_SECONDS_MAX)
        with pytest.raises(DatabaseDropped, match="deleted"):
            await database.sql.execute("select 1")
        database.release()


async def test_one_who_comes_while_it_closes_gets_it_opened_again() -> None:
    logs = MemoryLogs()
    async with opened_databases(logs, open_max=2) as databases:
        (await databases.use("one")).release()
        (await databases.use("two")).release()
        (await databases.use("three")).release()  # "one" had to go
        with await databases.use("one") as database:
            assert (await database.sql.execute("select 1")).rows == [(1,)]


async def test_a_commit_under_way_ends_before_the_database_does(autojump_clock: object) -> None:
    log = HeldLog()
    async with opened_databases(OneLog(log)) as databases, trio.open_nursery() as nursery:
        with await databases.use("one") as database:
            await database.sql.execute("create table t (id integer primary key)")
        log.hold()

        async def insert() -> None:
            with trio.CancelScope() as scope, await databases.use("one") as database:
                nursery.start_soon(go_away, scope)
                await database.sql.execute("insert into t values (1)")

        async def go_away(scope: trio.CancelScope) -> None:
            await until(lambda: len(log.groups) == 2)
            scope.cancel()  # the client is gone, its commit is not

        await insert()
        assert log.versions == 1
        nursery.start_soon(_after, 1, log.release)
        await databases.remove("one")
        assert log.versions == 2


@pytest.mark.parametrize("is_closing", [False, True])
async def test_a_database_that_is_given_up_waits_no_longer_than_it_may(
    is_closing: bool, autojump_clock: object
) -> None:
    """For a commit that cannot end, and for a user that does not."""
    log = HeldLog()
    async with opened_databases(OneLog(log)) as databases, trio.open_nursery() as nursery:
        with await databases.use("one") as database:
            await database.sql.execute("create table t (id integer primary key)")
        log.hold()
        user = await databases.use("one")
        nursery.start_soon(outcome_of, user.sql.execute("insert into t values (1)"))
        await until(lambda: len(log.groups) == 2)
        began = trio.current_time()
        if is_closing:
            databases.give_up("one")
            await trio.sleep(0.1)
        databases.give_up("one", 0.5)
        (host,) = databases._closing.values()
        await host.closed.wait()
        assert 0.5 <= trio.current_time() - began < 0.7
        log.release()
        nursery.cancel_scope.cancel()


async def _after(seconds: float, call: Callable[[], None]) -> None:
    await trio.sleep(seconds)
    call()


async def test_nothing_is_opened_before_the_start_and_after_the_end() -> None:
    databases = Databases(MemoryLogs(), TestWorld(), shards=1)
    with pytest.raises(DatabaseUnavailable, match="starting or stopping"):
        await databases.use("one")
    async with trio.open_nursery() as nursery:
        await nursery.start(databases.run)
        (await databases.use("one")).release()
        nursery.cancel_scope.cancel()
    assert databases.use_nowait("one") is None
    with pytest.raises(DatabaseUnavailable, match="starting or stopping"):
        await databases.use("one")
    assert repr(databases) == "0 databases open, 0 opening, 0 closing"


async def test_a_stop_ends_an_opening_that_hangs() -> None:
    logs = TroubledLogs()
    logs.hold()
    with trio.fail_after(240):
        async with opened_databases(logs) as databases:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(databases.use, "one")
                await until(lambda: logs.openings == ["one"])
                nursery.cancel_scope.cancel()
    assert repr(databases) == "0 databases open, 0 opening, 0 closing"
