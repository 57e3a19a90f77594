"""The workloads: their setup, a client's operation, and the check at the end.

    point_read    one row by its key
    insert        one new row
    update        one row by its key, any of many
    transfer      two rows in one transaction; the sum of all is kept
    hot_counter   one row, the same for everybody: each commit depends on the one before
    scan          all rows, grouped
    mixed         eight reads, one update, one insert, at random

A workload object serves one run. It counts acknowledged changes, so that `check` can compare the
database with them: a benchmark of a database that loses data is worthless.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from types import MappingProxyType
from typing import ClassVar, Final, Protocol

from qserver.query.sql_database import SqlDatabase, Statement

ROWS: Final = 1000
"""Rows at the start of a workload."""

BALANCE: Final = 1000
"""The initial balance of each account of `transfer`."""


class Workload(Protocol):
    description: ClassVar[str]

    async def set_up(self, database: SqlDatabase) -> None:
        """Prepare the database before the clock starts."""

    async def operate(self, database: SqlDatabase, chance: Random) -> int:
        """Run one operation; return its number of commits."""

    async def check(self, database: SqlDatabase) -> str | None:
        """The problem in the database afterwards; None if there is none."""


class _TableWorkload:
    """A table of rows with a number each, which starts at `first`."""

    description: ClassVar[str]
    rows: ClassVar[int] = ROWS
    first: ClassVar[int] = 0

    def __init__(self) -> None:
        self.inserted = self.rows
        self.added = 0
        self.wrong: str | None = None

    async def set_up(self, database: SqlDatabase) -> None:
        await database.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)")
        await database.execute(
            "INSERT INTO items SELECT i, ? FROM generate_series(1, ?) AS s (i)",
            [self.first, self.rows],
        )

    async def check(self, database: SqlDatabase) -> str | None:
        """Check that the count and the sum of the rows equal what was acknowledged."""
        if self.wrong is not None:
            return self.wrong
        found = await database.execute("SELECT count(*), sum(n) FROM items")
        expected = (self.inserted, self.rows * self.first + self.added)
        ((count, total),) = found.rows
        if (count, total) == expected:
            return None
        return f"found {count} rows with a sum of {total}, expected {expected[0]} and {expected[1]}"

    # --- operations ---

    async def read(self, database: SqlDatabase, chance: Random) -> int:
        key = chance.randint(1, self.rows)
        result = await database.execute("SELECT id, n FROM items WHERE id = ?", [key])
        if [row[0] for row in result.rows] != [key]:
            self.wrong = f"row {key} was read as {result.rows}"
        return 0

    async def update(self, database: SqlDatabase, key: int) -> int:
        result = await database.execute("UPDATE items SET n = n + 1 WHERE id = ?", [key])
        self.added += result.affected_rows
        return 1

    async def insert(self, database: SqlDatabase, chance: Random) -> int:
        self.inserted += 1  # before the await, so that no other client takes the same number
        await database.execute("INSERT INTO items VALUES (?, 0)", [self.inserted])
        return 1


class PointRead(_TableWorkload):
    description = "one row by its key"

    async def operate(self, database: SqlDatabase, chance: Random) -> int:
        return await self.read(database, chance)


class Insert(_TableWorkload):
    description = "one new row"
    rows = 0

    async def operate(self, database: SqlDatabase, chance: Random) -> int:
        return await self.insert(database, chance)

    async def check(self, database: SqlDatabase) -> str | None:
        found = await database.execute("SELECT count(*) FROM items")
        if found.rows == [(self.inserted,)]:
            return None
        return f"found {found.rows[0][0]} rows, expected {self.inserted}"


class Update(_TableWorkload):
    description = "one row by its key, any of many"

    async def operate(self, database: SqlDatabase, chance: Random) -> int:
        return await self.update(database, chance.randint(1, self.rows))


class Transfer(_TableWorkload):
    description = "two rows in one transaction; the sum of all is kept"
    first = BALANCE

    async def operate(self, database: SqlDatabase, chance: Random) -> int:
        giver, taker = chance.sample(range(1, self.rows + 1), 2)
        amount = chance.randint(1, 10)
        await database.transaction(
            [
                Statement("UPDATE items SET n = n - ? WHERE id = ?", [amount, giver]),
                Statement("UPDATE items SET n = n + ? WHERE id = ?", [amount, taker]),
            ]
        )
        return 1


class HotCounter(_TableWorkload):
    description = "one row, the same for everybody"
    rows = 1

    async def operate(self, database: SqlDatabase, chance: Random) -> int:
        return await self.update(database, 1)


class Scan(_TableWorkload):
    description = "all rows, grouped"

    async def operate(self, database: SqlDatabase, chance: Random) -> int:
        result = await database.execute("SELECT n, count(*) FROM items GROUP BY n")
        if result.rows != [(0, self.rows)]:
            self.wrong = f"a scan gave {result.rows}"
        return 0


class Mixed(_TableWorkload):
    description = "eight reads, one update, one insert, by chance"

    async def operate(self, database: SqlDatabase, chance: Random) -> int:
        match chance.randrange(10):
            case 0:
                return await self.update(database, chance.randint(1, self.rows))
            case 1:
                return await self.insert(database, chance)
            case _:
                return await self.read(database, chance)


WORKLOADS: Final[Mapping[str, type[Workload]]] = MappingProxyType(
    {
        "point_read": PointRead,
        "insert": Insert,
        "update": Update,
        "transfer": Transfer,
        "hot_counter": HotCounter,
        "scan": Scan,
        "mixed": Mixed,
    }
)
