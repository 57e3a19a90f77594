"""Advisory locks over the wire: who waits for whom, and when a lock ends."""

from __future__ import annotations

import asyncio
import threading

import asyncpg
import psycopg
import pytest
import trio

from tests.pgwire.serving import PATIENCE_SECONDS, Served, in_thread, serving
from tests.pgwire.wire import Wire, code, query, rows, tags

YES, NO = [(b"t",)], [(b"f",)]


async def tried(wire: Wire, key: str = "1", name: str = "pg_try_advisory_lock") -> bool:
    found = rows(await wire.run(f"select {name}({key})"))
    assert found in (YES, NO), found
    return found == YES


async def waits(wire: Wire, sql: str) -> None:
    """Send a statement that has to wait, and see that it does."""
    await wire.send(query(sql))
    with trio.move_on_after(0.2) as scope:
        await wire.message()
    assert scope.cancelled_caught


async def test_a_lock_excludes_other_sessions_until_it_is_given_up() -> None:
    async with serving() as served:
        async with await Wire.enter(served.port) as one, await Wire.enter(served.port) as two:
            assert tags(await one.run("select pg_advisory_lock(1)")) == ["SELECT 1"]
            assert not await tried(two) and await tried(two, "2") and await tried(two, "0, 1")
            assert await tried(one), "a session never waits for itself"
            await waits(two, "select pg_advisory_lock(1)")
            assert rows(await one.run("select pg_advisory_unlock(1)")) == YES
            assert rows(await one.run("select pg_advisory_unlock(2)")) == NO
            assert rows(await one.run("select pg_advisory_unlock(1)")) == YES
            assert rows(await one.run("select pg_advisory_unlock(1)")) == NO
            assert tags(await two.until_ready()) == ["SELECT 1"]
            assert not await tried(one)


async def test_shared_locks_exclude_only_the_others_and_wait_in_order() -> None:
    async with serving() as served:
        async with (
            await Wire.enter(served.port) as one,
            await Wire.enter(served.port) as two,
            await Wire.enter(served.port) as three,
        ):
            await one.run("select pg_advisory_lock_shared(1)")
            assert await tried(two, name="pg_try_advisory_lock_shared")
            assert rows(await two.run("select pg_advisory_unlock_shared(1)")) == YES
            await waits(two, "select pg_advisory_lock(1)")
            assert not await tried(three, name="pg_try_advisory_lock_shared"), "it was later"
            assert await tried(one, name="pg_try_advisory_lock_shared"), "it has one already"
            await one.run("select pg_advisory_unlock_all()")
            assert tags(await two.until_ready()) == ["SELECT 1"]


@pytest.mark.parametrize("end", ["commit", "rollback", "rollback to s; commit"])
async def test_a_lock_of_a_transaction_ends_with_it(end: str) -> None:
    async with serving() as served:
        async with await Wire.enter(served.port) as one, await Wire.enter(served.port) as two:
            await one.run("begin; savepoint s")
            await one.run("select pg_advisory_xact_lock(1), pg_advisory_lock(2)")
            assert rows(await one.run("select pg_advisory_unlock(1)")) == NO
            assert not await tried(two) and not await tried(two, "2")
            await one.run(end)
            assert await tried(two) and not await tried(two, "2"), "that is of the session"
            await one.run("select pg_advisory_xact_lock(3)")
            assert await tried(two, "3"), "each statement alone is a transaction"


@pytest.mark.parametrize(
    "end", ["select pg_advisory_unlock_all()", "discard all", "cut", "terminate"]
)
async def test_locks_end_with_the_session_however_it_ends(end: str) -> None:
    async with serving() as served, await Wire.enter(served.port) as two:
        async with await Wire.enter(served.port) as one:
            await one.run(
                "select pg_advisory_lock(n), pg_advisory_lock(n) from generate_series(1, 3) n"
            )
            assert not await tried(two)
            await waits(two, "select pg_advisory_lock(3)")
            if end not in ("cut", "terminate"):
                await one.run(end)
                assert tags(await two.until_ready()) == ["SELECT 1"]
                assert await tried(two)
            elif end == "terminate":
                await one.send(b"X\0\0\0\4")
        with trio.fail_after(PATIENCE_SECONDS):
            if end in ("cut", "terminate"):
                assert tags(await two.until_ready()) == ["SELECT 1"]


async def test_a_circle_of_waits_is_found() -> None:
    async with serving() as served:
        async with await Wire.enter(served.port) as one, await Wire.enter(served.port) as two:
            await one.run("begin; select pg_advisory_xact_lock(1)")
            await two.run("begin; select pg_advisory_xact_lock(2)")
            await waits(one, "select pg_advisory_xact_lock(2)")
            assert code(await two.run("select pg_advisory_xact_lock(1)")) == "40P01"
            await two.run("rollback")
            assert tags(await one.until_ready()) == ["SELECT 1"]


async def test_a_wait_ends_by_its_deadline_and_takes_nothing() -> None:
    async with serving() as served:
        async with await Wire.enter(served.port) as one, await Wire.enter(served.port) as two:
            await one.run("select pg_advisory_lock(1)")
            await two.run("set statement_timeout = 50")
            assert code(await two.run("select pg_advisory_lock(2), pg_advisory_lock(1)")) == "57014"
            assert await tried(one, "2")
            await one.run("select pg_advisory_unlock(1)")
            await two.run("reset statement_timeout")
            assert await tried(two)


async def test_a_statement_that_fails_takes_nothing() -> None:
    async with serving() as served:
        async with await Wire.enter(served.port) as one, await Wire.enter(served.port) as two:
            await one.run("select pg_advisory_lock(7)")
            assert code(await one.run("select pg_advisory_lock(1), 1 / 0")) == "22012"
            assert await tried(two) and not await tried(two, "7")
            assert code(await one.run("select pg_advisory_lock(n) from generate_series(2, 1002) n"))
            assert await tried(two, "3")


async def test_a_statement_that_is_run_again_takes_each_lock_once() -> None:
    """Sessions change one row at once, so that some of their statements conflict."""
    change = "update t set n = n + 1 where pg_try_advisory_lock_shared(id)"
    times = 5
    async with serving() as served:
        wires = [await Wire.enter(served.port) for _ in range(6)]
        await wires[0].run("create table t (id int primary key, n int)")
        await wires[0].run("insert into t values (1, 0)")

        async def run(wire: Wire) -> None:
            for _ in range(times):
                assert tags(await wire.run(change)) == ["UPDATE 1"]
            unlock = "select pg_advisory_unlock_shared(1)"
            found = [rows(await wire.run(unlock)) for _ in range(times + 1)]
            assert found == [YES] * times + [NO]

        async with trio.open_nursery() as nursery:
            for wire in wires:
                nursery.start_soon(run, wire)
        assert rows(await wires[0].run("select n from t")) == [(b"%d" % (times * len(wires)),)]
        assert await tried(wires[0])
        for wire in wires:
            await wire.__aexit__(None, None, None)


def cancelled(served: Served) -> None:
    with (
        psycopg.connect(served.url, autocommit=True) as one,
        psycopg.connect(served.url, autocommit=True) as two,
    ):
        one.execute("SELECT pg_advisory_lock(1)")
        two.execute("SET statement_timeout = 600000")

        timer = threading.Timer(0.2, two.cancel_safe)
        timer.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            two.execute("SELECT pg_advisory_lock(1)")
        timer.join()
        assert two.execute("SELECT pg_try_advisory_lock(1)").fetchone() == (False,)


async def pooled(served: Served) -> None:
    async with asyncpg.create_pool(served.url, min_size=1, max_size=1) as pool:
        async with pool.acquire() as connection:
            await connection.fetch("SELECT pg_advisory_lock($1)", 1)
        other = await asyncpg.connect(served.url)
        assert await other.fetchval("SELECT pg_try_advisory_lock($1)", 1)
        await other.close()


async def test_drivers_cancel_a_wait_and_reset_a_session() -> None:
    async with serving() as served:
        await in_thread(cancelled, served)
        await in_thread(asyncio.run, pooled(served))
