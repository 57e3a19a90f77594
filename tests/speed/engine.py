"""Measures commits per second on one core, and the cost of contention.

    python -m tests.speed.engine [--seconds 1.0]

Three questions, one block of the table each:

    commits       what does a commit cost, on one shard and on four, to many clients and to one?
    contention    does throughput hold when more clients compete for fewer keys?
    long work     and when the work yields, so that conflicts cause retries and exclusive commits?

Each client increments random counters in a loop: it reads, adds, writes, commits, and repeats after
the answer. The log is in memory, so the whole cost of a commit is ours, including the encoding of
its record. After each cell the sum of all counters must equal the number of increments acknowledged
since the database was opened; otherwise the bench ends with an error.

Rates are also per CPU second, which other work on the machine does not affect.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Final, TypeAlias

import trio

from qserver.benchmarks.printing import Progress, line
from qserver.engine.database import Database
from qserver.engine.messages import Work
from qserver.engine.world import OrdinaryWorld
from qserver.limits import SHARDS_DEFAULT
from qserver.query.scratch import scratch_database
from qserver.storage.transaction import Transaction
from qserver.values.schema import Column, Table
from qserver.values.types import INTEGER

ONE_SHARD_AIM: Final = 15_000
FOUR_SHARDS_AIM: Final = 5_000
KEPT_AIM: Final = 0.5

CLIENTS: Final = (1, 4, 16, 64, 256)
KEYS: Final = (1, 10, 1_000, 100_000)
LONG_CLIENTS: Final = 64
LONG_KEYS: Final = (1, 1_000)

WorkMaker: TypeAlias = Callable[[], tuple[Work, int]]
"""The next work of a client, and its number of increments."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The measurements of some clients during some seconds."""

    clients: int
    keys: int
    commits: int
    wall_seconds: float
    cpu_seconds: float
    conflicts: int
    retries: int
    exclusive: int

    @property
    def per_second(self) -> float:
        return self.commits / self.wall_seconds

    @property
    def per_cpu_second(self) -> float:
        return self.commits / self.cpu_seconds

    @property
    def conflicts_per_commit(self) -> float:
        return self.conflicts / max(self.commits, 1)


class Counters:
    """A database with counters, and their expected sum."""

    def __init__(self, database: Database, keys: int) -> None:
        self.database = database
        self.keys = keys
        self.chance = Random(1)
        self._sum = 0

    async def fill(self) -> None:
        await self.database.transact(self._create)

    def _create(self, transaction: Transaction) -> None:
        columns = (Column("id", INTEGER, nullable=False), Column("value", INTEGER, nullable=False))
        for number in range(SHARDS_DEFAULT):
            table = Table(transaction.next_tree(), table_of(number), columns, (0,))
            transaction.define(table.key, table)
            for key in range(number, self.keys, SHARDS_DEFAULT):
                transaction.put(table, (key, 0))

    # --- work of clients ---

    def one_key(self) -> tuple[Work, int]:
        return partial(increment, keys=(self.chance.randrange(self.keys),)), 1

    def one_key_slowly(self) -> tuple[Work, int]:
        return partial(increment_slowly, key=self.chance.randrange(self.keys)), 1

    def a_key_on_each_shard(self) -> tuple[Work, int]:
        keys = tuple(
            self.chance.randrange(number, self.keys, SHARDS_DEFAULT)
            for number in range(SHARDS_DEFAULT)
        )
        return partial(increment, keys=keys), len(keys)

    async def measure(self, clients: int, seconds: float, next_work: WorkMaker) -> Cell:
        """Run the clients for this many seconds, then check the sum."""
        commits, over = 0, False

        async def run_client() -> None:
            nonlocal commits
            while not over:
                work, increments = next_work()
                await self.database.transact(work)
                self._sum += increments
                commits += 1

        before = self._counts()
        gc.collect()
        gc.freeze()
        wall, cpu = time.perf_counter(), time.process_time()
        async with trio.open_nursery() as nursery:
            for _ in range(clients):
                nursery.start_soon(run_client)
            await trio.sleep(seconds)
            over = True
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        await self.check()
        counts = (now - then for now, then in zip(self._counts(), before, strict=True))
        return Cell(clients, self.keys, commits, wall, cpu, *counts)

    def _counts(self) -> tuple[int, int, int]:
        statistics = self.database.statistics()
        assert statistics.generation is not None
        gateway = statistics.gateway
        return statistics.generation.coordinator.conflicts, gateway.retries, gateway.exclusive

    async def check(self) -> None:
        """Check that the counters hold exactly the acknowledged increments."""
        found = sum_of_all(Transaction(await self.database.wait_durable_snapshot()))
        if found != self._sum:
            raise SystemExit(
                f"the counters add up to {found:,}, but {self._sum:,} increments were acknowledged"
            )


def table_of(key: int) -> str:
    """The counters are in several small tables, so each table is on its own shard."""
    return f"counters_{key % SHARDS_DEFAULT}"


def increment(transaction: Transaction, keys: tuple[int, ...]) -> None:
    for key in keys:
        table = transaction.table(table_of(key))
        row = transaction.get(table, (key,))
        assert row is not None
        transaction.put(table, (key, row[1] + 1))


def increment_slowly(transaction: Transaction, key: int) -> Generator[None, None, None]:
    """The same as long work: yields between reading and writing."""
    table = transaction.table(table_of(key))
    row = transaction.get(table, (key,))
    yield
    assert row is not None
    transaction.put(table, (key, row[1] + 1))


def sum_of_all(transaction: Transaction) -> int:
    tables = [transaction.table(table_of(number)) for number in range(SHARDS_DEFAULT)]
    return sum(row[1] for table in tables for row in transaction.rows(table))


@asynccontextmanager
async def filled_counters(keys: int) -> AsyncIterator[Counters]:
    world = OrdinaryWorld(time.time, Random(2), _fail)
    async with scratch_database(world) as scratch:
        counters = Counters(scratch.database, keys)
        await counters.fill()
        yield counters


def _fail(text: str, error: Exception) -> None:
    raise SystemExit(f"{text}: {error!r}")


# --- the three blocks ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure; tests measure less."""

    seconds: float = 1.0
    clients: Sequence[int] = CLIENTS
    keys: Sequence[int] = KEYS
    long_clients: int = LONG_CLIENTS
    long_keys: Sequence[int] = LONG_KEYS

    @property
    def cells(self) -> int:
        return 4 + len(self.clients) * len(self.keys) + len(self.long_keys)


async def run(plan: Plan, write: Callable[[str], Any], progress: Progress) -> None:
    await measure_commits(plan, write, progress)
    await measure_contention(plan, write, progress)
    await measure_long_work(plan, write, progress)


async def measure_commits(plan: Plan, write: Callable[[str], Any], progress: Progress) -> None:
    write("commits per second through the coordinator, keys without contention")
    write(f"{'':40}{'per CPU s':>12}{'per s':>12}   aim per CPU s")
    most = max(plan.clients)
    async with filled_counters(max(plan.keys)) as counters:
        await counters.measure(most, plan.seconds / 4, counters.one_key)  # to warm up
        for name, clients, next_work, aim in (
            ("a key on one shard", most, counters.one_key, ONE_SHARD_AIM),
            ("a key on each of 4 shards", most, counters.a_key_on_each_shard, FOUR_SHARDS_AIM),
            ("a key on one shard", 1, counters.one_key, None),
            ("a key on each of 4 shards", 1, counters.a_key_on_each_shard, None),
        ):
            label = f"{name}, {_clients(clients)}"
            cell = await progress.step(label, counters.measure(clients, plan.seconds, next_work))
            rates = f"{cell.per_cpu_second:,.0f}", f"{cell.per_second:,.0f}"
            write(line(label, rates, 40) + _aim(cell, aim))
    write("")


def _clients(count: int) -> str:
    return f"{count} client" if count == 1 else f"{count} clients"


def _aim(cell: Cell, aim: int | None) -> str:
    if aim is None:
        return ""
    return f"   {aim:,}, {'reached' if cell.per_cpu_second >= aim else 'missed'}"


HEADER: Final = (
    f"{'clients':>8}{'keys':>9}{'per CPU s':>12}{'per s':>12}{'conflicts per commit':>22}"
    f"{'retries':>9}{'exclusive':>11}   sum of all counters"
)


def _line(cell: Cell) -> str:
    return (
        f"{cell.clients:8,}{cell.keys:9,}{cell.per_cpu_second:12,.0f}{cell.per_second:12,.0f}"
        f"{cell.conflicts_per_commit:22.3f}{cell.retries:9,}{cell.exclusive:11,}"
        "   is what was acknowledged"
    )


async def measure_contention(plan: Plan, write: Callable[[str], Any], progress: Progress) -> None:
    write("short work: each client increments one random key in a loop")
    write(HEADER)
    cells: dict[int, Cell] = {}
    for keys in plan.keys:
        async with filled_counters(keys) as counters:
            for clients in plan.clients:
                measured = counters.measure(clients, plan.seconds, counters.one_key)
                cells[keys] = await progress.step(f"{_clients(clients)} on {keys:,} keys", measured)
                write(_line(cells[keys]))
    few, many, most = plan.keys[1], plan.keys[-1], plan.clients[-1]
    kept = cells[few].per_cpu_second / cells[many].per_cpu_second
    write(
        f"{most} clients on {few:,} keys keep {kept:.0%} of the rate on {many:,} keys"
        f" (aim: at least {KEPT_AIM:.0%})\n".replace("%", " %")
    )


async def measure_long_work(plan: Plan, write: Callable[[str], Any], progress: Progress) -> None:
    write("long work: the same, but it yields once between reading and writing")
    write(HEADER)
    for keys in plan.long_keys:
        async with filled_counters(keys) as counters:
            measured = counters.measure(plan.long_clients, plan.seconds, counters.one_key_slowly)
            write(_line(await progress.step(f"long work on {keys:,} keys", measured)))


def main(arguments: Sequence[str] | None = None) -> None:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        prog="python -m tests.speed.engine", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="how long each cell runs")
    plan = Plan(parser.parse_args(arguments).seconds)
    trio.run(run, plan, partial(print, flush=True), Progress(plan.cells, sys.stderr))


if __name__ == "__main__":
    main()
