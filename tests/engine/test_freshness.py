"""A read with `min_version` sees that version or a later one, or is refused and does nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from qserver.engine.freshness import STRONG, Freshness
from qserver.engine.work import run
from qserver.errors import InvalidRequest, NotFreshEnough, OutcomeUnknown, QueryCanceled
from qserver.limits import VERSION_WAIT_SECONDS
from qserver.query.results import RunOptions
from qserver.query.sql_database import SqlDatabase, Statement
from tests.engine.fakes import HeldLog, Laboratory, opened, until_restarted
from tests.engine.followers import catch_up, following
from tests.sampling import examples
from tests.sql.databases import opened_sql

COUNT = "select count(*) from t"
INSERT = "insert into t values (default)"

Read = Callable[[SqlDatabase, Freshness, float], Awaitable[int]]


async def of_query(sql: SqlDatabase, freshness: Freshness, timeout_ms: float) -> int:
    options = RunOptions(timeout_ms=timeout_ms, freshness=freshness)
    version: int = (await run(sql.perform((Statement(COUNT),), options))).version
    return version


async def of_write(sql: SqlDatabase, freshness: Freshness, timeout_ms: float) -> int:
    options = RunOptions(timeout_ms=timeout_ms, freshness=freshness)
    version: int = (await run(sql.perform((Statement(COUNT), Statement(INSERT)), options))).version
    return version - 1  # the one that it saw, or a later one


async def of_url(sql: SqlDatabase, freshness: Freshness, timeout_ms: float) -> int:
    options = RunOptions(timeout_ms=timeout_ms, freshness=freshness)
    outcome = await sql.read(Statement(COUNT), options, lambda basis: False)
    assert outcome is not None
    return outcome.version


async def of_stream(sql: SqlDatabase, freshness: Freshness, timeout_ms: float) -> int:
    async with aclosing(
        await sql.stream(COUNT, timeout_ms=timeout_ms, freshness=freshness)
    ) as stream:
        return stream.version


async def of_live(sql: SqlDatabase, freshness: Freshness, timeout_ms: float) -> int:
    live = await sql.live(
        COUNT, lines_of=lambda plan: lambda rows: [], timeout_ms=timeout_ms, freshness=freshness
    )
    try:
        return live.rows.version
    finally:
        await live.close()


async def of_open(sql: SqlDatabase, freshness: Freshness, timeout_ms: float) -> int:
    transaction = sql.open_nowait(freshness=freshness)
    if transaction is None:
        transaction = await sql.open(timeout_ms=timeout_ms, freshness=freshness)
    try:
        return transaction.version
    finally:
        transaction.release()


READS: dict[str, Read] = {
    read.__name__: read for read in (of_query, of_write, of_url, of_stream, of_live, of_open)
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
async def test_a_read_waits_for_its_version(read: Read, autojump_clock: MockClock) -> None:
    async with opened_sql() as sql, trio.open_nursery() as nursery:
        await sql.execute("create table t (id serial primary key)")
        began = (await sql.execute(COUNT)).version
        assert await read(sql, Freshness(began), 1000) >= began
        seen = []

        async def waiting() -> None:
            seen.append(await read(sql, Freshness(began + 3), 4000))

        nursery.start_soon(waiting)
        await trio.sleep(3)
        assert not seen
        for _ in range(3):
            await sql.execute(INSERT)
        await trio.sleep(0.1)
        assert seen and seen[0] >= began + 3


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("timeout_ms", [1, 4000, 60_000])
async def test_a_version_that_does_not_come_is_refused_in_time(
    read: Read, timeout_ms: float, autojump_clock: MockClock
) -> None:
    async with opened_sql() as sql:
        await sql.execute("create table t (id serial primary key)")
        version, began = (await sql.execute(COUNT)).version, trio.current_time()
        with pytest.raises(NotFreshEnough, match=f"version {version + 9}") as refused:
            await read(sql, Freshness(version + 9), timeout_ms)
        assert trio.current_time() - began == min(timeout_ms / 1000, VERSION_WAIT_SECONDS)
        assert refused.value.retryable and "Nothing was applied" in (refused.value.detail or "")
        now = await sql.execute(COUNT)
        assert (now.version, now.rows) == (version, [(0,)])


async def test_the_owner_is_always_fresh() -> None:
    async with opened_sql() as sql:
        await sql.execute("create table t (id serial primary key)")
        for freshness in (Freshness(0, True, 0), Freshness(1, True), STRONG):
            assert await of_query(sql, freshness, 1000) == 1


async def test_an_older_version_is_no_later_one() -> None:
    async with opened_sql() as sql:
        sql.database.keep_history(3600.0)
        await sql.execute("create table t (id serial primary key)")
        await sql.execute(INSERT)
        version = (await sql.execute(INSERT)).version
        past = version - 1
        for least, is_good in ((0, True), (past, True), (version, False), (10**30, False)):
            options = RunOptions(as_of=past, freshness=Freshness(least))
            if is_good:
                assert (await run(sql.perform((Statement(COUNT),), options))).version == past
                (await sql.open(as_of=past, freshness=Freshness(least))).release()
                continue
            with pytest.raises(InvalidRequest, match="as_of"):
                await run(sql.perform((Statement(COUNT),), options))
            with pytest.raises(InvalidRequest, match="as_of"):
                await sql.open(as_of=past, freshness=Freshness(least))


async def test_what_recovers_is_waited_for_until_the_deadline(autojump_clock: MockClock) -> None:
    log, world = HeldLog(), Laboratory()
    async with opened(log, world) as database, trio.open_nursery() as nursery:
        sql = SqlDatabase(database, world)
        await sql.execute("create table t (id serial primary key)")
        log.fails_read = True
        world.kill("coordinator")
        await until_restarted(database)
        with pytest.raises(QueryCanceled):
            await of_query(sql, Freshness(1), 2 * VERSION_WAIT_SECONDS * 1000)
        seen = []

        async def waiting() -> None:
            seen.append(await of_query(sql, Freshness(1), 60_000))

        nursery.start_soon(waiting)
        await trio.sleep(2 * VERSION_WAIT_SECONDS)
        log.fails_read = False
        await trio.sleep(20)
        assert seen == [1]


async def test_a_copy_waits_until_it_has_the_version(autojump_clock: MockClock) -> None:
    world = Laboratory()
    async with opened(world=world) as database, following() as followed:
        sql, copy = SqlDatabase(database, world), SqlDatabase(followed, world)
        await sql.execute("create table t (id serial primary key)")
        await catch_up(followed, database)
        await sql.execute(INSERT)
        with pytest.raises(NotFreshEnough):
            await of_query(copy, Freshness(2), 1000)
        async with trio.open_nursery() as nursery:
            seen = []

            async def waiting() -> None:
                seen.append(await of_query(copy, Freshness(2), 4000))

            nursery.start_soon(waiting)
            await trio.sleep(1)
            await catch_up(followed, database)
        assert seen[0] >= 2


# --- a model -------------------------------------------------------------------------------------

EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), st.none()),
        st.tuples(st.sampled_from(("hold", "release")), st.none()),
        st.tuples(st.just("kill"), st.sampled_from(("coordinator", "log", "shard 0"))),
        st.tuples(st.just("sleep"), st.sampled_from((0.0, 0.5, 3.0, 7.0))),
        st.tuples(
            st.just("read"),
            st.tuples(
                st.sampled_from(sorted(READS)),
                st.integers(-2, 4),
                st.sampled_from((1.0, 700.0, 5500.0, 20_000.0)),
            ),
        ),
    ),
    max_size=25,
)


class Machine:
    """The model is the log: it says which versions are durable, and when."""

    def __init__(self, nursery: trio.Nursery, log: HeldLog, world: Laboratory) -> None:
        self.nursery, self.log, self.world = nursery, log, world
        self.reads = 0

    async def do(self, sql: SqlDatabase, what: str, how: Any) -> None:
        if what == "commit":
            self.nursery.start_soon(self.commit, sql)
        elif what == "read":
            self.reads += 1
            self.nursery.start_soon(self.read, sql, *how)
        elif what == "kill":
            self.world.kill(how)
        elif what == "sleep":
            await trio.sleep(how)
        else:
            self.log.release()  # what is under way ends, and what comes next is held
            if what == "hold":
                self.log.hold()
        await trio.testing.wait_all_tasks_blocked()

    async def commit(self, sql: SqlDatabase) -> None:
        with suppress(OutcomeUnknown):
            await sql.execute(INSERT)

    async def read(self, sql: SqlDatabase, name: str, ahead: int, timeout_ms: float) -> None:
        wanted, began = max(0, self.log.versions + ahead), trio.current_time()
        try:
            version = await READS[name](sql, Freshness(wanted), timeout_ms)
        except NotFreshEnough:
            assert self.log.versions < wanted
            waited = trio.current_time() - began
            assert waited <= timeout_ms / 1000 + 1e-9
            assert waited >= min(timeout_ms / 1000, VERSION_WAIT_SECONDS) - 1e-9
        except OutcomeUnknown:
            assert name == "of_write"
        except QueryCanceled:  # a commit that hangs, or a database that recovers
            assert trio.current_time() - began >= timeout_ms / 1000 - 1e-9
        else:
            assert wanted <= version <= self.log.versions
        self.reads -= 1


def run_program(events: list[tuple[str, Any]]) -> None:
    async def main() -> None:
        log, world = HeldLog(), Laboratory()
        async with opened(log, world) as database, trio.open_nursery() as nursery:
            sql, machine = SqlDatabase(database, world), Machine(nursery, log, world)
            await sql.execute("create table t (id serial primary key)")
            for what, how in events:
                await machine.do(sql, what, how)
            log.release()
            await trio.sleep(100)
            assert machine.reads == 0

    trio.run(main, clock=MockClock(autojump_threshold=0))


@pytest.mark.long
@settings(deadline=None, max_examples=examples(200))
@given(EVENTS)
def test_a_read_never_goes_back_whatever_befalls_the_database(
    events: list[tuple[str, Any]],
) -> None:
    run_program(events)
