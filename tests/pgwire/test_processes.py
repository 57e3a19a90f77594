"""Several processes, and the end of one: connections move to their databases, and drain."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import psycopg
import pytest
import trio

from tests.pgwire.serving import in_thread, serving
from tests.pgwire.test_authentication import TLS
from tests.pgwire.wire import Wire, code, kinds, query, rows, tags
from tests.processes.machine import KEY, Machine, port_of_no_client

CONNECTIONS = 6


def _used(port: int, databases: list[str], options: str) -> None:
    """Every database is reached over connections that any process may have accepted."""
    for name in databases:
        url = f"postgresql://me:{KEY}@127.0.0.1:{port}/{name}?{options}"
        for at in range(CONNECTIONS):
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("create table if not exists t (id int, name text)")
                with connection.transaction():
                    connection.execute("insert into t values (%s, %s)", (at, name))
                found = connection.execute("select distinct name from t").fetchall()
                assert found == [(name,)]


def _cancelled(port: int, name: str) -> None:
    """Cancel a statement; any process may have accepted the two connections."""
    url = f"postgresql://me:{KEY}@127.0.0.1:{port}/{name}"
    with psycopg.connect(url, autocommit=True) as connection:
        timer = threading.Timer(0.3, connection.cancel_safe)
        timer.start()
        with pytest.raises(psycopg.errors.QueryCanceled, match="user request"):
            connection.execute("select count(*) from generate_series(1, 2000000000)")
        timer.join()
        assert connection.execute("select 1").fetchone() == (1,)


async def test_a_connection_moves_to_the_owner_of_its_database(tmp_path: Path) -> None:
    port = port_of_no_client()
    machine = Machine(tmp_path, {"QSERVER_PG_PORT": str(port)}, processes=2)
    async with machine.running():
        databases = await machine.make_databases(4)
        assert len(set(databases.values())) == 2, "both own some"
        await in_thread(_used, port, list(databases), "sslmode=disable")


@pytest.mark.long
async def test_a_cancel_reaches_the_owner(tmp_path: Path) -> None:
    port = port_of_no_client()
    machine = Machine(tmp_path, {"QSERVER_PG_PORT": str(port)}, processes=2)
    async with machine.running():
        for name in await machine.make_databases(2):
            for _ in range(CONNECTIONS):
                await in_thread(_cancelled, port, name)


def _when_ready(port: int) -> None:
    """Wait for a server, of which only this port can be asked."""
    for _ in range(600):
        try:
            psycopg.connect(f"postgresql://me:{KEY}@127.0.0.1:{port}/main").close()
            return
        except psycopg.OperationalError:
            time.sleep(0.1)
    raise AssertionError("it does not begin")


async def test_an_encrypted_connection_is_relayed_to_the_owner(tmp_path: Path) -> None:
    port = port_of_no_client()
    machine = Machine(tmp_path, {"QSERVER_PG_PORT": str(port), **TLS}, processes=2)
    try:
        machine.launch()
        await in_thread(_when_ready, port)
        for _ in range(2):
            await in_thread(_used, port, ["main"], "sslmode=require")
        assert await machine.stop() == 0, machine.output
        assert machine.bugs == []
    finally:
        machine.kill()


async def test_a_server_that_stops_lets_transactions_end() -> None:
    async with serving() as served:
        async with (
            await Wire.enter(served.port) as idle,
            await Wire.enter(served.port) as inside,
            await Wire.enter(served.port) as running,
        ):
            await idle.run("create table t (id int primary key)")
            await inside.run("begin; insert into t values (1)")
            await running.send(query("select count(*) from generate_series(1, 300000)"))
            served.stop.set()
            got = await idle.until_end()
            assert code(got) == "57P01" and got[0].fields()["S"] == "FATAL"
            assert tags(await inside.run("insert into t values (2)")) == ["INSERT 0 1"]
            got = await inside.run("commit")
            assert tags(got) == ["COMMIT"]
            assert code(await inside.until_end()) == "57P01"
            got = await running.until_end()
            assert rows(got) == [(b"300000",)] and kinds(got)[-1] == "E"
            with pytest.raises(OSError):
                await trio.open_tcp_stream("127.0.0.1", served.port)
