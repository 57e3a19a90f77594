"""The first rows of a vector tree by an ORDER BY are those of all its rows, and of row code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from random import Random
from typing import Any

import pytest

from qserver.errors import QserverError
from qserver.query.planning import Planner
from qserver.query.sql_database import Result, SqlDatabase
from qserver.sql.optimizer import RULES
from qserver.sql.vectors import tree_first_rows
from qserver.sql.vectors.tree_first_rows import FirstTreeRows
from qserver.sql.vectors.tree_rows import TreeRows
from tests.sampling import sampled
from tests.sql.databases import opened_sql
from tests.sql.vectors.test_trees import by_rows, filled, large, trees_everywhere
from tests.sql.vectors.tree_queries import TreeWriter

QUERIES = 25
UNIQUE = "t.id, coalesce(u.id, 0)"
KEYS = ("i2", "i4", "i8", "n2", "n9", "bo", "da", "ts", "tz", "tx", "vc", "fl", "nn")
AGGREGATES = ("count(*)", "sum(t.i4)", "max(u.n2)", "avg(t.n2)", "min(t.da)", "sum(u.i8)")


class FirstRowsWriter(TreeWriter):
    def first(self) -> str:
        self.parameters = []
        return self.bound(self._rows() if self.chance.random() < 0.6 else self._groups())

    def _rows(self) -> str:
        keys = [
            self.chance.choice((f"{self.chance.choice('tu')}.{name}", f"t.{name}", "t.i4 * 2"))
            for name in self.chance.sample(KEYS, self.chance.choice((1, 1, 2, 3)))
        ]
        kind = self.chance.choice(("JOIN", "LEFT JOIN"))
        source = f"t {kind} u ON {self.tied()}{self.where('tu')}"
        return f"SELECT t.tx, u.n2, t.id, u.id FROM {source} {self._sorted(keys, UNIQUE)}"

    def _groups(self) -> str:
        groups = self.keys("tu")
        every = [*groups.split(", "), *AGGREGATES]
        keys = self.chance.sample(every, self.chance.choice((1, 2, 3)))
        source = f"t JOIN u ON {self.tied()}{self.where('tu')}"
        sums = ", ".join(AGGREGATES)
        return (
            f"SELECT {groups}, {sums} FROM {source} GROUP BY {groups} {self._sorted(keys, groups)}"
        )

    def _sorted(self, keys: list[str], unique: str) -> str:
        """ORDER BY these keys, then what leaves no ties, and LIMIT."""
        by = [
            key
            + self.chance.choice(("", " DESC"))
            + self.chance.choice(("", "", " NULLS FIRST", " NULLS LAST"))
            for key in keys
        ]
        limit = self.chance.choice(("0", "1", "3", "3", "8", "30", "2 OFFSET 3", "1000"))
        return f"ORDER BY {', '.join([*by, unique])} LIMIT {limit}"


@contextmanager
def rows_dropped() -> Iterator[list[int]]:
    """Counts the rows of trees that are dropped."""
    dropped: list[int] = []
    original = FirstTreeRows.among

    def among(self: FirstTreeRows, rows: TreeRows) -> TreeRows:
        found = original(self, rows)
        dropped.append(rows.length - found.length)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree_first_rows.FirstTreeRows, "among", among)
        yield dropped


async def in_order(database: SqlDatabase, sql: str, parameters: Any = None) -> str:
    try:
        result = await database.execute(sql, parameters)
    except QserverError as error:
        return f"error {error.code}: {error.message}"
    assert isinstance(result, Result)
    return repr(result.rows)


def by_all_rows(database: SqlDatabase) -> SqlDatabase:
    """The same database with a planner whose trees give all rows."""

    def vectorization(node: Any, statistics: Any) -> Any:
        module = import_module("qserver.sql.optimizer.vectorization")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "with_first_rows", lambda planned, keys: None)
            return module.vectorization(node, statistics)

    other = by_rows(database)
    names = {"vectorization": vectorization}
    other.planner = Planner(tuple([names.get(rule.__name__, rule) for rule in RULES]))
    return other


@pytest.mark.long
@pytest.mark.parametrize("seed", sampled(range(24), 3))
async def test_first_rows_are_those_of_row_code(seed: int) -> None:
    writer = FirstRowsWriter(Random(seed))
    with trees_everywhere(), rows_dropped() as dropped:
        async with opened_sql() as database:
            await filled(database, writer)
            for _ in range(QUERIES):
                sql = writer.first()
                by_tree = await in_order(database, sql, writer.parameters)
                expected = await in_order(by_rows(database), sql, writer.parameters)
                if not (by_tree.startswith("[") and expected.startswith("error")):
                    assert by_tree == expected, (sql, writer.parameters)
            if writer.extremes == 0.0:
                assert sum(dropped) > 100


@pytest.mark.long
@pytest.mark.parametrize("seed", sampled(range(24), 3))
async def test_ties_are_those_of_all_rows_of_the_tree(seed: int) -> None:
    writer = FirstRowsWriter(Random(seed))
    with trees_everywhere(), rows_dropped() as dropped:
        async with opened_sql() as database:
            await filled(database, writer)
            for _ in range(QUERIES):
                sql = writer.first()
                for unique in (", t.id, coalesce(u.id, 0) LIMIT", ", t.id LIMIT"):
                    sql = sql.replace(unique, " LIMIT")
                by_tree = await in_order(database, sql, writer.parameters)
                expected = await in_order(by_all_rows(database), sql, writer.parameters)
                assert by_tree == expected, (sql, writer.parameters)
            if writer.extremes == 0.0:
                assert sum(dropped) > 100


FIRST = "SELECT a.k, count(*), avg(a.v) FROM a JOIN b ON a.k = b.id GROUP BY a.k"


async def test_only_rows_that_may_be_first_are_made() -> None:
    sql = f"{FIRST} ORDER BY count(*) DESC, sum(a.v) DESC, a.k LIMIT $1"
    with rows_dropped() as dropped:
        async with opened_sql() as database:
            await large(database)
            plan = await database.execute(f"EXPLAIN {sql}", [3])
            assert isinstance(plan, Result)
            assert any("1 joins, 1 groupings, first rows" in row[0] for row in plan.rows)
            for most in (3, 1, 0):
                expected = await in_order(by_rows(database), sql, [most])
                assert await in_order(database, sql, [most]) == expected
            assert dropped == [4997, 4999, 5000]
            expected = await in_order(by_rows(database), sql, [None])
            assert await in_order(database, sql, [None]) == expected
            assert len(dropped) == 3


async def test_a_key_that_raises_does_so() -> None:
    async with opened_sql() as database:
        await large(database)
        for key in ("1 / (a.k - 1)", "count(*), 1 / (a.k - 4999)", "1 / (a.k + 1)"):
            with rows_dropped() as dropped:
                sql = f"{FIRST} ORDER BY {key}, a.k LIMIT 3"
                expected = await in_order(by_rows(database), sql)
                assert await in_order(database, sql) == expected
            is_safe = key == "1 / (a.k + 1)"
            assert expected.startswith("[") == is_safe
            assert any(dropped) == is_safe


async def test_all_rows_are_made_where_only_row_code_computes_a_key() -> None:
    async with opened_sql() as database:
        await large(database)
        for key in ("avg(a.v)", "count(*), lpad('x', a.k)"):
            plan = await database.execute(f"EXPLAIN {FIRST} ORDER BY {key} LIMIT 3")
            assert isinstance(plan, Result)
            assert not any("first rows" in row[0] for row in plan.rows), key


@pytest.mark.half
async def test_many_texts_are_compared_some_at_a_time() -> None:
    """Python sorts them, and others wait. More come at once only where more rows are wanted."""
    lengths: list[int] = []
    among = FirstTreeRows.among

    def noted(self: FirstTreeRows, rows: TreeRows) -> TreeRows:
        lengths.append(rows.length)
        return among(self, rows)

    sql = "SELECT a.t, count(*) FROM a JOIN b ON a.k = b.id GROUP BY a.t ORDER BY a.t LIMIT $1"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FirstTreeRows, "among", noted)
        async with opened_sql() as database:
            await large(database)
            for most, at_once in ((3, 8192), (3000, 12_000), (10_000, 20_000)):
                expected = await in_order(by_rows(database), sql, [most])
                lengths.clear()
                assert await in_order(database, sql, [most]) == expected
                assert max(lengths) == at_once
                assert sum(lengths) == 20_000
