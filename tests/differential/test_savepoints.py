"""Random transactions with savepoints end as they do in PostgreSQL, in a list and in steps."""

from __future__ import annotations

from random import Random

import pytest

from qserver.engine.work import run
from qserver.errors import FeatureNotSupported, NoActiveTransaction, QserverError
from qserver.query.open_transaction import OpenTransaction
from qserver.query.results import RunOptions, Statement
from qserver.query.sql_database import SqlDatabase
from tests.differential.engines import Postgres, outcome_of
from tests.sql.databases import opened_sql

TABLE = "CREATE TABLE t (id INT PRIMARY KEY, v INT CHECK (v < 1000), name TEXT UNIQUE)"
ROWS = "SELECT * FROM t ORDER BY id"
TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1"


def statement(chance: Random, names: str) -> str:
    name, key = chance.choice(names), chance.randint(1, 6)
    kinds = (
        f"SAVEPOINT {chance.choice('ab')}",
        f"SAVEPOINT {chance.choice('ab')}",
        f"RELEASE {chance.choice(('', 'SAVEPOINT '))}{name}",
        f"ROLLBACK TO {name}",
        f"rollback work to savepoint {name.upper()}",
        f"INSERT INTO t VALUES ({key}, {key}, 'n{key}') ON CONFLICT (id) DO NOTHING",
        "INSERT INTO t SELECT max(id) + 1, count(*), 'm' || (max(id) + 1) FROM t",
        f"UPDATE t SET v = v * 2 + 1 WHERE id <= {key}",
        f"UPDATE t SET id = id + 10 WHERE id = {key}",
        f"DELETE FROM t WHERE id = {key}",
        f"INSERT INTO t VALUES ({key}, 0, NULL)" if chance.random() < 0.15 else "SELECT 1",
        f"CREATE TABLE IF NOT EXISTS t{key} (a INT)" if chance.random() < 0.3 else "SELECT 2",
        f"DROP TABLE IF EXISTS t{key}" if chance.random() < 0.3 else "SELECT 3",
    )
    return chance.choice(kinds)


Ends = tuple[object, object, str | None]
"""Rows and tables at the end, and the error that ended the transaction."""


async def seen(sql: SqlDatabase, error: str | None) -> Ends:
    rows, tables = await sql.execute(ROWS), await sql.execute(TABLES)
    return outcome_of(rows, ROWS).rows, outcome_of(tables, TABLES).rows, error


async def in_a_list(sql: SqlDatabase, texts: list[str]) -> Ends:
    error = None
    try:
        await sql.transaction([Statement(each) for each in texts])
    except QserverError as failed:
        error = failed.code
    return await seen(sql, error)


async def in_steps(sql: SqlDatabase, texts: list[str], chance: Random) -> Ends:
    """The same in an open transaction, some statements as one step and some alone."""
    error, opened = None, await sql.open()
    try:
        await do(sql, opened, "SELECT 1", "SAVEPOINT z")
        rest = texts
        while rest:
            count = chance.choice((1, 1, 3, len(rest)))
            step, rest = rest[:count], rest[count:]
            try:
                await do(sql, opened, *step)
            except FeatureNotSupported:  # an older savepoint: nothing of the step was done
                await do(sql, opened, "ROLLBACK TO z")
                rest = []
                for text in texts:
                    await do(sql, opened, text)
        await run(sql.committing(opened, RunOptions()))
    except QserverError as failed:
        error = failed.code
    finally:
        opened.release()
    return await seen(sql, error)


async def do(sql: SqlDatabase, opened: OpenTransaction, *texts: str) -> None:
    await sql.inside(opened, [Statement(text) for text in texts], RunOptions())


def in_postgres(postgres: Postgres, texts: list[str]) -> Ends:
    postgres.reset()
    postgres.run(TABLE)
    postgres.run("BEGIN")
    error = None
    for text in texts:
        outcome = postgres.run(text)
        if outcome.error is not None:
            error = outcome.error
            break
    postgres.run("COMMIT")  # which rolls back after an error
    return postgres.run(ROWS).rows, postgres.run(TABLES).rows, error


def program(chance: Random) -> list[str]:
    texts = ["INSERT INTO t VALUES (3, 3, 'three')", "SAVEPOINT a"]
    for _ in range(chance.randint(2, 14)):
        names = (
            "abc"
            if chance.random() < 0.05
            else "".join(each for each in "ab" if f"SAVEPOINT {each}" in texts)
        )
        texts.append(statement(chance, names))
    return texts


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
async def test_random_transactions_end_as_in_postgresql(postgres: Postgres, seed: int) -> None:
    chance, failed = Random(seed), []
    async with opened_sql() as sql:
        for _ in range(16):
            texts = program(chance)
            expected = in_postgres(postgres, texts)
            failed.append(expected[2] is not None)
            await begin(sql)
            assert await in_a_list(sql, texts) == expected, texts
            await begin(sql)
            assert await in_steps(sql, texts, chance) == expected, texts
    assert any(failed) and not all(failed)


async def begin(sql: SqlDatabase) -> None:
    names = ", ".join(["t", *(f"t{number}" for number in range(1, 7))])
    await sql.execute(f"DROP TABLE IF EXISTS {names}")
    await sql.execute(TABLE)


ERRORS = [
    (["SAVEPOINT a", "RELEASE b"], "3B001"),
    (["SAVEPOINT a", "ROLLBACK TO b"], "3B001"),
    (["SAVEPOINT a", "RELEASE a", "ROLLBACK TO a"], "3B001"),
    (["SAVEPOINT a", "SAVEPOINT b", "ROLLBACK TO a", "RELEASE b"], "3B001"),
    (["SELECT 1", "ROLLBACK TO a"], "3B001"),
    (["SELECT 1", "SAVEPOINT"], "42601"),
    (["SAVEPOINT a", "ROLLBACK TO a", "ROLLBACK TO a", "RELEASE a"], None),
    (["SAVEPOINT a", "SAVEPOINT a", "RELEASE a", "RELEASE a"], None),
    (["SAVEPOINT a", "SAVEPOINT a", "RELEASE a", "RELEASE a", "RELEASE a"], "3B001"),
    (['SAVEPOINT "A"', "RELEASE a"], "3B001"),
    (["SAVEPOINT A", "RELEASE a"], None),
]


@pytest.mark.parametrize(("texts", "code"), ERRORS)
async def test_errors_are_those_of_postgresql(
    postgres: Postgres, texts: list[str], code: str | None
) -> None:
    assert in_postgres(postgres, texts)[2] == code
    async with opened_sql() as sql:
        await begin(sql)
        assert (await in_a_list(sql, texts))[2] == code
        assert (await in_steps(sql, texts, Random(0)))[2] == code


@pytest.mark.parametrize("text", ["SAVEPOINT a", "ROLLBACK TO a", "RELEASE a"])
async def test_a_savepoint_outside_of_a_transaction_is_refused(
    postgres: Postgres, text: str
) -> None:
    assert postgres.run(text).error == "25P01"
    async with opened_sql() as sql:
        with pytest.raises(NoActiveTransaction):
            await sql.execute(text)
