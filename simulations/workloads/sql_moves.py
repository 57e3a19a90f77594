"""References in SQL whose keys change: parents are renamed while other rows come to reference them.

    parents    id, code UNIQUE, and a stable number that no statement ever changes
    children   refer to a code, ON UPDATE CASCADE, ON DELETE CASCADE
    wards      refer to a code, ON UPDATE SET NULL, ON DELETE SET NULL
    guests     refer to a code, ON UPDATE RESTRICT
    pets       refer to an id, which changes too, ON UPDATE CASCADE, ON DELETE CASCADE

A referencing row also has the stable number of its parent. So at any version all references must
lead to that very parent, whatever its code is now. The versions of statements show which wards must
have lost theirs.
"""

from __future__ import annotations

from typing import Final

from qserver.errors import Applied, ForeignKeyViolation, UniqueViolation
from qserver.query.sql_database import Result, Statement, TransactionResult
from simulations.service import Service
from simulations.workloads.sql_workload import PAUSE, SqlWorkload

PARENTS: Final = 3
MOVED: Final = 100

ADD_PARENT: Final = "INSERT INTO parents VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
ADD: Final = {
    table: f"INSERT INTO {table} SELECT $1, stable, {what} FROM parents WHERE id = $2"
    for table, what in (("children", "code"), ("wards", "code"), ("guests", "code"), ("pets", "id"))
}
RENAME: Final = "UPDATE parents SET code = $1 WHERE id = $2 RETURNING stable"
MOVE: Final = "UPDATE parents SET id = $1 WHERE id = $2 RETURNING stable"
MOVE_ALL: Final = "UPDATE parents SET id = (id + $1) % 200 WHERE id >= 0"
DELETE: Final = "DELETE FROM parents WHERE id = $1 RETURNING stable"
ADOPT: Final = """UPDATE children SET (born, code) =
    (SELECT stable, code FROM parents WHERE id = $2) WHERE number = $1"""
GUESTS_LEAVE: Final = "DELETE FROM guests WHERE number % 2 = $1"
ASTRAY: Final = """SELECT 'child', number FROM children AS c WHERE code IS NOT NULL AND NOT EXISTS
        (SELECT 1 FROM parents WHERE parents.code = c.code AND parents.stable = c.born)
    UNION ALL SELECT 'ward', number FROM wards AS w WHERE code IS NOT NULL AND NOT EXISTS
        (SELECT 1 FROM parents WHERE parents.code = w.code AND parents.stable = w.born)
    UNION ALL SELECT 'guest', number FROM guests AS g WHERE NOT EXISTS
        (SELECT 1 FROM parents WHERE parents.code = g.code AND parents.stable = g.born)
    UNION ALL SELECT 'pet', number FROM pets AS p WHERE NOT EXISTS
        (SELECT 1 FROM parents WHERE parents.id = p.parent AND parents.stable = p.born)"""
WARDS: Final = "SELECT number, born, code FROM wards"
BY_CODE: Final = "SELECT number FROM wards WHERE code = $1"


class SqlMoves(SqlWorkload):
    name = "sql_moves"
    tables = (
        """CREATE TABLE parents (id integer PRIMARY KEY, code integer NOT NULL UNIQUE,
            stable integer NOT NULL)""",
        """CREATE TABLE children (number integer PRIMARY KEY, born integer, code integer
            REFERENCES parents (code) ON UPDATE CASCADE ON DELETE CASCADE)""",
        """CREATE TABLE wards (number integer PRIMARY KEY, born integer, code integer
            REFERENCES parents (code) ON UPDATE SET NULL ON DELETE SET NULL)""",
        """CREATE TABLE guests (number integer PRIMARY KEY, born integer, code integer NOT NULL
            REFERENCES parents (code) ON UPDATE RESTRICT)""",
        """CREATE TABLE pets (number integer PRIMARY KEY, born integer, parent integer NOT NULL
            REFERENCES parents ON UPDATE CASCADE ON DELETE CASCADE)""",
        "CREATE INDEX wards_of_code ON wards (code)",
    )

    async def setup(self, service: Service) -> None:
        self.wards: dict[int, tuple[int, int]] = {}
        """Parent, by its stable number, and version by the number of a ward."""
        self.changed: dict[int, list[int]] = {}
        """Versions at which a parent got another code, or was deleted, by its stable number."""
        self.uncertain = False
        """Whether a request of unknown outcome may have changed a code."""
        await super().setup(service)
        for parent in range(PARENTS):
            await self.must(service, ADD_PARENT, parent, -1 - parent, -1 - parent)

    async def transaction(self, service: Service, number: int) -> None:
        parent = self.chance.randrange(PARENTS) + MOVED * self.chance.randrange(2)
        kind = self.chance.random()
        if kind < 0.15:
            await self.execute(service, ADD_PARENT, parent, number, number)
        elif kind < 0.4:
            await self._add(service, number, parent)
        elif kind < 0.62:
            await self._rename(service, number, parent)
        elif kind < 0.7:
            await self._change(service, [Statement(DELETE, [parent])])
        elif kind < 0.78:
            moved = (parent + MOVED) % (2 * MOVED)
            statement = Statement(MOVE, [moved, parent])
            if self.chance.random() < 0.5:  # several at once, to keys that others of them leave
                statement = Statement(MOVE_ALL, [MOVED])
            await self.together(service, [statement], may=(ForeignKeyViolation, UniqueViolation))
        elif kind < 0.84:
            other = self.chance.randrange(1, 1 + number)
            await self.execute(service, ADOPT, other, parent)
        elif kind < 0.88:
            await self.execute(service, GUESTS_LEAVE, self.chance.randrange(2))
        else:
            astray = await self.select(service, ASTRAY)
            if astray is not None:
                self._judge(astray)

    async def _add(self, service: Service, number: int, parent: int) -> None:
        table = self.chance.choice(("children", "children", "wards", "wards", "guests", "pets"))
        outcome = await self.execute(service, ADD[table], number, parent, number=number)
        if isinstance(outcome, Result) and outcome.affected_rows and table == "wards":
            await self._note_ward(service, number, outcome.version)

    async def _note_ward(self, service: Service, number: int, version: int) -> None:
        found = await self.select(service, WARDS)
        born = [row[1] for row in found.rows if row[0] == number] if found is not None else []
        if born:
            self.wards[number] = (born[0], version)

    async def _rename(self, service: Service, number: int, parent: int) -> None:
        """Give a parent another code; sometimes right after a row has come to reference it."""
        statements = [Statement(RENAME, [number, parent])]
        if self.chance.random() < 0.3:
            statements.insert(0, Statement(ADD["children"], [number, parent]))
        if self.is_long():
            statements.insert(self.chance.randrange(2), PAUSE)
        await self._change(service, statements)

    async def _change(self, service: Service, statements: list[Statement]) -> None:
        outcome = await self.together(service, statements, may=(ForeignKeyViolation,))
        if isinstance(outcome, TransactionResult):
            for result in outcome.results:
                if result.columns == ("stable",):
                    for (stable,) in result.rows:
                        self.changed.setdefault(stable, []).append(outcome.version)
                        service.world.reach("a key changed that others refer to")
        elif isinstance(outcome, ForeignKeyViolation):
            service.world.reach("a key could not change because others refer to it")
        elif outcome.applied is Applied.UNKNOWN:
            self.uncertain = True

    def _judge(self, astray: Result) -> None:
        self.expect(not astray.rows, f"they lead astray at version {astray.version}: {astray.rows}")

    async def check_rows(self, service: Service) -> None:
        self._judge(await self.must(service, ASTRAY))
        wards = {row[0]: row[2] for row in (await self.must(service, WARDS)).rows}
        for number, (stable, version) in self.wards.items():
            self.expect(number in wards, f"ward {number} of version {version} is lost")
            changed = self.changed.get(stable, ())
            later = [each for each in changed if each > version]
            code = wards.get(number)
            # Transactions of one round share a version: the change may be before the ward or after.
            unsure = self.uncertain or version in changed
            self.expect(
                code is None if later else code is not None or unsure,
                f"ward {number} of version {version} has {code}, its parent changed at {later}",
            )
        for code in {code for code in wards.values() if code is not None}:
            found = sorted(row[0] for row in (await self.must(service, BY_CODE, code)).rows)
            there = sorted(number for number, each in wards.items() if each == code)
            self.expect(found == there, f"wards of code {code}: {found} by index, {there}")
