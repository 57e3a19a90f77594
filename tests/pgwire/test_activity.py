"""pg_stat_activity, pg_cancel_backend and pg_terminate_backend: connections as others see them."""

from __future__ import annotations

import trio

from tests.pgwire.serving import Served, serving
from tests.pgwire.wire import Message, Wire, code, query, rows, startup

OTHERS = "select state, query from pg_stat_activity where pid <> pg_backend_pid() order by pid"


def cells(messages: list[Message]) -> list[list[str]]:
    """Return the rows as texts."""
    return [[(cell or b"").decode() for cell in row] for row in rows(messages)]


async def number_of(wire: Wire) -> str:
    ((number,),) = cells(await wire.run("select pg_backend_pid()"))
    return number


async def with_second(served: Served) -> bytes:
    """Make another database; return the startup that names it."""
    plane, grant = served.service.plane, await served.grant()
    await plane.records.create(grant, "second")
    return startup(user="me", database="second")


async def seen(wire: Wire, wanted: list[str]) -> None:
    """Wait until a connection sees another do that."""
    while wanted not in cells(await wire.run(OTHERS)):
        await trio.lowlevel.checkpoint()


async def test_a_connection_sees_itself_and_others_of_its_database() -> None:
    async with serving() as served:
        second = await with_second(served)
        async with (
            await Wire.enter(served.port) as one,
            await Wire.enter(served.port) as two,
            await Wire.enter(served.port, second) as elsewhere,
        ):
            await two.run("begin")
            await two.run("select 'last'")
            own = "select state, query from pg_stat_activity where pid = pg_backend_pid()"
            assert cells(await one.run(own)) == [["active", own]]
            assert cells(await one.run(OTHERS)) == [["idle in transaction", "select 'last'"]]
            await two.run("nonsense")
            assert cells(await one.run(OTHERS))[0][0] == "idle in transaction (aborted)"
            assert cells(await elsewhere.run(OTHERS)) == []
            backends = "select numbackends from pg_stat_database"
            assert cells(await elsewhere.run(backends)) == [["1"]]


async def test_a_statement_is_cancelled_by_another_connection_of_its_database() -> None:
    async with serving() as served:
        second = await with_second(served)
        async with (
            await Wire.enter(served.port) as one,
            await Wire.enter(served.port) as two,
            await Wire.enter(served.port, second) as elsewhere,
        ):
            number = await number_of(two)
            await two.send(query("select pg_sleep(600)"))
            await seen(one, ["active", "select pg_sleep(600)"])
            cancel = f"select pg_cancel_backend({number})"
            assert cells(await elsewhere.run(cancel)) == [["f"]]
            assert cells(await one.run(cancel)) == [["t"]]
            assert code(await two.until_ready()) == "57014"
            assert cells(await two.run("select 1")) == [["1"]]


async def test_a_connection_that_is_terminated_ends_and_is_seen_no_more() -> None:
    async with serving() as served:
        async with await Wire.enter(served.port) as one, await Wire.enter(served.port) as two:
            number = await number_of(two)
            answer = await one.run(f"select pg_terminate_backend({number})")
            assert cells(answer) == [["t"]]
            assert (await two.until_end())[-1].fields()["C"] == "57P01"
            assert cells(await one.run(OTHERS)) == []
            assert cells(await one.run(f"select pg_terminate_backend({number})")) == [["f"]]


async def test_who_waits_for_a_lock_is_listed_with_whom_it_waits_for() -> None:
    async with serving() as served:
        async with await Wire.enter(served.port) as one, await Wire.enter(served.port) as two:
            first, second = await number_of(one), await number_of(two)
            await one.run("select pg_advisory_lock(7)")
            await two.send(query("select pg_advisory_lock(7)"))
            await seen(one, ["active", "select pg_advisory_lock(7)"])
            listed = "select pid, objid, granted from pg_locks order by granted"
            while len(found := cells(await one.run(listed))) < 2:
                await trio.lowlevel.checkpoint()
            assert found == [[second, "7", "f"], [first, "7", "t"]]
            blocked = f"select pg_blocking_pids({second}), pg_blocking_pids({first})"
            assert cells(await one.run(blocked)) == [[f"{{{first}}}", "{}"]]
            await one.run("select pg_advisory_unlock(7)")
            await two.until_ready()
