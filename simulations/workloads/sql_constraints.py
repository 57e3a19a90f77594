"""Constraints in SQL that come and go: UNIQUE, FOREIGN KEY and CHECK against concurrent inserts.

A constraint is added after reading all rows, and rows are inserted after reading the constraints.
Each may see nothing of the other; still, whenever a constraint exists, all rows satisfy it.
"""

from __future__ import annotations

from typing import Final

from qserver.errors import (
    CheckViolation,
    DuplicateObject,
    ForeignKeyViolation,
    UniqueViolation,
)
from qserver.storage.transaction import Transaction
from simulations.service import Service
from simulations.workloads.sql_workload import SqlWorkload

MARKS = 6
SMALL = 4

ADD_OWNER = "INSERT INTO owners VALUES ($1) ON CONFLICT DO NOTHING"
DELETE_OWNER = "DELETE FROM owners WHERE id = $1"
ADD_MARK = "INSERT INTO marks VALUES ($1, $2)"
DELETE_MARKS = "DELETE FROM marks WHERE mark = $1"
ADD: Final = {
    "CREATE UNIQUE INDEX IF NOT EXISTS marks_mark ON marks (mark)": """DELETE FROM marks
        WHERE number NOT IN (SELECT min(number) FROM marks GROUP BY mark)""",
    "ALTER TABLE marks ADD CONSTRAINT owned FOREIGN KEY (mark) REFERENCES owners": """DELETE
        FROM marks WHERE mark NOT IN (SELECT id FROM owners)""",
    f"ALTER TABLE marks ADD CONSTRAINT small CHECK (mark < {SMALL})": f"""DELETE FROM marks
        WHERE mark >= {SMALL}""",
}
"""Each with the statement that deletes the rows in its way.

That is a transaction of its own, so there is time for others to insert some more.
"""

DROP: Final = (
    "DROP INDEX IF EXISTS marks_mark",
    "ALTER TABLE marks DROP CONSTRAINT IF EXISTS owned",
    "ALTER TABLE marks DROP CONSTRAINT IF EXISTS small",
)
REFUSED: Final = (UniqueViolation, ForeignKeyViolation, CheckViolation)


class SqlConstraints(SqlWorkload):
    name = "sql_constraints"
    tables = (
        "CREATE TABLE owners (id integer PRIMARY KEY)",
        "CREATE TABLE marks (number integer PRIMARY KEY, mark integer NOT NULL)",
        f"INSERT INTO owners SELECT * FROM generate_series(0, {MARKS // 2})",
    )

    async def transaction(self, service: Service, number: int) -> None:
        kind = self.chance.random()
        mark = self.chance.randrange(MARKS)
        if kind < 0.4:
            await self.execute(service, ADD_MARK, number, mark, may=REFUSED)
        elif kind < 0.5:
            await self.execute(service, DELETE_MARKS, mark)
        elif kind < 0.6:
            await self.execute(service, DELETE_OWNER, mark, may=REFUSED)
        elif kind < 0.65:
            await self.execute(service, ADD_OWNER, mark)
        elif kind < 0.8:
            add, in_its_way = self.chance.choice(list(ADD.items()))
            await self.execute(service, in_its_way)
            await self.execute(service, add, may=(*REFUSED, DuplicateObject))
        elif kind < 0.88:
            await self.execute(service, self.chance.choice(DROP))
        else:
            await self.compare_trees(service)
            await self.complain(service, large_in_spite_of_check)

    async def check_rows(self, service: Service) -> None:
        await self.complain(service, large_in_spite_of_check)
        for statements in (DROP, ADD.values(), ADD):
            for sql in statements:
                await self.must(service, sql)
        await self.compare_trees(service)


def large_in_spite_of_check(transaction: Transaction) -> list[str]:
    marks = transaction.table("marks")
    large = [row for row in transaction.rows(marks) if row[1] >= SMALL]
    return [f"rows that a CHECK forbids: {large}"] if large and marks.checks else []
