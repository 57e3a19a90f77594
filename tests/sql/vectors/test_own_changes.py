"""Vectors and changes: of other transactions, and of the one that reads."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from qserver.query.cursor import END
from qserver.query.prepared_statement import PreparedStatement
from qserver.query.sql_database import SqlDatabase
from qserver.query.statements import StatementRun
from qserver.storage.page import Key
from qserver.storage.transaction import Transaction
from tests.sql.databases import opened_sql
from tests.sql.vectors.queries import TABLE, Writer
from tests.sql.vectors.vectors import answer, both, counted_chunks, tiny_chunks, without_vectors

SUMS = "SELECT i4 % 3, count(*), sum(i4), min(id), max(vc) FROM t WHERE id > 3 GROUP BY 1"


def change(chance: Random, writer: Writer, rows: int) -> str:
    key = chance.randrange(rows)
    match chance.randrange(4):
        case 0:
            return f"DELETE FROM t WHERE id = {key}"
        case 1:
            return f"UPDATE t SET i4 = {chance.randrange(100)} WHERE id BETWEEN {key} AND {key + 3}"
        case 2:
            return f"UPDATE t SET tx = NULL, i4 = i4 + 1 WHERE i4 % 7 = {chance.randrange(7)}"
        case _:
            return writer.rows(10_000 + 10 * chance.randrange(10_000), 3)


@pytest.mark.parametrize("seed", range(4))
async def test_rows_that_change_between_scans_are_seen(seed: int) -> None:
    chance = Random(seed)
    writer = Writer(chance)
    writer.extremes = 0.0
    with tiny_chunks():
        async with opened_sql() as database:
            await database.execute(TABLE)
            await database.execute(writer.rows(0, 200))
            with counted_chunks() as counts:
                for _ in range(25):
                    await answer(database, change(chance, writer, 200))
                    over_vectors, by_rows = await both(database, SUMS)
                    assert over_vectors == by_rows
            assert counts["aggregated"] > 50


@pytest.mark.parametrize("seed", range(6))
async def test_a_transaction_sees_its_own_writes(seed: int) -> None:
    """Pages that it wrote to are read by rows, and the others as chunks."""
    chance = Random(seed)
    writer = Writer(chance)
    writer.extremes = 0.0
    with tiny_chunks():
        async with opened_sql() as database:
            await database.execute(TABLE)
            await database.execute(writer.rows(0, 300))
            taken = 0
            for _ in range(8):
                changes = [change(chance, writer, 300) for _ in range(chance.randint(1, 3))]
                with counted_chunks() as counts:
                    over_vectors = undone(database, [*changes, SUMS])
                taken += counts["aggregated"]
                with without_vectors(database):
                    assert undone(database, [*changes, SUMS]) == over_vectors
            assert taken > 10


def undone(database: SqlDatabase, texts: list[str]) -> str:
    """The rows of the last statement of a transaction that never commits."""
    snapshot = database.database.snapshots.take()
    assert snapshot is not None
    run = StatementRun(database.planner, Transaction(snapshot), database._environment.request())
    found: list[Any] = []
    for text in texts:
        found = [page for page in iter(run.start(PreparedStatement(text, None)).step, END) if page]
    return repr(found)


def range_of(transaction: Transaction) -> list[tuple[int, Key | None, Key | None, bool]]:
    return [
        (each.tree, each.low, each.high, each.predicate is not None) for each in transaction.ranges
    ]


async def test_chunks_count_as_read_as_rows_do() -> None:
    with tiny_chunks():
        async with opened_sql() as database:
            await database.execute("CREATE TABLE t (id INT PRIMARY KEY, a INT)")
            await database.execute("INSERT INTO t SELECT g, g FROM generate_series(1, 99) g")
            snapshot = database.database.snapshots.take()
            assert snapshot is not None
            one, other = Transaction(snapshot), Transaction(snapshot)
            table = one.table("t")

            def matches(row: tuple[int, int]) -> bool:
                return row[1] > 5

            list(one.scan_chunks(table.id, (3,), (70,), matches))
            list(other.scan_values(table.id, (3,), (70,), matches))
            assert range_of(one) == range_of(other)
            assert one.ranges[0].predicate is matches
