"""The difference of two versions goes by the names of tables, whatever became of their trees."""

from __future__ import annotations

from qserver.durability.memory import MemoryLog
from qserver.engine.database import Database
from qserver.query.sql_database import SqlDatabase
from qserver.storage.snapshot import Snapshot
from qserver.storage.snapshot_changes import snapshot_changes
from tests.engine.fakes import Laboratory
from tests.engine.test_history import newest, opened

Told = list[tuple[str, object, str]]


def told(before: Snapshot, after: Snapshot) -> Told:
    found = [each for each in snapshot_changes(before, after) if each is not None]
    return [(name, key, change.op) for name, key, change in found]


async def filled(database: Database, world: Laboratory) -> SqlDatabase:
    sql = SqlDatabase(database, world)
    await sql.execute("create sequence s")
    await sql.execute("create table t (a integer primary key, b integer unique)")
    await sql.execute("insert into t values (1, 1), (2, 2)")
    return sql


async def test_what_a_restore_made_anew_differs_by_its_rows_alone() -> None:
    world = Laboratory()
    async with opened(MemoryLog(), world) as database:
        sql = await filled(database, world)
        old = newest(database)
        await sql.execute("drop table t")
        await sql.execute("drop sequence s")
        await database.restore_version(old.version)
        assert told(old, newest(database)) == []
        await sql.execute("update t set b = 7 where a = 2")
        assert told(old, newest(database)) == [("t", (2,), "update")]
        assert told(newest(database), old) == [("t", (2,), "update")]


async def test_rows_are_listed_beside_a_definition_that_leaves_their_form() -> None:
    world = Laboratory()
    async with opened(MemoryLog(), world) as database:
        sql = await filled(database, world)
        old = newest(database)
        await sql.execute("alter table t alter column b set default 5")
        await sql.execute("alter table t rename column b to c")
        await sql.execute("create index on t (c)")
        await sql.execute("insert into t (a) values (3)")
        await sql.execute("update t set c = 9 where a = 1")
        assert told(old, newest(database)) == [
            ("t", None, "schema"), ("t", (1,), "update"), ("t", (3,), "insert"),
        ]  # fmt: skip


async def test_a_table_of_another_name_is_another_table() -> None:
    world = Laboratory()
    async with opened(MemoryLog(), world) as database:
        sql = await filled(database, world)
        old = newest(database)
        await sql.execute("alter table t rename to u")
        await sql.execute("delete from u where a = 1")
        there, back = told(old, newest(database)), told(newest(database), old)
        assert there == [("t", None, "schema"), ("u", None, "schema"), ("u", (2,), "insert")]
        assert back == [
            ("t", None, "schema"), ("t", (1,), "insert"), ("t", (2,), "insert"),
            ("u", None, "schema"),
        ]  # fmt: skip


async def test_rows_of_another_form_are_not_listed() -> None:
    world = Laboratory()
    async with opened(MemoryLog(), world) as database:
        sql = await filled(database, world)
        old = newest(database)
        await sql.execute("alter table t drop column b")
        await sql.execute("insert into t values (3)")
        assert told(old, newest(database)) == [("t", None, "schema")]
