"""Rows in bulk beside a model that takes them one by one: what is there, and how many count.

Batches are new, known, or both, down to one in which every row is in the way of an `ignore`; some
name a row twice. Whatever a batch is cut into, rows, affected rows and the number of a bad row are
those of single rows in order, and a load that changed nothing makes no version.
"""

from __future__ import annotations

from random import Random
from typing import Any, TypeAlias

import pytest

from qserver.errors import QserverError, UniqueViolation
from qserver.query.bulk import BulkInsert, OnConflict, RowBatch
from qserver.query.results import RunOptions
from qserver.query.sql_database import SqlDatabase
from simulations.mutants import Mutant, planted
from simulations.mutants.mutant import edited
from tests.sql.databases import opened_sql

LOADS = 12
KEYS = 12

Rows: TypeAlias = dict[tuple[int, int], tuple[int, int, int | None]]


class Refused(Exception):
    """The number of the bad row."""


def take(rows: Rows, row: tuple[Any, ...], names: tuple[str, ...], on_conflict: OnConflict) -> int:
    """Change the model by one row; return how many rows that affects."""
    given = dict(zip(names, row, strict=True))
    key, value = (given["a"], given["b"]), given.get("u")
    there = rows.get(key)
    if on_conflict == "update" and there is not None:
        rows[key] = (*key, given.get("u", there[2]))
        return 1
    taken = there is not None or (
        on_conflict != "update"
        and value is not None
        and value in {each[2] for each in rows.values()}
    )
    if taken and on_conflict == "error":
        raise Refused
    if not taken:
        rows[key] = (*key, value)
    return int(not taken)


def draw_batch(chance: Random, rows: Rows, first: int) -> RowBatch:
    names = chance.choice((("a", "b", "u"), ("b", "u", "a"), ("a", "b")))
    known, new = chance.choice(((0, 1), (1, 0), (1, 1), (3, 1)))
    pool = [*[*rows] * known, *[(0, key) for key in range(KEYS)] * new] or [(0, 0)]
    chosen = [chance.choice(pool) for _ in range(chance.choice((1, 2, 3, 7)))]
    if chance.random() < 0.6:
        chosen = list(dict.fromkeys(chosen))
    made = [
        {"a": a, "b": b, "u": rows.get((a, b), (0, 0, chance.randrange(30)))[2]} for a, b in chosen
    ]
    return RowBatch(names, [tuple(each[name] for name in names) for each in made], first)


async def load(chance: Random, sql: SqlDatabase, rows: Rows, on_conflict: OnConflict) -> str | None:
    """Send one load, to the engine and to the model; return where they differ."""
    transaction = await sql.open()
    insert = BulkInsert(sql, transaction, "t", on_conflict, RunOptions())
    after, affected, first = dict(rows), 0, 1
    got = expected = None
    sent: list[RowBatch] = []
    try:
        for _ in range(chance.randint(1, 4)):
            batch = draw_batch(chance, after, first)
            sent.append(batch)
            try:
                await insert.add(batch)
            except QserverError as error:
                got = (error.code, error.row)
            for number, row in enumerate(batch.rows, first):
                try:
                    affected += take(after, row, batch.names, on_conflict)
                except Refused:
                    expected = (UniqueViolation.code, number)
                    break
            if got != expected:
                return f"{sent} on {rows}: {got}, not {expected}"
            if got is not None:
                return None
            first += len(batch.rows)
        if not insert.affected_rows == transaction.rows_changed == affected:
            counted = (insert.affected_rows, transaction.rows_changed)
            return f"{sent} on {rows}: affected {counted}, not {affected}"
        before, version = transaction.version, await insert.commit()
    finally:
        transaction.release()
    if (version == before) != (affected == 0):
        return f"{sent} affected {affected} rows, and version {before} became {version}"
    rows.clear()
    rows.update(after)
    return None


async def compare(seed: int, on_conflict: OnConflict) -> str | None:
    chance = Random(f"{on_conflict} {seed}")
    unique = "UNIQUE" if on_conflict != "update" else ""
    rows: Rows = {}
    async with opened_sql() as sql:
        await sql.execute(f"CREATE TABLE t (a INT, b INT, u INT {unique}, PRIMARY KEY (a, b))")
        for _ in range(LOADS):
            problem = await load(chance, sql, rows, on_conflict)
            there = (await sql.execute("SELECT * FROM t")).rows
            if problem is None and sorted(there) != sorted(rows.values()):
                problem = f"{sorted(there)}, the model has {sorted(rows.values())}"
            if problem is not None:
                return problem
    return None


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("on_conflict", ["error", "ignore", "update"])
async def test_rows_in_bulk_count_as_single_rows_do(on_conflict: OnConflict, seed: int) -> None:
    assert await compare(seed, on_conflict) is None


BUGS = (
    ("a batch counts as it was sent", "outcome.results[0].affected_rows", "len(rows)"),
    ("a batch that changed nothing counts one", "outcome.results[0].affected_rows",
     "outcome.results[0].affected_rows or 1"),
    ("the second half begins where the first did", "rows[half:], batch.first + half",
     "rows[half:], batch.first"),
    ("a half counts with what failed before it", "self._transaction.failed = False",
     "self._transaction.failed = False; self.affected_rows += 1"),
)  # fmt: skip


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug[0])
async def test_bugs_in_the_count_are_seen(bug: tuple[str, str, str]) -> None:
    name, old, new = bug
    kinds: tuple[OnConflict, ...] = ("error", "ignore", "update")
    with planted(Mutant(name, name, (), (edited(BulkInsert.add, old, new),))):
        found = [await compare(seed, kind) for kind in kinds for seed in range(2)]
    assert any(found)
