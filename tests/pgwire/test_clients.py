"""Real clients over real sockets: psycopg, asyncpg, pg8000, psql."""

from __future__ import annotations

import asyncio
import datetime
import shutil
import subprocess
from decimal import Decimal
from typing import Any
from uuid import UUID

import asyncpg
import pg8000.native
import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.pgwire.serving import KEY, Served, in_thread, serving

UTC = datetime.timezone.utc  # noqa: UP017 (psycopg returns it)
ROW: tuple[Any, ...] = (
    1,
    2**40,
    "héllo",
    1.5,
    Decimal("12.340"),
    datetime.date(2024, 1, 2),
    datetime.datetime(2024, 1, 2, 3, 4, 5),
    datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC),
    datetime.time(3, 4, 5, 600),
    UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    b"\0\1\xff",
    {"a": [1, None]},
    [1, 2, None],
    True,
    None,
)
CREATE = """create table u (i int, b bigint, s text, f float8, n numeric, d date, ts timestamp,
    tz timestamptz, t time, u uuid, y bytea, j jsonb, a int[], bo boolean, nothing text)"""


def _psycopg(served: Served) -> None:
    with psycopg.connect(served.url) as connection:
        connection.execute("create table t (id int primary key, n text)")
        connection.execute(CREATE)
        given = [Jsonb(each) if isinstance(each, dict) else each for each in ROW]
        places = ", ".join(["%s"] * len(ROW))
        connection.execute(f"insert into u values ({places})", given)
        for binary in (False, True):
            with connection.cursor(binary=binary) as cursor:
                assert cursor.execute("select * from u").fetchone() == ROW
        found = connection.execute("select %s, %s::int, %b + 1", (5, 6, 7)).fetchone()
        assert found == (5, 6, 8)
        with connection.cursor() as cursor:
            every = [(number, str(number)) for number in range(10)]
            cursor.executemany("insert into t values (%s, %s)", every)
            assert cursor.rowcount == 10
        connection.commit()
        with connection.pipeline():
            cursors = [connection.execute("select %s::int", (each,)) for each in range(5)]
            assert [each.fetchone() for each in cursors] == [(each,) for each in range(5)]
        with pytest.raises(psycopg.errors.UniqueViolation) as caught:
            with connection.transaction():
                connection.execute("insert into t values (1, 'again')")
        assert caught.value.diag.constraint_name == "t_pkey"
        assert caught.value.diag.table_name == "t"
        with connection.transaction():
            connection.execute("insert into t values (50, 'x')")
            with pytest.raises(psycopg.errors.UniqueViolation), connection.transaction():
                connection.execute("insert into t values (1, 'again')")
            assert connection.execute("select count(*) from t").fetchone() == (11,)
        found_all = connection.execute(
            "select id from t where id = any(%s) order by id", ([1, 50, 51],)
        ).fetchall()
        assert found_all == [(1,), (50,)]


async def test_psycopg() -> None:
    async with serving() as served:
        await in_thread(_psycopg, served)


def _prepared(served: Served) -> None:
    with psycopg.connect(served.url, autocommit=True) as connection:
        connection.execute("create table t (id int primary key, n text)")
        for number in range(20):
            connection.execute("insert into t values (%s, %s)", (number, "a"), prepare=True)
        assert connection.execute("select count(*) from t").fetchone() == (20,)
        select = "select * from t where id = %s"
        for _ in range(3):
            assert connection.execute(select, (3,), prepare=True).fetchone() == (3, "a")
        with psycopg.connect(served.url) as other:
            other.execute("alter table t add column more int")
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="cached plan"):
            connection.execute(select, (3,), prepare=True)
        connection.execute("deallocate all")


async def test_prepared_statements_of_psycopg() -> None:
    async with serving() as served:
        await in_thread(_prepared, served)


async def _asyncpg(url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute("create table t (id int primary key, n text)")
    await connection.execute(CREATE)
    names = "i, b, s, f, n, d, ts, tz, t, u, y, bo, nothing"  # of others it asks the catalog
    given = (*ROW[:11], *ROW[13:])
    places = ", ".join(f"${number}" for number in range(1, len(given) + 1))
    await connection.execute(f"insert into u ({names}) values ({places})", *given)
    assert tuple(await connection.fetchrow(f"select {names} from u")) == given
    every = [(number, "q") for number in range(200, 210)]
    await connection.executemany("insert into t values ($1, $2)", every)
    async with connection.transaction():
        cursor = connection.cursor("select id from t order by id", prefetch=3)
        assert [row[0] async for row in cursor] == list(range(200, 210))
    with pytest.raises(asyncpg.UniqueViolationError):
        async with connection.transaction():
            await connection.execute("insert into t values (1, 'a')")
            await connection.execute("insert into t values (200, 'a')")
    assert await connection.fetchval("select count(*) from t where id = $1", 1) == 0
    prepared = await connection.prepare("select count(*) from t where id > $1")
    assert await prepared.fetchval(204) == 5
    assert [each.name for each in prepared.get_parameters()] == ["int4"]
    with pytest.raises(asyncpg.UndefinedColumnError) as caught:
        await connection.fetch("select nope")
    assert caught.value.position == "8"
    await connection.close()


async def test_asyncpg() -> None:
    async with serving() as served:
        await in_thread(lambda: asyncio.run(_asyncpg(served.url)))


async def _pool_of_asyncpg(url: str) -> None:
    async with asyncpg.create_pool(url, min_size=1, max_size=2) as pool:
        await pool.execute("create table p (id int primary key, tags text[], data jsonb)")
        await pool.execute("create type mood as enum ('sad', 'happy')")
        for number in range(3):  # a connection that comes back is reset
            async with pool.acquire() as connection:
                await connection.execute("set application_name = 'kept?'")
                given = (number, ["a", None, "b,c"], '{"k": [1, 2]}')
                await connection.execute("insert into p values ($1, $2, $3)", *given)
                found = await connection.fetchrow("select * from p where id = $1", number)
                assert tuple(found) == given
                assert await connection.fetchval("select $1::mood", "happy") == "happy"
            assert await pool.fetchval("show application_name") == ""
        many = [pool.fetchval("select count(*) from p where id >= $1", each) for each in range(8)]
        assert await asyncio.gather(*many) == [3, 2, 1, 0, 0, 0, 0, 0]


async def test_a_pool_of_asyncpg() -> None:
    async with serving() as served:
        await in_thread(lambda: asyncio.run(_pool_of_asyncpg(served.url)))


def _pg8000(port: int) -> None:
    connection = pg8000.native.Connection(
        "me", password=KEY, host="127.0.0.1", port=port, database="main"
    )
    connection.run("create table t (id int primary key, n text)")
    connection.run("insert into t values (:a, :b)", a=1, b="x")
    connection.run("begin")
    connection.run("insert into t values (:a, :b)", a=2, b="y")
    connection.run("rollback")
    assert connection.run("select id, n from t where id < :most", most=9) == [[1, "x"]]
    with pytest.raises(pg8000.exceptions.DatabaseError):
        connection.run("insert into t values (1, 'again')")
    assert connection.run("select 1, null, 'a'") == [[1, None, "a"]]
    connection.close()


async def test_pg8000() -> None:
    async with serving() as served:
        await in_thread(_pg8000, served.port)


def _psql(url: str, *statements: str) -> tuple[str, str]:
    arguments = [part for each in statements for part in ("-c", each)]
    psql = shutil.which("psql")
    assert psql is not None
    done = subprocess.run(
        [psql, "-X", "-A", "-t", url, *arguments], capture_output=True, text=True, timeout=60
    )
    return done.stdout, done.stderr


@pytest.mark.skipif(shutil.which("psql") is None, reason="there is no psql")
async def test_psql() -> None:
    async with serving() as served:
        out, errors = await in_thread(
            _psql,
            served.url,
            "create table t (id int primary key, n text)",
            "insert into t values (1, 'a'), (2, null) returning id",
            "begin; insert into t values (3, 'c'); select count(*) from t; rollback",
            "select * from t order by id",
            "select nope from t",
        )
    assert out.splitlines() == [
        *("CREATE TABLE", "1", "2", "INSERT 0 2"),
        *("BEGIN", "INSERT 0 1", "3", "ROLLBACK", "1|a", "2|"),
    ]
    assert errors.splitlines() == [
        'ERROR:  column "nope" does not exist',
        "LINE 1: select nope from t",
        "               ^",
    ]
