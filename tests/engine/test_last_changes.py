"""When each table and each definition was last changed, also after a restart."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import msgspec
import pytest

from qserver.durability.checkpoint import decode_checkpoint
from qserver.durability.memory import MemoryLog
from qserver.durability.seal import sealed, unsealed
from qserver.engine.world import OrdinaryWorld
from qserver.errors import HistoryTooOld, SerializationFailure
from qserver.query.sql_database import SqlDatabase, Statement
from qserver.storage.snapshot import Snapshot
from qserver.storage.writes import Moment
from tests.engine import fakes


@asynccontextmanager
async def opened_sql_at(log: MemoryLog, clock: list[float]) -> AsyncIterator[SqlDatabase]:
    def report(text: str, error: Exception) -> None:
        raise AssertionError(text) from error

    world = OrdinaryWorld(lambda: clock[0], Random(0), report)
    async with fakes.opened(log, world) as database:
        yield SqlDatabase(database, world)


def changes(snapshot: Snapshot) -> dict[str, Moment]:
    tables = snapshot.catalog.tables.values()
    return {table.name: snapshot.last_change(table) for table in tables}


async def snapshot_of(sql: SqlDatabase) -> Snapshot:
    return await sql.database.wait_durable_snapshot()


async def test_a_table_changes_with_its_rows_and_its_definition_and_no_other() -> None:
    clock = [1000.0]
    async with opened_sql_at(MemoryLog(), clock) as sql:

        async def changed_by(text: str) -> set[str]:
            clock[0] += 1
            before = changes(await snapshot_of(sql))
            version = (await sql.execute(text)).version
            after = changes(await snapshot_of(sql))
            names = {name for name, at in after.items() if at != before.get(name)}
            assert all(after[name] == (version, clock[0]) for name in names)
            return names

        assert await changed_by("create table a (id int primary key, x int)") == {"a"}
        assert await changed_by("create table b (id int primary key)") == {"b"}
        assert await changed_by("insert into a values (1, 1)") == {"a"}
        assert await changed_by("update a set x = 2") == {"a"}
        assert await changed_by("create index on a (x)") == {"a"}
        assert await changed_by("update a set x = 3 where id = 7") == set()
        assert await changed_by("select * from a") == set()
        assert await changed_by("alter table b add column y int") == {"b"}
        assert await changed_by("delete from a") == {"a"}
        assert await changed_by("truncate b") == {"b"}
        assert await changed_by("create view v as select * from a") == set()
        view = (await snapshot_of(sql)).catalog.last_change_of("v")
        assert view[1] == clock[0]
        await changed_by("create or replace view v as select id, x + 1 as x from a")
        assert (await snapshot_of(sql)).catalog.last_change_of("v") > view
        assert await changed_by("alter table a rename to c") == {"c"}
        assert await changed_by("drop table b") == set()
        catalog = (await snapshot_of(sql)).catalog
        assert (
            catalog.last_change_of("b") == catalog.last_change == (catalog.last_change[0], clock[0])
        )


@pytest.mark.parametrize("checkpointed", [False, True])
async def test_the_changes_are_the_same_after_a_restart(checkpointed: bool) -> None:
    log, clock = MemoryLog(), [1000.0]
    async with opened_sql_at(log, clock) as sql:
        for text in (
            "create table a (id int primary key)",
            "create table b (id int primary key)",
            "insert into a values (1)",
            "create table c (id int primary key)",
            "insert into b values (1)",
            "delete from a",
        ):
            clock[0] += 1
            await sql.execute(text)
        if checkpointed:
            await sql.database.checkpoint()
            clock[0] += 1
            await sql.execute("insert into c values (1)")
        before = await snapshot_of(sql)
    clock[0] += 100
    async with opened_sql_at(log, clock) as sql:
        after = await snapshot_of(sql)
    assert changes(after) == changes(before)
    assert after.catalog.moments == before.catalog.moments
    assert after.catalog.last_change == before.catalog.last_change
    assert len(set(changes(after).values())) == 3


async def test_of_an_older_checkpoint_everything_counts_as_changed_by_its_version() -> None:
    log, clock = MemoryLog(), [1000.0]
    async with opened_sql_at(log, clock) as sql:
        await sql.execute("create table a (id int primary key)")
        await sql.execute("insert into a values (1)")
        await sql.execute("create table b (id int primary key)")
        await sql.database.checkpoint()
    stored = await log.load_checkpoint()
    assert stored is not None
    version, data = stored
    fields = msgspec.msgpack.decode(unsealed(data, "it"))
    fields = [*fields[:5], {number: tree[:4] for number, tree in fields[5].items()}, *fields[6:9]]
    older = sealed(msgspec.msgpack.encode(fields))
    assert decode_checkpoint(version, older).version == version
    await log.save_checkpoint(version, older)
    async with opened_sql_at(log, clock) as sql:
        snapshot = await snapshot_of(sql)
        assert changes(snapshot) == dict.fromkeys("ab", (version, 1000.0))
        assert snapshot.catalog.last_change == (version, 1000.0)


async def test_a_change_since_a_version_that_is_older_than_history_cannot_be_told() -> None:
    clock = [1000.0]
    async with opened_sql_at(MemoryLog(), clock) as sql:
        sql.database.keep_history(60.0)
        await sql.execute("create table a (id int primary key, x int)")
        await sql.execute("create table b (id int primary key)")
        first = (await sql.execute("insert into a values (1, 1)")).version
        clock[0] += 50
        second = (await sql.execute("update a set x = 2")).version
        clock[0] += 50  # the first was the newest until 50 seconds ago
        writing, reading = "update a set x = x + 1", "select x from a"
        for sent in (writing, reading):
            with pytest.raises(SerializationFailure):
                await sql.transaction([Statement(sent)], if_version=first)
        clock[0] += 50  # now it is older than history
        for sent in (writing, reading):
            for dry_run in (False, True):
                with pytest.raises(HistoryTooOld):
                    await sql.transaction([Statement(sent)], if_version=first, dry_run=dry_run)
        for sent in (reading, "select * from b", "insert into b values (1)"):
            since = second if "from a" in sent else first
            await sql.transaction([Statement(sent)], if_version=since)  # nothing has changed
        sql.database.keep_history(0.0)
        with pytest.raises(SerializationFailure):  # that keeps no version is no reason
            await sql.transaction([Statement(reading)], if_version=first)
        assert (await sql.execute(reading)).rows == [(2,)]
