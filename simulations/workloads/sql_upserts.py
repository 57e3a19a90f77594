"""Several rows at once in SQL: INSERT … ON CONFLICT by a unique index, and INSERT of all or none.

    stock    a name is unique, the key is another; adding a name that exists counts it up
    crates   go in by threes, and one that exists already keeps out the other two

Each row of a statement meets rows that others have committed, rows that others have written in the
same round, and rows of its own transaction. Counts are exact, each answer has another count, a name
has one row, and a statement that proposes a name twice is refused as a whole.
"""

from __future__ import annotations

from typing import Any, Final

from qserver.errors import Applied, CardinalityViolation, QserverError, UniqueViolation
from qserver.query.sql_database import Result, Statement, TransactionResult
from simulations.service import Service
from simulations.workloads.sql_workload import PAUSE, SqlWorkload

NAMES: Final = 9
PLACES: Final = 24

COUNT: Final = """INSERT INTO stock VALUES ($1, $2, 1), ($3, $4, 1), ($5, $6, 1)
    ON CONFLICT (name) DO UPDATE SET hits = stock.hits + excluded.hits RETURNING name, hits"""
RENUMBER: Final = """INSERT INTO stock VALUES ($1, $2, 1), ($3, $4, 1)
    ON CONFLICT (name) DO UPDATE SET id = excluded.id, hits = stock.hits + 1
    RETURNING name, hits"""
IF_NEW: Final = """INSERT INTO stock VALUES ($1, $2, 1), ($3, $4, 1), ($5, $6, 1)
    ON CONFLICT (name) DO NOTHING RETURNING name, hits"""
CRATES: Final = {
    2: "INSERT INTO crates VALUES ($2, $1, $4), ($3, $1, $5)",
    3: "INSERT INTO crates VALUES ($2, $1, $5), ($3, $1, $6), ($4, $1, $7)",
}
"""By how many are put at once."""
REMOVE: Final = "DELETE FROM crates WHERE id >= $1 AND id < $1 + 8 RETURNING id, number"
STOCK: Final = "SELECT id, name, hits FROM stock"
BY_NAME: Final = "SELECT id, hits FROM stock WHERE name = $1"
ALL_CRATES: Final = "SELECT id, number FROM crates"


class SqlUpserts(SqlWorkload):
    name = "sql_upserts"
    tables = (
        """CREATE TABLE stock (id integer PRIMARY KEY, name integer NOT NULL UNIQUE,
            hits integer NOT NULL)""",
        """CREATE TABLE crates (id integer PRIMARY KEY, number integer NOT NULL,
            mark integer NOT NULL UNIQUE)""",
    )

    async def setup(self, service: Service) -> None:
        self.told: dict[int, list[int]] = {name: [] for name in range(NAMES)}
        """All counts of a name that were answered."""
        self.uncertain = dict.fromkeys(range(NAMES), 0)
        self.crates: dict[int, tuple[int, ...]] = {}
        """Keys of crates by the number of the transaction that put them there."""
        self.removed: dict[tuple[int, int], int] = {}
        self.removals_uncertain = 0
        self.at_once = self.chance.choice(tuple(CRATES))
        await super().setup(service)

    async def transaction(self, service: Service, number: int) -> None:
        kind = self.chance.random()
        if kind < 0.5:
            await self._count(service, number)
        elif kind < 0.75:
            await self._put_crates(service, number)
        elif kind < 0.88:
            await self._remove(service)
        else:
            found = await self.select(service, STOCK)
            if found is not None:
                self._judge(found)

    # --- stock ---

    async def _count(self, service: Service, number: int) -> None:
        sql, size = self.chance.choice(((COUNT, 3), (COUNT, 3), (RENUMBER, 2), (IF_NEW, 3)))
        names = self.chance.sample(range(NAMES), size)
        twice = self.chance.random() < 0.15
        if twice:
            names[-1] = names[0]
        statements = [Statement(sql, _pairs(number * 10, names))]
        repeated = self.chance.random() < 0.3
        if repeated:  # the second meets rows of the first
            statements.append(Statement(sql, _pairs(number * 10 + 5, names)))
        if self.is_long():
            statements.insert(1, PAUSE)
        may = (CardinalityViolation,) if twice and sql != IF_NEW else ()
        outcome = await self.together(service, statements, may=may)
        if isinstance(outcome, TransactionResult):
            if may:
                self.problems.append(f"{names} were proposed at once, and nobody minded")
            self._note(
                service, [result for result in outcome.results if result.columns[0] == "name"]
            )
            if repeated:
                service.world.reach("an upsert met rows of its own transaction")
        elif isinstance(outcome, CardinalityViolation):
            service.world.reach("an upsert was refused because it would change a row twice")
        elif outcome.applied is Applied.UNKNOWN:
            for name in names * len(statements):
                self.uncertain[name] += 1

    def _note(self, service: Service, results: list[Result]) -> None:
        for result in results:
            for name, hits in result.rows:
                told = self.told[name]
                self.expect(hits not in told, f"two were told that {name} has {hits}: {told}")
                told.append(hits)
            if len(result.rows) > 1 and any(hits > 1 for _, hits in result.rows):
                service.world.reach("an upsert of several rows met some that were there")

    def _judge(self, stock: Result) -> None:
        names = [row[1] for row in stock.rows]
        self.expect(
            len(set(names)) == len(names), f"names at version {stock.version} are {sorted(names)}"
        )

    # --- crates ---

    async def _put_crates(self, service: Service, number: int) -> None:
        """Put crates at few places, so that most of these are races."""
        keys = tuple(self.chance.sample(range(PLACES), self.at_once))
        marks = self.chance.sample(range(PLACES), self.at_once)
        outcome = await self.execute(
            service,
            CRATES[self.at_once],
            number,
            *keys,
            *marks,
            number=number,
            may=(UniqueViolation,),
        )
        if isinstance(outcome, Result):
            whole = outcome.affected_rows == self.at_once
            self.expect(whole, f"{number} put {outcome.affected_rows}")
            self.crates[number] = keys
        elif isinstance(outcome, UniqueViolation):
            service.world.reach("an INSERT of several rows was refused as a whole")

    async def _remove(self, service: Service) -> None:
        first = self.chance.choice((0, 8, 16))
        outcome: Result | QserverError = await self.execute(service, REMOVE, first)
        if isinstance(outcome, Result):
            for key, number in outcome.rows:
                self.removed[key, number] = outcome.version
        elif outcome.applied is Applied.UNKNOWN:
            self.removals_uncertain += 8

    # --- the end ---

    async def check_rows(self, service: Service) -> None:
        stock = await self.must(service, STOCK)
        self._judge(stock)
        hits = {name: count for _, name, count in stock.rows}
        for name, told in self.told.items():
            count, most = hits.get(name, 0), len(told) + self.uncertain[name]
            right = len(told) <= count <= most and max(told, default=0) <= count
            self.expect(right, f"{name} has {count} hits, not {len(told)} to {most}: {told}")
        for key, name, count in stock.rows:
            found = (await self.must(service, BY_NAME, name)).rows
            self.expect(found == [(key, count)], f"{name} is {found} by index, {(key, count)}")
        await self._check_crates(service)

    async def _check_crates(self, service: Service) -> None:
        present: dict[int, int] = dict((await self.must(service, ALL_CRATES)).rows)
        gone = [
            (key, number)
            for number, keys in self.crates.items()
            for key in keys
            if present.get(key) != number and (key, number) not in self.removed
        ]
        lost = len(gone) > self.removals_uncertain
        self.expect(not lost, f"{self.removals_uncertain} may be removed, and gone are {gone}")
        both = [pair for pair in self.removed if present.get(pair[0]) == pair[1]]
        self.expect(not both, f"crates were removed and are still there: {both}")
        ghosts = sorted({n for n in present.values() if n in self.book.refused})
        self.expect(not ghosts, f"refused but applied: {ghosts}")


def _pairs(first: int, names: list[int]) -> list[Any]:
    return [value for at, name in enumerate(names) for value in (first + at, name)]
