"""Measures the duration of a restart, and the memory of the database after it.

    python -m tests.speed.durability                    1,000,000 rows of 100 bytes
    python -m tests.speed.durability --rows 50000

Each phase runs in a process of its own, because memory that a process has used stays in it:

    fill      makes the rows, with checkpoints as they come due, and closes
    restart   opens the data, reads a row: the time until then, the memory after and at most
    change    changes rows until the log is nearly as long as it gets, and is killed
    restart   the same again, with a log to read after the checkpoint
    beside    makes the rows anew, and measures point reads and inserts, alone and beside a
              checkpoint of all rows: the ratios are what counts
"""

from __future__ import annotations

import argparse
import gc
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path
from random import Random

import trio

from qserver.durability.sqlite import open_log
from qserver.engine.checkpointer import CheckpointPolicy
from qserver.engine.database import Database
from qserver.engine.world import OrdinaryWorld
from qserver.limits import CHECKPOINT_LOG_BYTES
from qserver.storage.transaction import Transaction
from qserver.values.schema import Column, define_table
from qserver.values.types import BIGINT, INTEGER, TEXT
from qserver.workloads.histogram import Histogram
from tests.speed.growth.server import status_of

ROWS_OF_TRANSACTION = 5000
ROWS_OF_CHANGE = 100
BESIDE_SECONDS, BESIDE_PAUSE_SECONDS, BESIDE_ROWS = 3.0, 0.001, 1000
SECONDS_MAX, MEGABYTES_MAX = 20.0, 700.0
"""The limits of a restart with a million rows."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.speed.durability")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="where the data are made; they stay there")
    parser.add_argument("--phase", choices=list(PHASES), help="one phase, in this process")
    options = parser.parse_args(arguments)
    if options.phase is not None:
        trio.run(PHASES[options.phase], options.folder / "bench.qserver", options.rows)
        return 0
    if options.folder is not None:
        return _all_phases(options.folder, options.rows)
    with tempfile.TemporaryDirectory() as folder:
        return _all_phases(Path(folder), options.rows)


def _all_phases(folder: Path, rows: int) -> int:
    for phase in ("fill", "restart", "change", "restart", "beside"):
        command = [sys.executable, "-m", "tests.speed.durability"]
        command += ["--phase", phase, "--rows", str(rows), "--folder", str(folder)]
        code = subprocess.run(command, check=False).returncode
        if code not in (0, -signal.SIGKILL):
            return code
    return 0


# --- the phases ----------------------------------------------------------------------------------


async def fill(path: Path, rows: int) -> None:
    began = time.perf_counter()
    async with running(path) as database:
        await _fill(database, rows)
        filled = time.perf_counter() - began
        await database.close()
    size = (await trio.Path(path).stat()).st_size
    _print("fill", f"{rows:,} rows", filled, f"{size / 1e6:.0f} MB of file")


async def _fill(database: Database, rows: int) -> None:
    await database.transact(_create)
    chance = Random(1)
    for first in range(0, rows, ROWS_OF_TRANSACTION):
        numbers = range(first, min(first + ROWS_OF_TRANSACTION, rows))
        made = [row(number, chance) for number in numbers]
        await database.transact(partial(_put, made))


async def change(path: Path, rows: int) -> None:
    began = time.perf_counter()
    async with running(path) as database:
        chance = Random(2)
        log_bytes = 0
        while log_bytes < CHECKPOINT_LOG_BYTES * 0.9:
            numbers = sorted({chance.randrange(rows) for _ in range(ROWS_OF_CHANGE)})
            made = [row(number, chance) for number in numbers]
            await database.transact(partial(_put, made))
            statistics = database.statistics().generation
            assert statistics is not None
            log_bytes = statistics.checkpoints.log_bytes
        _print("change", f"{log_bytes / 1e6:.0f} MB of log", time.perf_counter() - began, "killed")
        os.kill(os.getpid(), signal.SIGKILL)


async def restart(path: Path, rows: int) -> None:
    began = time.perf_counter()
    async with running(path) as database:
        found = _get(Transaction(await database.wait_durable_snapshot()), rows // 2)
        seconds = time.perf_counter() - began
        assert found is not None and found[0] == rows // 2
        now, most = (status_of("self", name) / 1000 for name in ("VmRSS", "VmHWM"))
        _print("restart", f"{rows:,} rows", seconds, f"{now:.0f} MB resident, at most {most:.0f}")
        if rows >= 1_000_000:
            well = seconds <= SECONDS_MAX and most <= MEGABYTES_MAX
            limits = f"allowed are {SECONDS_MAX:.0f} s and {MEGABYTES_MAX:.0f} MB"
            print(f"{'':10}{limits}: {'kept' if well else 'NOT kept'}", flush=True)


async def beside(path: Path, rows: int) -> None:
    path = path.with_name("beside.qserver")
    async with running(path, CheckpointPolicy(log_bytes=1 << 60, seconds=1e9)) as database:
        await _fill(database, rows)
        alone = await _measured(database, rows, trio.sleep, BESIDE_SECONDS)
        during = await _measured(database, 2 * rows, lambda _: database.checkpoint(), 0)
        statistics = database.statistics().generation
        assert statistics is not None
        saved = f"{statistics.checkpoints.pages_saved:,} pages in {during.seconds:.1f} s"
        print(f"beside    a checkpoint of {saved}, {during.cpu_share:.0%} of a core")
        for name in ("read", "insert"):
            for share in (0.5, 0.99):
                one, two = (each.of[name].percentile(share) for each in (alone, during))
                text = f"{one * 1e6:.0f} µs alone, {two * 1e6:.0f} µs beside it"
                print(f"{'':10}{name}, {share:.0%}: {text}, {two / one:.1f} times")


class _Latencies:
    """Latencies of requests, each sent a little after the previous one."""

    def __init__(self) -> None:
        self.of = {"read": Histogram(), "insert": Histogram()}
        self.seconds = self.cpu_share = 0.0


async def _measured(
    database: Database, rows: int, meanwhile: Callable[[float], Awaitable[None]], seconds: float
) -> _Latencies:
    """Read and insert, one request of each kind at a time, until `meanwhile` ends."""
    found = _Latencies()
    chance = Random(4)

    async def read(number: int) -> None:
        _get(Transaction(await database.wait_durable_snapshot()), chance.randrange(BESIDE_ROWS))

    async def insert(number: int) -> None:
        made = [row(rows + number, chance)]
        await database.transact(partial(_put, made))

    async def repeat(name: str, request: Callable[[int], Awaitable[None]]) -> None:
        for number in count(1):
            due = trio.current_time() + BESIDE_PAUSE_SECONDS
            await trio.sleep_until(due)  # the latency includes a late wakeup of the loop
            await request(number)
            found.of[name].add(trio.current_time() - due)

    began, cpu = time.perf_counter(), time.process_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(repeat, "read", read)
        nursery.start_soon(repeat, "insert", insert)
        await meanwhile(seconds)
        nursery.cancel_scope.cancel()
    found.seconds = time.perf_counter() - began
    found.cpu_share = (time.process_time() - cpu) / found.seconds
    return found


PHASES = {"fill": fill, "restart": restart, "change": change, "beside": beside}


# --- parts of the phases -------------------------------------------------------------------------


@asynccontextmanager
async def running(path: Path, policy: CheckpointPolicy | None = None) -> AsyncIterator[Database]:
    def report(text: str, error: Exception) -> None:
        print(text, repr(error), file=sys.stderr)

    async with await open_log(path) as log, trio.open_nursery() as nursery:
        world = OrdinaryWorld(time.time, Random(3), report)
        database = Database(log, world, policy=policy, after_recovery=gc.freeze)
        await nursery.start(database.run)
        yield database
        nursery.cancel_scope.cancel()


def row(number: int, chance: Random) -> tuple[int, int, str, str]:
    """100 bytes as text: a key of 7 digits, a number of 9, a word of 14 and one of 70."""
    word = f"customer {chance.randrange(100_000):05}"
    return number, chance.randrange(10**9), word, f"{chance.getrandbits(280):070x}"


def _create(transaction: Transaction) -> None:
    columns = [
        Column("id", INTEGER, nullable=False),
        Column("amount", BIGINT),
        Column("customer", TEXT),
        Column("note", TEXT),
    ]
    transaction.define("orders", define_table(transaction.next_tree(), "orders", columns, ["id"]))


def _put(rows: list[tuple[int, int, str, str]], transaction: Transaction) -> None:
    table = transaction.table("orders")
    for each in rows:
        transaction.put(table, each)


def _get(transaction: Transaction, number: int) -> tuple[object, ...] | None:
    return transaction.get(transaction.table("orders"), (number,))


def _print(phase: str, what: str, seconds: float, rest: str) -> None:
    print(f"{phase:10}{what:>18}  {seconds:7.2f} s  {rest}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
