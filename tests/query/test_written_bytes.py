"""What a transaction writes has an end, whichever way long values come into it."""

from __future__ import annotations

import pytest

from qserver.errors import OutOfMemory
from qserver.functions import context
from qserver.query.sql_database import SqlDatabase, Statement
from tests.sql.databases import opened_sql

MOST = 1_000_000
LONG = "x" * 20_000
TABLES = (
    "CREATE TABLE many (id INTEGER PRIMARY KEY, a TEXT, b INTEGER)",
    "INSERT INTO many SELECT i, 'row', 0 FROM generate_series(1, 100) AS s(i)",
    "CREATE TABLE wide (id INTEGER PRIMARY KEY, a TEXT, b INTEGER DEFAULT 0)",
    *(
        f"INSERT INTO wide SELECT i, repeat('x', 20000) FROM generate_series({n}, {n + 29}) AS s(i)"
        for n in range(0, 90, 30)
    ),
    "CREATE TABLE parent (id INTEGER PRIMARY KEY)",
    "INSERT INTO parent VALUES (1)",
    "CREATE TABLE child (id INTEGER PRIMARY KEY, a TEXT, p INTEGER REFERENCES parent"
    " ON UPDATE CASCADE)",
    "INSERT INTO child SELECT id, a, 1 FROM wide WHERE id < 30",
    "INSERT INTO child SELECT id, a, 1 FROM wide WHERE id >= 30 AND id < 60",
)
TOO_MUCH = {
    "a literal for many rows": f"UPDATE many SET a = '{LONG}'",
    "a literal beside many rows": f"INSERT INTO many SELECT id + 100, '{LONG}', 0 FROM many",
    "a computed text": "INSERT INTO many SELECT id + 100, repeat('x', 20000), 0 FROM many",
    "rows whose text stays": "UPDATE wide SET b = b + 1",
    "an upsert": "INSERT INTO wide SELECT id, 'x' FROM wide ON CONFLICT (id) DO UPDATE SET b = 1",
    "a merge": "MERGE INTO wide USING many ON wide.id = many.id WHEN MATCHED THEN UPDATE SET b = 1",
    "a cascade": "UPDATE parent SET id = 2",
    "a column with a default": f"ALTER TABLE many ADD COLUMN c TEXT DEFAULT '{LONG}'",
    "an index": "CREATE INDEX ON wide (a)",
    "a copy": "CREATE TABLE copy AS SELECT * FROM wide",
}


async def prepare(database: SqlDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    for statement in TABLES:
        await database.execute(statement)
    monkeypatch.setattr(context, "TRANSACTION_LONG_BYTES_MAX", MOST)


async def test_one_statement_cannot_write_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened_sql() as database:
        await prepare(database, monkeypatch)
        for name, sql in TOO_MUCH.items():
            with pytest.raises(OutOfMemory, match="writes more than one transaction may") as caught:
                await database.execute(sql)
                pytest.fail(name)
            assert "1000000 bytes of long values" in (caught.value.detail or ""), name
        for few in ("UPDATE wide SET b = 1 WHERE id < 45", "CREATE INDEX ON many (a)"):
            await database.execute(few)


async def test_many_statements_cannot_write_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened_sql() as database:
        await prepare(database, monkeypatch)
        one = [Statement(f"UPDATE wide SET b = 1 WHERE id = {number}") for number in range(60)]
        await database.transaction(one[:45])
        with pytest.raises(OutOfMemory, match="writes more than one transaction may"):
            await database.transaction(one)


async def test_texts_count_once_more_for_each_index(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened_sql() as database:
        await prepare(database, monkeypatch)
        few = f"INSERT INTO many SELECT id + 100, '{LONG}', 0 FROM many WHERE id <= 40"
        await database.execute("CREATE INDEX ON many (b, a)")
        with pytest.raises(OutOfMemory):
            await database.execute(few)
        await database.execute("DROP INDEX many_b_a_idx")
        await database.execute(few)
