"""SQL needs only the reading half of a database to read, and refuses the rest."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock

from qserver.engine.database import Database
from qserver.engine.freshness import FreshSnapshots
from qserver.engine.history import AsOf
from qserver.engine.snapshot_source import SnapshotSource
from qserver.engine.work import FOREVER, before, begin
from qserver.errors import QueryCanceled, ReadOnlyTransaction, SqlSyntaxError, UndefinedTable
from qserver.query.sql_database import RunOptions, SqlDatabase, Statement
from qserver.query.sql_port import ReadableDatabase, WritableDatabase
from qserver.storage.snapshot import Snapshot
from tests.engine.fakes import HeldLog, Laboratory, opened


class Follower(FreshSnapshots):
    """Shows the durable snapshots of another database, when it is told to catch up."""

    writer = None

    def __init__(self, followed: Database) -> None:
        self.snapshots = SnapshotSource()
        self.page_cache = followed.page_cache
        self.watches = followed.watches
        self._followed = followed
        self._news = trio.Event()

    def catch_up(self) -> None:
        snapshot = self._followed.snapshots.take()
        assert snapshot is not None
        self.snapshots.show(snapshot)
        self._news.set()
        self._news = trio.Event()

    async def wait_durable_snapshot(self, deadline: float = FOREVER, version: int = 0) -> Snapshot:
        async def wait() -> Snapshot:
            while (snapshot := self.snapshots.take()) is None or snapshot.version < version:
                await self._news.wait()
            return snapshot

        return await before(deadline, wait)  # type: ignore[no-any-return]

    async def snapshot_at(self, as_of: AsOf, deadline: float = FOREVER) -> Snapshot:
        return await self._followed.snapshot_at(as_of, deadline)


@asynccontextmanager
async def followed(log: HeldLog | None = None) -> AsyncIterator[tuple[SqlDatabase, Follower]]:
    """A writer with a table of two rows, and a follower that has not caught up yet."""
    world = Laboratory()
    async with opened(log, world) as database:
        sql = SqlDatabase(database, world)
        await sql.execute("create table t (id serial primary key, v text)")
        await sql.execute("insert into t (v) values ('a'), ('b')")
        yield sql, Follower(database)


def halves(
    database: Database, follower: Follower
) -> tuple[WritableDatabase, ReadableDatabase, ReadableDatabase]:
    """What mypy checks: the engine has both halves, a follower one."""
    return database, database, follower


async def test_a_follower_serves_reads_of_every_kind() -> None:
    async with followed() as (writer, follower):
        follower.catch_up()
        sql = SqlDatabase(follower, Laboratory())
        read = "select v from t order by id"
        assert (await sql.execute(read)).rows == [("a",), ("b",)]
        two = await sql.transaction((Statement("select count(*) from t"), Statement(read)))
        assert [each.rows for each in two.results] == [[(2,)], [("a",), ("b",)]]
        begun, rest = begin(sql.perform((Statement(read),), RunOptions()))
        assert rest is None and begun.version == two.version
        stream = await sql.stream(read)
        assert await stream.step() == [("a",), ("b",)]
        await writer.execute("insert into t (v) values ('c')")
        assert (await sql.execute("select count(*) from t")).rows == [(2,)]
        follower.catch_up()
        assert (await sql.execute("select count(*) from t")).rows == [(3,)]
        with pytest.raises(AssertionError, match="no engine"):
            _ = sql.database


@pytest.mark.parametrize(
    "statement",
    [
        "insert into t (v) values ('x')",
        "update t set v = 'x'",
        "delete from t where id = 77",
        "create table u (a int)",
        "select nextval('t_id_seq')",
        "select lastval()",
        "select setval('t_id_seq', 5)",
    ],
)
async def test_a_follower_refuses_what_writes(statement: str) -> None:
    async with followed() as (writer, follower):
        follower.catch_up()
        sql = SqlDatabase(follower, Laboratory())
        for count in (1, 2):
            reads = [Statement("select 1")] * (count - 1)
            with pytest.raises(ReadOnlyTransaction) as caught:
                await sql.transaction((*reads, Statement(statement)))
            assert (caught.value.code, caught.value.statement) == ("25006", count - 1)
            hint = caught.value.hint or ""  # of a sequence: or leave out as_of
            assert hint.endswith("end it to the server that writes this database.")
        assert (await writer.execute("select count(*) from t")).rows == [(2,)]


async def test_a_follower_tells_mistakes_of_several_statements_as_such() -> None:
    async with followed() as (_, follower):
        follower.catch_up()
        sql = SqlDatabase(follower, Laboratory())
        for wrong, kind in (("selec 1", SqlSyntaxError), ("select * from nowhere", UndefinedTable)):
            with pytest.raises(kind) as caught:
                await sql.transaction((Statement("select 1"), Statement(wrong)))
            assert caught.value.statement == 1


async def test_a_read_waits_until_a_follower_has_something_to_show(
    autojump_clock: MockClock,
) -> None:
    async with followed() as (_, follower), trio.open_nursery() as nursery:
        sql = SqlDatabase(follower, Laboratory())
        with pytest.raises(QueryCanceled):
            await sql.execute("select 1", timeout_ms=100)

        async def catch_up_later() -> None:
            await trio.sleep(5)
            follower.catch_up()

        nursery.start_soon(catch_up_later)
        assert (await sql.execute("select count(*) from t")).rows == [(2,)]
        assert trio.current_time() >= 5


async def test_a_version_is_waited_for(autojump_clock: MockClock) -> None:
    log = HeldLog()
    async with followed(log) as (writer, follower), trio.open_nursery() as nursery:
        assert [each.writer for each in halves(writer.database, follower)[1:]] == [
            writer.database,
            None,
        ]
        database = writer.database
        version = (await database.wait_durable_snapshot()).version
        log.hold()
        nursery.start_soon(writer.execute, "insert into t (v) values ('c')")
        with pytest.raises(QueryCanceled):
            await database.wait_durable_snapshot(trio.current_time() + 1, version + 1)
        assert (await database.wait_durable_snapshot(version=version)).version == version
        log.release()
        found = await database.wait_durable_snapshot(version=version + 1)
        assert found.version == version + 1 and found is database.snapshots.take()
