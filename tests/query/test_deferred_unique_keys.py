"""Unique keys that wait: no commit leaves a duplicate, whoever else commits meanwhile."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from qserver.durability.memory import MemoryLog
from tests.query.connections import Connection, outcome
from tests.sql.databases import opened_sql

TABLE = (
    "CREATE TABLE t (id int PRIMARY KEY, a int UNIQUE DEFERRABLE INITIALLY DEFERRED, b int,"
    " CONSTRAINT ab UNIQUE (b, a) DEFERRABLE)"
)


def a_statement(chance: Random) -> str:
    n, a, b = chance.randrange(8), chance.randrange(5), chance.randrange(3)
    value = chance.choice((str(a), "NULL"))
    return chance.choice(
        (
            f"INSERT INTO t VALUES ({n}, {value}, {b})",
            f"INSERT INTO t VALUES ({n}, {a}, {b}), ({n + 8}, {value}, {b})",
            f"UPDATE t SET a = {value} WHERE id = {n}",
            "UPDATE t SET a = 4 - a",
            f"UPDATE t SET id = id + 100, b = {b} WHERE id = {n}",
            f"DELETE FROM t WHERE a = {a}",
            f"DELETE FROM t WHERE id = {n}",
            "SET CONSTRAINTS ALL IMMEDIATE",
            "SET CONSTRAINTS ALL DEFERRED",
            "SAVEPOINT s",
            "ROLLBACK TO s",
            "COMMIT",
        )
    )


@pytest.mark.parametrize("seed", range(20))
async def test_transactions_side_by_side_never_leave_a_duplicate(seed: int) -> None:
    chance = Random(seed)
    async with opened_sql() as database:
        connections = [Connection(database) for _ in range(3)]
        await connections[0].run(TABLE)
        ends: Counter[str] = Counter()
        for _ in range(120):
            connection = chance.choice(connections)
            if connection.transaction is None:
                await connection.run("BEGIN")
            sql = a_statement(chance)
            found = await outcome(connection, sql)
            if sql == "COMMIT":
                ends[found if isinstance(found, str) else "done"] += 1
                rows = (await database.execute("SELECT a, b FROM t WHERE a IS NOT NULL")).rows
                assert len({a for a, _ in rows}) == len(rows), rows
        assert ends["done"] > 0 and set(ends) <= {"done", "23505", "40001"}, ends
        for connection in connections:
            await connection.run("ROLLBACK")


async def test_the_same_key_of_two_transactions_is_a_conflict() -> None:
    async with opened_sql() as database:
        one, other = Connection(database), Connection(database)
        await one.run(TABLE)
        for connection, number in ((one, 1), (other, 2)):
            await connection.run("BEGIN")
            await connection.run(f"INSERT INTO t VALUES ({number}, 7, {number})")
        await one.run("COMMIT")
        assert await outcome(other, "COMMIT") == "40001"
        assert (await database.execute("SELECT id FROM t")).rows == [(1,)]


async def test_it_waits_as_well_after_a_restart() -> None:
    log = MemoryLog()
    async with opened_sql(log) as database:
        await Connection(database).run(TABLE)
    async with opened_sql(log) as database:
        one = Connection(database)
        await one.run("BEGIN")
        await one.run("INSERT INTO t VALUES (1, 1, 1), (2, 1, 2)")
        await one.run("UPDATE t SET a = 2 WHERE id = 2")
        await one.run("COMMIT")
        assert await outcome(one, "INSERT INTO t VALUES (3, 1, 3)") == "23505"
        assert await outcome(one, "UPDATE t SET a = 1") == "23505"
        await one.run("UPDATE t SET a = 3 - a")
        assert (await one.run("SELECT id, a FROM t ORDER BY id")).rows == [(1, 2), (2, 1)]
