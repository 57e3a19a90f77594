"""The table that the tests of the engine work on: numbered counters."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import trio

from qserver.engine.database import Database
from qserver.engine.gateway import Outcome
from qserver.engine.messages import Work
from qserver.engine.work import FOREVER, run
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from qserver.values.schema import Column, Table
from qserver.values.types import INTEGER

NAME = "counters"


def definition(tree: int, name: str = NAME) -> Table:
    columns = (Column("id", INTEGER, nullable=False), Column("value", INTEGER, nullable=False))
    return Table(tree, name, columns, (0,))


def create(count: int = 0, name: str = NAME) -> Work:
    """Work that makes the table, with that many counters at 0."""

    def work(transaction: Transaction) -> None:
        table = definition(transaction.next_tree(), name)
        transaction.define(table.key, table)
        for number in range(count):
            transaction.put(table, (number, 0))

    return work


def value(transaction: Transaction, number: int, name: str = NAME) -> int:
    row = transaction.get(transaction.table(name), (number,))
    return 0 if row is None else int(row[1])


def put(transaction: Transaction, number: int, to: int, name: str = NAME) -> None:
    transaction.put(transaction.table(name), (number, to))


def increment(*numbers: int) -> Work:
    """Short work: adds 1 to each, and gives the new values."""

    def work(transaction: Transaction) -> list[int]:
        found = []
        for number in numbers:
            found.append(value(transaction, number) + 1)
            put(transaction, number, found[-1])
        return found

    return work


def increment_slowly(*numbers: int, yields: int = 1) -> Work:
    """The same as work that yields between reading and writing."""

    def work(transaction: Transaction) -> Generator[None, None, list[int]]:
        found = [value(transaction, number) + 1 for number in numbers]
        for _ in range(yields):
            yield
        for number, to in zip(numbers, found, strict=True):
            put(transaction, number, to)
        return found

    return work


def set_blindly(number: int, to: int) -> Work:
    """Work that writes without reading."""
    return lambda transaction: put(transaction, number, to)


def look(number: int) -> Work:
    return lambda transaction: value(transaction, number)


def everything(transaction: Transaction) -> list[tuple[Any, ...]]:
    """Work that reads all rows."""
    return transaction.rows(transaction.table(NAME))


async def read(database: Database, work: Work, deadline: float = FOREVER) -> Outcome:
    """Run work that writes nothing on the newest durable snapshot."""
    snapshot = await database.wait_durable_snapshot(deadline)
    return Outcome(await run(work(Transaction(snapshot))), snapshot.version)


async def total(database: Database) -> int:
    """The sum of all counters that is durable."""
    outcome = await read(database, everything)
    return sum(row[1] for row in outcome.result)


def on_shards(snapshot: Snapshot, wanted: Sequence[int]) -> list[int]:
    """Distinct numbers of counters, each on the shard wanted for it. Ranges must be small."""
    tree = snapshot.trees.tree(snapshot.catalog.tables[NAME].id)
    found: list[int] = []
    for shard in wanted:
        number = 0
        while number in found or tree.ranges_between((number,), (number, 0))[0].shard != shard:
            number += 1
            assert number < 1000, f"there is none on shard {shard}"
        found.append(number)
    return found


def newest_version(database: Database) -> int:
    """The newest published version, durable or not; 0 while the database recovers."""
    generation = database.statistics().generation
    return 0 if generation is None else generation.versions.newest


def conflicts(database: Database) -> int:
    """How many this generation has had."""
    generation = database.statistics().generation
    return 0 if generation is None else generation.coordinator.conflicts


def disturbed(database: Database, nursery: trio.Nursery, number: int, times: int = 1) -> Work:
    """Long work whose first runs each find that somebody else has changed what they read.

    Not pure, as work must be: it has somebody change it. It gives what each run wanted to write.
    """
    runs: list[int] = []
    disturbances: list[Outcome] = []

    async def disturb() -> None:
        disturbances.append(await database.transact(increment(number)))

    def work(transaction: Transaction) -> Generator[None, None, list[int]]:
        found = value(transaction, number) + 1
        runs.append(found)
        if len(runs) <= times:
            nursery.start_soon(disturb)
            while len(disturbances) < len(runs):
                yield
        yield
        put(transaction, number, found)
        return runs

    return work


def one_after_the_other(*works: Work) -> Work:
    """Work that is another each time it is run, and the last for ever after."""
    left = list(works)
    return lambda transaction: (left.pop(0) if len(left) > 1 else left[0])(transaction)


def after_a_conflict(database: Database, work: Work) -> Work:
    """Long work that begins when some other has conflicted."""

    def run(transaction: Transaction) -> Generator[None, None, Any]:
        while conflicts(database) == 0:
            yield
        return (yield from work(transaction))

    return run
