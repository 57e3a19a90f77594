"""Migrations in SQL: definitions and data change in one transaction, while others are under way.

    batches    which of the tables exist, which migration made each, and how many rows it must have
    batch_0 …  dropped, made again with another default, widened, filled and emptied; each row bears
               the number of the migration that made its table, by that default

A migration takes effect as a whole or not at all: a table without its rows, or rows under a
definition that was never committed, show as a batch that disagrees with its line in `batches`. Some
fail at their last statement and must leave nothing, neither a row nor a plan. Clients send the same
few statements at the same time, so requests of one fingerprint, whose plans are kept, are under way
whenever a definition changes.
"""

from __future__ import annotations

from typing import Final

import trio

from qserver.errors import DivisionByZero, QserverError, UndefinedTable, UniqueViolation
from qserver.query.sql_database import Result, Statement, TransactionResult
from simulations.service import Service
from simulations.workloads.sql_workload import PAUSE, SqlWorkload

TABLES: Final = 2

CREATE: Final = (
    "CREATE TABLE batch_{} (id integer PRIMARY KEY, maker integer NOT NULL DEFAULT {},"
    " part integer NOT NULL DEFAULT 0)"
)
OTHER_ORDER: Final = (
    "CREATE TABLE batch_{} (part integer NOT NULL DEFAULT 0, id integer PRIMARY KEY,"
    " maker integer NOT NULL DEFAULT {})"
)
INDEX: Final = "CREATE INDEX batch_{}_part ON batch_{} (part)"
FILL: Final = "INSERT INTO batch_{} (id, part) VALUES ($1, 1), ($2, 2), ($3, 1)"
ADD: Final = "INSERT INTO batch_{} (id, part) VALUES ($1, 2) RETURNING maker"
WIDEN: Final = "ALTER TABLE batch_{} ADD COLUMN extra integer NOT NULL DEFAULT {}"
NARROW: Final = "ALTER TABLE batch_{} DROP COLUMN IF EXISTS extra"
CLAIM: Final = "UPDATE batch_{} SET maker = $1"
NEW_DEFAULT: Final = "ALTER TABLE batch_{} ALTER COLUMN maker SET DEFAULT {}"
NOTE: Final = """INSERT INTO batches VALUES ($1, $2, $3)
    ON CONFLICT (batch) DO UPDATE SET maker = excluded.maker, rows = excluded.rows"""
NOTE_MAKER: Final = "UPDATE batches SET maker = $2 WHERE batch = $1"
ONE_MORE: Final = "UPDATE batches SET rows = rows + 1 WHERE batch = $1 RETURNING maker"
FAIL: Final = "SELECT 1 / $1::integer"
NOTED: Final = "SELECT maker, rows FROM batches WHERE batch = $1"
ROWS: Final = "SELECT id, maker, part FROM batch_{}"
BY_PART: Final = "SELECT id FROM batch_{} WHERE part = $1"

MAY: Final = (DivisionByZero, UniqueViolation)


class SqlMigrations(SqlWorkload):
    name = "sql_migrations"
    tables = (
        """CREATE TABLE batches (batch integer PRIMARY KEY, maker integer NOT NULL,
            rows integer NOT NULL)""",
        *(CREATE.format(batch, 0) for batch in range(TABLES)),
        f"INSERT INTO batches SELECT n, 0, 0 FROM generate_series(0, {TABLES - 1}) AS g(n)",
    )

    async def setup(self, service: Service) -> None:
        self.under_way: dict[str, int] = {}
        """How many requests with a text have been sent and not ended."""
        await super().setup(service)

    async def transaction(self, service: Service, number: int) -> None:
        batch = self.chance.randrange(TABLES)
        kind = self.chance.random()
        if kind < 0.12:
            await self._migrate(service, self._renewal(number, batch))
        elif kind < 0.2:
            await self._migrate(service, self._alteration(number, batch))
        elif kind < 0.75:
            await self._add_at_once(service, number, batch)
        else:
            await self._compare(service, batch)

    # --- migrations ---

    def _renewal(self, number: int, batch: int) -> list[Statement]:
        create = self.chance.choice((CREATE, OTHER_ORDER))
        keys = [number * 10 + at for at in range(3)]
        statements = [
            Statement(f"DROP TABLE batch_{batch}"),
            Statement(create.format(batch, number)),
            Statement(FILL.format(batch), keys),
            Statement(NOTE, [batch, number, 3]),
        ]
        if self.chance.random() < 0.5:
            index = Statement(INDEX.format(batch, batch))
            statements.insert(self.chance.choice((2, 3)), index)
            statements.append(Statement(BY_PART.format(batch), [1]))
        return statements

    def _alteration(self, number: int, batch: int) -> list[Statement]:
        """Change columns and rows, or only the rows under another default."""
        statements = [
            Statement(NARROW.format(batch)),
            Statement(WIDEN.format(batch, number)),
        ]
        if self.chance.random() < 0.3:
            statements = []
        return [
            *statements,
            Statement(CLAIM.format(batch), [number]),
            Statement(NEW_DEFAULT.format(batch, number)),
            Statement(NOTE_MAKER, [batch, number]),
        ]

    async def _migrate(self, service: Service, statements: list[Statement]) -> None:
        if self.chance.random() < 0.3:
            statements.append(Statement(FAIL, [0]))
        if self.is_long():
            statements.insert(self.chance.randrange(1, len(statements)), PAUSE)
        outcome = await self.together(service, statements, may=MAY)
        if isinstance(outcome, DivisionByZero):
            service.world.reach("a transaction failed after it had changed definitions and data")
        if isinstance(outcome, TransactionResult):
            self.expect(statements[-1].sql != FAIL, "a division by zero has succeeded")
            service.world.reach("definitions and data changed in one transaction")
            if any(count > 1 for count in self.under_way.values()):
                service.world.reach(
                    "two requests of one fingerprint were under way across a definition"
                )
            part = statements[-1].sql.startswith("SELECT id") and len(outcome.results[-1].rows)
            self.expect(part in (False, 2), f"{part} rows by an index of the same transaction")

    # --- rows ---

    async def _add_at_once(self, service: Service, number: int, batch: int) -> None:
        """Send the same statements twice, one beside the other."""
        async with trio.open_nursery() as nursery:
            for at in range(self.chance.choice((1, 2, 2))):
                nursery.start_soon(self._add, service, number * 10 + 5 + at, batch)

    async def _add(self, service: Service, key: int, batch: int) -> None:
        statements = [Statement(ADD.format(batch), [key]), Statement(ONE_MORE, [batch])]
        if self.is_long():
            statements.insert(1, PAUSE)
        text = statements[0].sql
        self.under_way[text] = self.under_way.get(text, 0) + 1
        outcome: TransactionResult | QserverError = await self.together(service, statements)
        self.under_way[text] -= 1
        if isinstance(outcome, TransactionResult):
            row, noted = outcome.results[0].rows, outcome.results[-1].rows
            self.expect(
                row == noted, f"row {key} of version {outcome.version} is of {row}, not {noted}"
            )

    async def _compare(self, service: Service, batch: int) -> None:
        statements = [Statement(NOTED, [batch]), Statement(ROWS.format(batch))]
        if self.chance.random() < 0.3:
            statements.append(Statement(BY_PART.format(batch), [1]))
        outcome = await self.together(service, statements, may=(UndefinedTable,))
        self.expect(not isinstance(outcome, UndefinedTable), f"batch {batch} is not there")
        if isinstance(outcome, TransactionResult):
            self._judge(batch, *outcome.results)

    def _judge(
        self, batch: int, noted: Result, rows: Result, first_part: Result | None = None
    ) -> None:
        where = f"batch {batch} at version {rows.version}"
        ((maker, count),) = noted.rows
        strange = [row for row in rows.rows if row[1] != maker]
        self.expect(not strange, f"{where} is of {maker}, and has {strange}")
        self.expect(len(rows.rows) == count, f"{where} has {rows.rows}, not {count} rows")
        if first_part is not None:
            found = sorted(row[0] for row in first_part.rows)
            there = sorted(row[0] for row in rows.rows if row[2] == 1)
            self.expect(found == there, f"part 1 of {where} is {found}, not {there}")

    async def check_rows(self, service: Service) -> None:
        for batch in range(TABLES):
            self._judge(
                batch,
                await self.must(service, NOTED, batch),
                await self.must(service, ROWS.format(batch)),
                await self.must(service, BY_PART.format(batch), 1),
            )
