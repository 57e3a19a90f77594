"""Definitions in the feed: with what it tells, a reader has the tables, whatever came together."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

import pytest

from qserver.engine.work import run
from qserver.query.sql_database import RunOptions, SqlDatabase, Statement
from qserver.web.streaming.feed import TableFilter, some_changes
from qserver.web.streaming.readers import Readers
from tests.sql.databases import opened_sql

TABLES = (
    "CREATE TABLE a (id INT PRIMARY KEY, v INT, x TEXT)",
    "CREATE TABLE b (y TEXT, n INT)",
    "INSERT INTO a VALUES (1, 1, 'one'), (2, 2, 'two'), (3, 3, 'three')",
    "INSERT INTO b VALUES ('p', 1), ('q', 2), ('p', 1)",
)

Rows: TypeAlias = list[dict[str, Any]]

CHANGES = {
    "alone": ["ALTER TABLE a ADD COLUMN w INT DEFAULT 7"],
    "several": ["ALTER TABLE a ADD COLUMN w INT DEFAULT 7", "ALTER TABLE a DROP COLUMN v"],
    "then an insert": ["ALTER TABLE a ADD COLUMN w INT", "INSERT INTO a VALUES (4, 4, 'f', 4)"],
    "then an update": ["ALTER TABLE a ADD w INT DEFAULT 7", "UPDATE a SET w = NULL WHERE id = 1"],
    "then a deletion": ["ALTER TABLE a DROP COLUMN v", "DELETE FROM a WHERE id = 2"],
    "all are deleted": ["ALTER TABLE a DROP COLUMN v", "DELETE FROM a"],
    "first an insert": ["INSERT INTO a VALUES (4, 4, 'f')", "ALTER TABLE a ADD w INT DEFAULT 7"],
    "first an update": ["UPDATE a SET v = 9 WHERE id = 3", "ALTER TABLE a ALTER v TYPE BIGINT"],
    "first a deletion": ["DELETE FROM a WHERE id = 1", "ALTER TABLE a ALTER v TYPE TEXT"],
    "undone by hand": [
        "ALTER TABLE a ALTER x TYPE TEXT USING upper(x)",
        "UPDATE a SET x = lower(x)",
    ],
    "another default": [
        "ALTER TABLE a ADD COLUMN w INT DEFAULT 7",
        "ALTER TABLE a ALTER COLUMN w SET DEFAULT 8",
        "UPDATE a SET w = 8 WHERE id = 1",
    ],
    "rewritten twice": [
        "ALTER TABLE a ADD COLUMN w INT",
        "UPDATE a SET w = 5 WHERE id = 1",
        "ALTER TABLE a DROP COLUMN v",
        "DELETE FROM a WHERE id = 2",
    ],
    "renamed": [
        "DELETE FROM a WHERE id = 1",
        "ALTER TABLE a ADD COLUMN w INT",
        "ALTER TABLE a RENAME TO c",
        "INSERT INTO c (id) VALUES (5)",
    ],
    "renamed, and made anew": [
        "ALTER TABLE a RENAME TO c",
        "CREATE TABLE a (k INT PRIMARY KEY)",
        "INSERT INTO a VALUES (1)",
        "DELETE FROM c WHERE id = 1",
    ],
    "emptied": ["DELETE FROM a WHERE id = 1", "TRUNCATE a", "INSERT INTO a (id) VALUES (9)"],
    "emptied and rewritten": ["TRUNCATE a", "ALTER TABLE a DROP v", "INSERT INTO a VALUES (9, '')"],
    "dropped": ["UPDATE a SET v = 0", "DROP TABLE a", "INSERT INTO b VALUES ('r', 3)"],
    "dropped and made anew": [
        "DROP TABLE a",
        "CREATE TABLE a (k INT PRIMARY KEY)",
        "INSERT INTO a VALUES (1)",
    ],
    "new": [
        "CREATE TABLE c (k INT PRIMARY KEY)",
        "INSERT INTO c VALUES (1), (2)",
        "ALTER TABLE c ADD COLUMN w INT DEFAULT 3",
        "DELETE FROM c WHERE k = 1",
    ],
    "without a key": ["ALTER TABLE b ADD COLUMN w INT", "DELETE FROM b WHERE y = 'q'"],
    "bereft of its key": ["ALTER TABLE a DROP CONSTRAINT a_pkey", "DELETE FROM a WHERE id = 2"],
    "another key": [
        "ALTER TABLE a DROP COLUMN id",
        "ALTER TABLE a ADD PRIMARY KEY (v)",
        "UPDATE a SET v = 8 WHERE x = 'two'",
    ],
}
"""What one transaction does. A reader that has done what the definitions say can apply the rest."""


@pytest.mark.long
async def test_a_reader_that_follows_the_definitions_has_the_tables() -> None:
    async with opened_sql() as database, opened_sql() as copy:
        engine = database.database
        engine.keep_history(3600.0)
        for number, (name, statements) in enumerate(CHANGES.items()):
            for sql in ("DROP TABLE IF EXISTS a, b, c", *TABLES):
                await database.execute(sql)
                await copy.execute(sql)
            since = engine.feed.newest()
            engine.feed.open()
            if number % 3 == 2:
                await in_steps(database, statements)
            else:
                await database.transaction([Statement(sql) for sql in statements])
            changes = await read(database, since)
            engine.feed.close()
            assert await read(database, since) == changes, "the log tells the same"
            found = await followed(copy, changes)
            assert in_order(found) == in_order(await contents(database)), (name, changes)


async def test_what_a_definition_does_to_rows_is_not_told_row_by_row() -> None:
    async with opened_sql() as database:
        for sql in TABLES:
            await database.execute(sql)
        database.database.keep_history(3600.0)
        since = database.database.feed.newest()
        for sql in ("ALTER TABLE a ADD COLUMN w INT DEFAULT 7", "TRUNCATE b", "DROP TABLE b"):
            await database.execute(sql)
        changes = await read(database, since)
        assert [(each["table"], each["op"]) for each in changes] == [
            ("a", "schema"),
            ("b", "schema"),
            ("b", "schema"),
        ]


async def test_a_restore_tells_the_rows_of_tables_that_had_another_form() -> None:
    async with opened_sql() as database:
        for sql in TABLES:
            await database.execute(sql)
        engine = database.database
        engine.keep_history(3600.0)
        before = engine.feed.newest()
        await database.execute("ALTER TABLE a DROP COLUMN v")
        await database.execute("DELETE FROM a WHERE id = 1")
        await database.execute("INSERT INTO a VALUES (4, 'four')")
        since = engine.feed.newest()
        await engine.restore_version(before)
        changes = [each for each in await read(database, since) if each["key"]]
        told = {each["key"]["id"]: (each["op"], each["after"]) for each in changes}
        assert told == {
            1: ("insert", {"id": 1, "v": 1, "x": "one"}),
            2: ("update", {"id": 2, "v": 2, "x": "two"}),
            3: ("update", {"id": 3, "v": 3, "x": "three"}),
            4: ("delete", None),
        }


async def in_steps(database: SqlDatabase, statements: list[str]) -> None:
    """Do the same in an open transaction, beside a step that is undone."""
    opened = await database.open()
    for sql in ("SAVEPOINT s", "DROP TABLE b", "ROLLBACK TO s", *statements):
        await database.inside(opened, [Statement(sql)], RunOptions())
    await run(database.committing(opened, RunOptions()))
    opened.release()


async def read(database: SqlDatabase, since: int) -> list[Any]:
    engine = database.database
    reader = Readers("readers", lambda: 1).open("o", 1000)
    body = await some_changes(engine.feed, engine.catch_up, since, TableFilter(), 1000, 0.0, reader)
    found: list[Any] = json.loads(body)["changes"]
    return found


async def followed(copy: SqlDatabase, changes: list[Any]) -> dict[str, Rows]:
    """Return the tables of a reader that does what the feed tells of one version."""
    stated = [each["statement"] for each in changes if each["op"] == "schema"]
    for statement in dict.fromkeys(stated):  # one that concerns several tables is there for each
        await copy.execute(statement)
    tables = await contents(copy)
    for change in changes[len(stated) :]:
        key, before, after = change["key"], change["before"], change["after"]
        rows = tables[change["table"]]
        if before is not None:
            rows.remove(next(row for row in rows if _is_same(row, key or before)))
        if after is not None:
            rows[:] = [row for row in rows if key is None or not _is_same(row, key)]
            rows.append(after)
    return tables


def _is_same(row: dict[str, Any], named: dict[str, Any]) -> bool:
    """Tell whether a row is the one named, perhaps by columns that it no longer has."""
    return all(row[name] == value for name, value in named.items() if name in row)


async def contents(database: SqlDatabase) -> dict[str, Rows]:
    snapshot = await database.database.wait_durable_snapshot()
    found = {}
    for name in sorted(snapshot.catalog.tables):
        result = await database.execute(f"SELECT * FROM {name}")
        found[name] = [dict(zip(result.columns, row, strict=True)) for row in result.rows]
    return found


def in_order(tables: dict[str, Rows]) -> dict[str, list[str]]:
    return {name: sorted(map(str, rows)) for name, rows in tables.items()}
