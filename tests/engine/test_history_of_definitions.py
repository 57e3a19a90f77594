"""Definitions and rows change in any order; every version reads, compares and restores as it was.

What a version held is noted when it is made: the rows of each table, and what an index finds.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qserver.durability.check_snapshot import problems_of
from qserver.durability.memory import MemoryLog
from qserver.engine.database import Database
from qserver.errors import QserverError
from qserver.query.sql_database import SqlDatabase, Statement
from qserver.storage.snapshot import Snapshot
from qserver.storage.snapshot_changes import snapshot_changes
from tests.engine.fakes import Laboratory
from tests.engine.test_history import newest, opened

TABLES = ("t", "u")
STATEMENTS = (
    "create table {t} (a integer primary key, b integer)",
    "create table {t} (a integer primary key, b integer unique)",
    "insert into {t} select g, g + {n} from generate_series({n}, {n} + 9) g",
    "insert into {t} values ({n}, 7) on conflict (a) do nothing",
    "update {t} set b = b + 100 where a < {n}",
    "update {t} set a = a + 50 where a = {n}",
    "delete from {t} where a > {n}",
    "truncate {t}",
    "drop table {t} cascade",
    "alter table {t} rename to {other}",
    "alter table {t} add column c integer default {n}",
    "alter table {t} drop column c",
    "alter table {t} alter column b set default {n}",
    "create index {t}_b on {t} (b)",
    "create unique index {t}_b on {t} (b)",
    "drop index {t}_b",
    "create view v as select b from {t}",
    "drop view v",
)
statements = st.tuples(
    st.just("run"), st.sampled_from(STATEMENTS), st.sampled_from(TABLES), st.integers(0, 20)
)
steps = st.lists(
    statements | statements | statements | st.tuples(st.just("restore"), st.integers(0, 40)),
    min_size=5,
    max_size=30,
)
Held = dict[str, tuple[tuple[str, ...], list[tuple[Any, ...]], list[tuple[Any, ...]]]]


async def held(sql: SqlDatabase, version: int | None = None) -> Held:
    """The columns and rows of each relation, and what a search for a value of b finds."""
    found: Held = {}
    for name in (*TABLES, "v"):
        order = "b" if name == "v" else "a"
        texts = (f"select * from {name} order by {order}", f"select b from {name} where b = 107")
        try:
            rows, searched = (
                await sql.transaction([Statement(text) for text in texts], as_of=version)
            ).results
        except QserverError as error:
            assert error.code == "42P01", error
        else:
            found[name] = rows.columns, rows.rows, searched.rows
    return found


def applied(before: Held, first: Snapshot, last: Snapshot, after: Held) -> None:
    """Apply the difference of two versions to the one, and compare with the other."""
    changes: dict[str, list[Any]] = {}
    for each in snapshot_changes(first, last):
        if each is not None:
            changes.setdefault(each[0], []).append(each[2])
    for name in TABLES:
        listed = [each for each in changes.get(name, []) if each.op != "schema"]
        was, now = before.get(name), after.get(name)
        if was == now:
            assert not listed
            continue
        if now is None or (was is not None and was[0] != now[0]):
            assert changes[name][0].op == "schema"
            continue
        rows = set() if was is None else set(was[1])
        for change in listed:
            rows.discard(change.before)
            rows |= {change.after} - {None}
        assert rows == set(now[1]), name


async def restore(database: Database, sql: SqlDatabase, noted: dict[int, Held], to: int) -> None:
    made, restored = await database.restore_version(to)
    assert restored == to
    assert await held(sql) == noted[to]
    noted.setdefault(made, noted[to])


@pytest.mark.long
@settings(max_examples=20)
@given(steps)
async def test_every_version_reads_compares_and_restores_as_it_was(program: list[Any]) -> None:
    world = Laboratory()
    async with opened(MemoryLog(), world) as database:
        sql = SqlDatabase(database, world)
        noted: dict[int, Held] = {0: {}}
        for what, *how in program:
            world.time += 1
            if what == "restore":
                await restore(database, sql, noted, sorted(noted)[how[0] % len(noted)])
            else:
                text, name, number = how
                other = TABLES[name == TABLES[0]]
                try:
                    await sql.execute(text.format(t=name, other=other, n=number))
                except QserverError:
                    assert await held(sql) == noted[max(noted)]
            version = newest(database).version
            for each in range(max(noted) + 1, version):
                noted[each] = noted[each - 1]
            noted.setdefault(version, await held(sql))
        last = newest(database)
        for version, was in noted.items():
            assert await held(sql, version) == was
            first = await database.snapshot_at(version)
            applied(was, first, last, noted[last.version])
            applied(noted[last.version], last, first, was)
        assert not list(filter(None, problems_of(last)))
