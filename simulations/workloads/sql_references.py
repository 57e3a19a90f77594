"""References in SQL: parents are deleted while children of theirs are inserted.

Children keep their parents from being deleted (NO ACTION), wards go with them (CASCADE). No reader
may ever see one whose parent does not exist. Each answer has its version, so the workload knows
which rows must exist at the end: those inserted after the last deletion that would have taken them
along.
"""

from __future__ import annotations

from qserver.errors import Applied, ForeignKeyViolation
from qserver.query.sql_database import Result, Statement, TransactionResult
from simulations.service import Service
from simulations.workloads.sql_workload import PAUSE, SqlWorkload

PARENTS = 4

ADD_PARENT = "INSERT INTO parents VALUES ($1) ON CONFLICT DO NOTHING"
ADD = {
    "children": "INSERT INTO children VALUES ($1, $2)",
    "wards": "INSERT INTO wards VALUES ($1, $2)",
}
ADD_TOY = "INSERT INTO toys VALUES ($1, $1), ($1 + 1000000, $1)"
WARDS = "SELECT number FROM wards WHERE parent + 0 = $1"
COUNT_WARDS = "SELECT count(*) FROM wards WHERE parent = $1"
DELETE_PARENT = "DELETE FROM parents WHERE id = $1"
DELETE_CHILDREN = "DELETE FROM children WHERE parent = $1"
ORPHANS = """SELECT number, parent FROM children WHERE parent NOT IN (SELECT id FROM parents)
    UNION ALL
    SELECT number, parent FROM wards
    WHERE NOT EXISTS (SELECT 1 FROM parents WHERE parents.id = wards.parent)"""


class SqlReferences(SqlWorkload):
    name = "sql_references"
    tables = (
        "CREATE TABLE parents (id integer PRIMARY KEY)",
        """CREATE TABLE children (number integer PRIMARY KEY,
            parent integer NOT NULL REFERENCES parents)""",
        """CREATE TABLE wards (number integer PRIMARY KEY,
            parent integer NOT NULL REFERENCES parents ON DELETE CASCADE)""",
        "CREATE INDEX wards_of_parent ON wards (parent)",
        """CREATE TABLE toys (id integer PRIMARY KEY,
            ward integer NOT NULL REFERENCES wards ON DELETE CASCADE)""",
    )

    async def setup(self, service: Service) -> None:
        self.inserted: dict[int, tuple[str, int, int]] = {}
        """Table, parent and version by number."""
        self.deleted: dict[tuple[str, int], int] = {}
        """The last version at which rows of a table with a parent were deleted."""
        self.uncertain: dict[tuple[str, int], None] = {}
        await super().setup(service)

    async def transaction(self, service: Service, number: int) -> None:
        parent = self.chance.randrange(PARENTS)
        kind = self.chance.random()
        if kind < 0.2:
            await self.execute(service, ADD_PARENT, parent)
        elif kind < 0.55:
            await self._add(service, number, parent)
        elif kind < 0.75:
            statements = [Statement(COUNT_WARDS, [parent]), Statement(DELETE_PARENT, [parent])]
            await self._delete(service, "wards", parent, statements)
        elif kind < 0.85:
            statements = [Statement(DELETE_CHILDREN, [parent])]
            await self._delete(service, "children", parent, statements)
        else:
            orphans = await self.select(service, ORPHANS)
            if orphans is not None:
                self._judge(orphans)

    async def _add(self, service: Service, number: int, parent: int) -> None:
        table = self.chance.choice(("children", "wards"))
        statements = [Statement(ADD[table], [number, parent])]
        if table == "wards" and self.chance.random() < 0.5:  # so that a deletion goes on from it
            statements.append(Statement(ADD_TOY, [number]))
        outcome = await self.together(
            service, statements, number=number, may=(ForeignKeyViolation,)
        )
        if isinstance(outcome, TransactionResult):
            self.inserted[number] = (table, parent, outcome.version)

    async def _delete(
        self, service: Service, table: str, parent: int, statements: list[Statement]
    ) -> None:
        if self.is_long():
            statements.insert(self.chance.randrange(2), PAUSE)
        outcome = await self.together(service, statements, may=(ForeignKeyViolation,))
        if isinstance(outcome, TransactionResult):
            last = self.deleted.get((table, parent), 0)
            self.deleted[table, parent] = max(last, outcome.version)
            counts = [row[0] for row in outcome.results[0].rows]
            if table == "wards" and counts[0] and outcome.results[-1].affected_rows:
                service.world.reach("a deletion took along the rows that refer")
        elif outcome.applied is Applied.UNKNOWN:
            self.uncertain[table, parent] = None

    def _judge(self, orphans: Result) -> None:
        self.expect(not orphans.rows, f"orphans at version {orphans.version}: {orphans.rows}")

    async def check_rows(self, service: Service) -> None:
        self._judge(await self.must(service, ORPHANS))
        present: dict[int, int] = {}
        for table in ADD:
            rows = (await self.must(service, f"SELECT number, parent FROM {table}")).rows
            present.update(rows)
        for number, (table, parent, version) in self.inserted.items():
            deleted = self.deleted.get((table, parent), 0)
            where = f"{number} of {table}, inserted at {version}, last deletion at {deleted}"
            self.expect(number not in present or deleted <= version, f"still there: {where}")
            if deleted < version and (table, parent) not in self.uncertain:
                self.expect(number in present, f"lost: {where}")
        ghosts = [number for number in self.book.refused if number in present]
        self.expect(not ghosts, f"refused but applied: {ghosts}")
        for parent in range(PARENTS):
            counted = (await self.must(service, COUNT_WARDS, parent)).rows[0][0]
            rows = (await self.must(service, WARDS, parent)).rows
            self.expect(counted == len(rows), f"wards of {parent}: {counted} by index, {rows}")
