"""The workloads of a service: what each client does, and the check at the end.

    point_read, insert, update, transfer   see `operations`
    hot_counter   one row, the same for everybody: each commit depends on the one before
    scan          all rows, grouped
    mixed         eight reads, one update, one insert, at random

A run counts acknowledged changes, so that its check can compare the database with them: a benchmark
of a database that loses data is worthless.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from types import MappingProxyType
from typing import Any, Final

from qserver.query.sql_database import SqlDatabase, Statement
from qserver.workloads.operations import (
    BALANCE,
    Operation,
    Operations,
    Tables,
    insert,
    point,
    transfer,
    update,
)

ACCOUNTS: Final = 1000


def scan(tables: Tables, chance: Random) -> Iterator[Operation]:
    sql = f"SELECT balance, count(*) FROM {tables.accounts} GROUP BY balance"
    while True:
        yield Operation(((sql, []),), found=((BALANCE, tables.size),))


def mixed(tables: Tables, chance: Random) -> Iterator[Operation]:
    reads, *others = (each(tables, chance) for each in (point, update, insert))
    while True:
        drawn = chance.randrange(10)
        yield next(others[drawn] if drawn < len(others) else reads)


WORKLOADS: Final[Mapping[str, Operations]] = MappingProxyType(
    {
        "point_read": point,
        "insert": insert,
        "update": update,
        "transfer": transfer,
        "hot_counter": update,
        "scan": scan,
        "mixed": mixed,
    }
)


class Run:
    """A workload in a database, and what it has acknowledged."""

    def __init__(self, name: str, database: SqlDatabase) -> None:
        self._database = database
        self._tables = Tables("bench", 1 if name == "hot_counter" else ACCOUNTS)
        self._operations = WORKLOADS[name]
        self._inserted = self._added = 0
        self._wrong: str | None = None

    async def set_up(self) -> None:
        for sql in self._tables.set_up():
            await self._database.execute(sql)

    def operations(self, chance: Random) -> Iterator[Operation]:
        """What one client does, without end."""
        return self._operations(self._tables, chance)

    async def operate(self, operation: Operation) -> int:
        """Do it; return its number of commits."""
        if len(operation.statements) > 1:
            await self._database.transaction([Statement(*each) for each in operation.statements])
            rows: Sequence[tuple[Any, ...]] = ()
        else:
            rows = (await self._database.execute(*operation.statements[0])).rows
        self._inserted += operation.inserted
        self._added += operation.added
        if operation.found is None:
            return 1
        if not begin_with(rows, operation.found):
            self._wrong = f"{operation.statements} gave {rows}"
        return 0

    async def check(self) -> str | None:
        """The problem in the database afterwards; None if it has what was acknowledged."""
        if self._wrong is not None:
            return self._wrong
        tables = self._tables
        found = await self._database.execute(
            "SELECT a.count, a.sum, e.count"
            f" FROM (SELECT count(*), sum(balance) FROM {tables.accounts}) AS a,"
            f" (SELECT count(*) FROM {tables.entries}) AS e"
        )
        expected = tables.size, tables.size * BALANCE + self._added, self._inserted
        if found.rows == [expected]:
            return None
        return f"accounts, their sum, entries: found {found.rows[0]}, expected {expected}"


def begin_with(rows: Sequence[tuple[Any, ...]], found: Sequence[tuple[Any, ...]]) -> bool:
    return len(rows) == len(found) and all(
        row[: len(each)] == each for row, each in zip(rows, found, strict=True)
    )
