"""Joins and groups that vector trees compute: changes that depend on rows of two tables.

    wards    each on a floor                  nurses   each of a ward, on duty or not
    leave    a nurse may leave if two are on duty on that floor
    move     a ward may move if the wards that stay on its floor have a nurse on duty

No floor with a ward may be without a nurse. Two changes that both saw enough of them are a write
skew over a join, whose right and left sides are both read by a tree. All bounds below which a plan
has none are lowered, so a few rows are several batches.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final

from qserver.query.sql_database import Result, Statement, TransactionResult
from qserver.sql.vectors import hash_tables, tree_folding, tree_grouping, tree_run
from qserver.storage import columns
from simulations.service import Service
from simulations.workloads.sql_workload import PAUSE, SqlWorkload
from simulations.world import SimulatedWorld

FLOORS = 2
WARDS = 4
NURSES = 10

ON_DUTY: Final = """SELECT count(*) FROM nurses n JOIN wards w ON n.ward = w.id
    WHERE n.on_duty AND w.floor"""
LEAVE = """INSERT INTO leaves SELECT $1, $2, count(*) FROM nurses n JOIN wards w ON n.ward = w.id
    WHERE n.on_duty AND n.id <> $2
        AND w.floor IN (SELECT o.floor FROM wards o JOIN nurses m ON m.ward = o.id WHERE m.id = $2)
    GROUP BY w.floor HAVING count(*) >= 1"""
LEFT = """UPDATE nurses SET on_duty = false
    WHERE id = $1 AND EXISTS (SELECT 1 FROM leaves WHERE number = $2)"""
RETURN = "UPDATE nurses SET on_duty = true WHERE id = $1"
MOVE = f"""UPDATE wards SET floor = $2 WHERE id = $1
    AND ({ON_DUTY} IN (SELECT floor FROM wards WHERE id = $1) AND w.id <> $1) >= 1
    AND ({ON_DUTY} = $2) >= 1"""
EMPTY = """SELECT w.floor FROM wards w LEFT JOIN (SELECT * FROM nurses WHERE on_duty) n
    ON n.ward = w.id GROUP BY w.floor HAVING count(n.id) = 0"""

OPTIMIZER: Final = "qserver.sql.optimizer"
BOUNDS: Final[tuple[tuple[Any, str, float], ...]] = (
    (import_module(f"{OPTIMIZER}.vector_trees"), "VECTOR_ROWS_MIN", 0),
    (import_module(f"{OPTIMIZER}.vectorization"), "VECTOR_ROWS_MIN", 0),
    (import_module(f"{OPTIMIZER}.vector_choice"), "START_OF_TREE", -1e9),
    (columns, "VECTOR_ROWS_MIN", 2),
    (tree_run, "BATCH_ROWS_MAX", 3),
    (tree_run, "PAIRS_MAX", 4),
    (tree_folding, "WAITING_MAX", 1),
    (tree_folding, "FOLDED_AT_ONCE_MIN", 1),
    (tree_folding, "GROUPS_FOLDED_MIN", 1),
    (tree_grouping, "VALUES_AT_ONCE", 2),
    (hash_tables, "VALUES_AT_ONCE", 2),
)


class SqlTrees(SqlWorkload):
    name = "sql_trees"
    tables = (
        "CREATE TABLE wards (id integer PRIMARY KEY, floor integer NOT NULL)",
        "CREATE TABLE nurses (id integer PRIMARY KEY, ward integer, on_duty boolean NOT NULL)",
        "CREATE TABLE leaves (number integer PRIMARY KEY, nurse integer, others integer)",
        f"INSERT INTO wards SELECT n, n % {FLOORS} FROM generate_series(0, {WARDS - 1}) AS g(n)",
        f"""INSERT INTO nurses SELECT n, n % {WARDS}, true
            FROM generate_series(0, {NURSES - 1}) AS g(n)""",
    )

    @contextmanager
    def bounds(self, world: SimulatedWorld) -> Iterator[None]:
        rows_of = tree_run.TreeRun.rows

        def rows(tree: tree_run.TreeRun, most: float) -> Generator[None, None, Any]:
            found = yield from rows_of(tree, most)
            if found is not None:
                world.reach("a vector tree gave its rows")
            return found

        values = (*BOUNDS, (tree_run.TreeRun, "rows", rows))
        own = [(place, name, getattr(place, name)) for place, name, _ in values]
        for place, name, value in values:
            setattr(place, name, value)
        try:
            yield
        finally:
            for place, name, value in own:
                setattr(place, name, value)

    async def transaction(self, service: Service, number: int) -> None:
        kind, nurse = self.chance.random(), self.chance.randrange(NURSES)
        if kind < 0.4:
            leave = Statement(LEAVE, [number, nurse]), Statement(LEFT, [nurse, number])
            await self._change(service, *leave, number=number)
        elif kind < 0.6:
            await self._change(service, Statement(RETURN, [nurse]))
        elif kind < 0.8:
            ward, floor = self.chance.randrange(WARDS), self.chance.randrange(FLOORS)
            await self._change(service, Statement(MOVE, [ward, floor]))
        else:
            found = await self.select(service, EMPTY)
            if found is not None:
                self._judge(found)

    async def _change(
        self, service: Service, *statements: Statement, number: int | None = None
    ) -> None:
        every = [PAUSE, *statements] if self.is_long() else list(statements)
        outcome = await self.together(service, every, number=number)
        if number is None or not isinstance(outcome, TransactionResult):
            return
        if not outcome.results[-1].affected_rows:
            del self.book.acknowledged[number]
            self.book.refused[number] = None

    def _judge(self, found: Result) -> None:
        self.expect(not found.rows, f"floors without a nurse at {found.version}: {found.rows}")

    async def check_rows(self, service: Service) -> None:
        self._judge(await self.must(service, EMPTY))
        leaves = await self.must(service, "SELECT number FROM leaves")
        self.problems += self.book.compare([row[0] for row in leaves.rows], service)
