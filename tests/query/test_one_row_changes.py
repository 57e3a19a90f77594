"""A change of one row by its key does what the same change does that finds it in a list."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from qserver.errors import QserverError
from qserver.query.sql_database import SqlDatabase
from tests.sampling import sampled
from tests.sql.databases import opened_sql

TABLES = (
    "CREATE TABLE parents (id INT PRIMARY KEY, n INT UNIQUE)",
    "CREATE TABLE t (id INT PRIMARY KEY, u INT UNIQUE, a TEXT NOT NULL DEFAULT 'x',"
    " n INT CHECK (n < 50), p INT REFERENCES parents ON DELETE CASCADE ON UPDATE CASCADE,"
    " twice INT GENERATED ALWAYS AS (n * 2) STORED)",
    "CREATE INDEX t_n ON t (n, a)",
    "CREATE TABLE children (id INT PRIMARY KEY, of INT REFERENCES t ON DELETE SET NULL"
    " ON UPDATE CASCADE)",
    "INSERT INTO parents SELECT i, i FROM generate_series(1, 6) s(i)",
    "INSERT INTO t (id, u, n, p) SELECT i, i * 10, i, i FROM generate_series(1, 6) s(i)",
    "INSERT INTO children SELECT i, 1 + i % 6 FROM generate_series(1, 9) s(i)",
)
CHANGES = (
    "UPDATE t SET n = n + 1 WHERE {}",
    "UPDATE t SET n = n * 20 WHERE {}",
    "UPDATE t SET n = NULL, a = NULL WHERE {}",
    "UPDATE t SET id = id + 1 WHERE {}",
    "UPDATE t SET id = id + 20, u = u + 1 WHERE {} RETURNING *",
    "UPDATE t SET id = id WHERE {}",
    "UPDATE t SET u = (SELECT max(u) + 1 FROM t) WHERE {} RETURNING id, u",
    "UPDATE t SET u = (SELECT min(u) FROM t) WHERE {} AND n > 2",
    "UPDATE t SET p = 99 WHERE {}",
    "UPDATE t SET p = p % 6 + 1 WHERE {} RETURNING (SELECT count(*) FROM t x WHERE x.p = t.p)",
    "UPDATE t SET a = repeat(a, 700) WHERE {}",
    "DELETE FROM t WHERE {} RETURNING id, twice",
    "DELETE FROM t WHERE {} AND n > 3",
    "DELETE FROM parents WHERE {}",
    "UPDATE parents SET id = id + 10 WHERE {}",
    "WITH gone AS (DELETE FROM t WHERE {} RETURNING u) SELECT sum(u) FROM gone",
    "WITH new AS (UPDATE t SET n = 7 WHERE {} RETURNING n),"
    " old AS (UPDATE t SET n = 8 WHERE id < 4)"
    " SELECT count(*) FROM new",
)
SHOWN = (
    "SELECT * FROM t ORDER BY id",
    "SELECT id FROM t WHERE n > -1 ORDER BY n, a, id",
    "SELECT id, u FROM t WHERE u = 11",
    "SELECT * FROM parents ORDER BY id",
    "SELECT * FROM children ORDER BY id",
)


async def outcome(database: SqlDatabase, sql: str) -> Any:
    try:
        result = await database.execute(sql)
    except QserverError as error:
        return error.code, error.message
    return result.rows, result.affected_rows


@pytest.mark.parametrize("seed", sampled(range(12), 5))
async def test_one_row_by_its_key_or_from_a_list(seed: int) -> None:
    chance = Random(seed)
    async with opened_sql() as by_key, opened_sql() as listed:
        for sql in TABLES:
            assert await outcome(by_key, sql) == await outcome(listed, sql)
        for _ in range(25):
            change, key = chance.choice(CHANGES), chance.randint(0, 8)
            told = await outcome(by_key, change.format(f"id = {key}"))
            assert told == await outcome(listed, change.format(f"id IN ({key}, -1)")), change
            for sql in SHOWN:
                assert await outcome(by_key, sql) == await outcome(listed, sql), change
