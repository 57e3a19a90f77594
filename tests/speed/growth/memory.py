"""Growth with rows in a bounded memory.

One table grows under `--memory`. At each size the server is loaded, stopped, started again, and
asked. The peak of the resident memory is that of each phase by itself.

    memory    rows of 100 bytes, five times that in memory: from a million on they do not fit.
              Beside sqlite3 with a cache of the same size
    narrow    two numbers in a row, and up to a hundred million rows
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Awaitable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

import trio

from qserver.benchmarks.printing import Progress
from qserver.workloads.histogram import Histogram
from tests.speed.growth.curves import Chart, Line, Lines, Panel
from tests.speed.growth.server import ROWS_AT_ONCE, Server, ask, serving

READS: Final = 5_000
RANGES: Final = 500
ROWS_OF_RANGE: Final = 1_000
READS_BESIDE: Final = 500
FIRST: Final = "SELECT n FROM t WHERE id = 1"
AGGREGATE: Final = "SELECT count(*), sum(n), min(n), max(n) FROM t WHERE id >= $1 AND id < $2"


@dataclass(frozen=True, slots=True)
class Kind:
    """A table, and what is asked of it."""

    name: str
    memory_mb: int
    rows: str
    create: str
    fill: str
    point: str
    scan: str
    rows_at_once: int = ROWS_AT_ONCE
    beside: bool = False
    """Whether sqlite3 does the same."""


WIDE: Final = Kind(
    "memory",
    512,
    "Rows of 100 bytes",
    "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT NOT NULL, note TEXT NOT NULL,"
    " n INTEGER NOT NULL)",
    "INSERT INTO t SELECT i, 'name of row ' || i, repeat('x', 60), i * 7 % 1000"
    " FROM generate_series($1::integer, $2::integer) AS s (i)",
    "SELECT name, n FROM t WHERE id = $1",
    "SELECT count(*) FROM t WHERE note <> name AND id >= $1 AND id < $2",
    beside=True,
)
NARROW: Final = Kind(
    "narrow",
    1024,
    "Rows of two integers",
    "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)",
    "INSERT INTO t SELECT i, i % 1009 FROM generate_series($1::integer, $2::integer) AS s (i)",
    "SELECT n FROM t WHERE id = $1",
    "SELECT count(*) FROM t WHERE n <> id AND id >= $1 AND id < $2",
    rows_at_once=100_000,
)


class Phases:
    """The lines of the chart, and what was printed last of each."""

    def __init__(self) -> None:
        self.peaks, self.reads, self.others, self.beside = Lines(), Lines(), Lines(), Lines()

    async def watch(
        self, server: Server, size: int, name: str, work: Awaitable[dict[str, float]]
    ) -> None:
        """Do the work of a phase, and print what it took."""
        server.forget_peak()
        cpu, began = server.cpu_seconds(), time.perf_counter()
        found = await work
        took, cpu = time.perf_counter() - began, server.cpu_seconds() - cpu
        peak = server.peak_bytes() / 1e6
        self.peaks.add(name, size, peak)
        told = {**found, "seconds": took, "CPU seconds": cpu, "MB at most": peak}
        print_values(size, name, told)
        if name in ("scan", "aggregate"):
            self.others.add(f"{name}, CPU", size, cpu)

    def note_reads(self, size: int, whose: str, found: dict[str, Any]) -> None:
        for part in ("median", "CPU"):
            self.reads.add(f"{whose}, {part}", size, found[f"µs {part}"])


async def measure(kind: Kind, folder: Path, sizes: list[int], progress: Progress) -> Chart:
    phases, start = Phases(), Line("first answer after a restart")
    peaks = phases.peaks
    data, beside = folder / "memory", folder / "beside.db"
    flags = ("--memory", f"{kind.memory_mb}MB")
    async with serving(data, *flags) as server:
        await server.do(server.query(kind.create))
    filled = 0
    for size in sizes:
        async with serving(data, *flags) as server:
            filling = server.fill(kind.fill, filled, size, kind.rows_at_once)
            work = phases.watch(server, size, "load", filling)
            await progress.step(f"{size:,} rows: loading", work)
        filled = size
        async with serving(data, *flags) as server:
            began = time.perf_counter()
            await server.do(server.query(FIRST))
            start.add(size, time.perf_counter() - began)
            print_values(size, "restart", {"seconds": time.perf_counter() - began})
            for name, request in (("scan", kind.scan), ("aggregate", AGGREGATE)):
                work = phases.watch(server, size, name, server.read_all(request, size))
                await progress.step(f"{size:,} rows: {name}", work)
            work = phases.watch(server, size, "again", server.read_all(AGGREGATE, size))
            await progress.step(f"{size:,} rows: again", work)
            for name, request, count, rows in (
                ("point reads", kind.point, READS, 0),
                ("ranges", AGGREGATE, RANGES, ROWS_OF_RANGE),
            ):
                reads: dict[str, float] = {}
                reading = _read(server, size, request, count, rows, reads)
                work = phases.watch(server, size, name, reading)
                await progress.step(f"{size:,} rows: {name}", work)
                phases.note_reads(size, f"qserver, {name}", reads)
            work = phases.watch(
                server, size, "beside a scan", _read_beside(server, size, kind, phases)
            )
            await progress.step(f"{size:,} rows: beside a scan", work)
            work = phases.watch(server, size, "changes", _change(server, size))
            await progress.step(f"{size:,} rows: changes", work)
        if kind.beside:
            found = await progress.step(f"{size:,} rows: sqlite3", _beside(beside, size))
            print_values(size, "sqlite3", found)
            phases.note_reads(size, "sqlite3 in process", found)
            peaks.add("sqlite3", size, found["MB at most"])
    note = f"{kind.rows}, `--memory {kind.memory_mb}MB`, over HTTP"
    if kind.beside:
        note += f"; sqlite3 in a process of its own, with a cache of {kind.memory_mb} MB"
    return Chart(
        kind.name,
        f"Growth with rows in {kind.memory_mb} MB",
        [
            Panel("Memory", "rows", "MB resident at most", list(peaks.values())),
            Panel("Random reads", "rows", "µs", list(phases.reads.values())),
            Panel("Whole table, and start", "rows", "seconds", [*phases.others.values(), start]),
            Panel("Reads of one row", "rows", "µs by the clock", list(phases.beside.values())),
        ],
        [f"{note}. A range has {ROWS_OF_RANGE:,} rows."],
    )


def print_values(size: int, name: str, told: dict[str, float]) -> None:
    values = ", ".join(f"{value:.4g} {unit}" for unit, value in told.items())
    print(f"{size:>12,} rows, {name}: {values}", flush=True)


async def _change(server: Server, size: int) -> dict[str, float]:
    """Change rows everywhere, which makes checkpoints."""
    chance = Random(3)
    async with server.connected() as connection:
        for _ in range(20):
            keys = [chance.randrange(size) for _ in range(500)]
            sql = "UPDATE t SET n = n + 1 WHERE id = ANY ($1::integer[])"
            await ask(connection, server.query(sql, keys))
    return {}


async def _read(
    server: Server, size: int, sql: str, count: int, rows: int, reads: dict[str, float]
) -> dict[str, float]:
    """Send a statement with random keys, and how far each is from another, if there are `rows`."""
    chance, cpu, histogram = Random(2), 0.0, Histogram()
    async with server.connected() as connection:
        for _ in range(2):  # the first fills the cache as far as it goes
            cpu, histogram = server.cpu_seconds(), Histogram()
            for _ in range(count):
                first = chance.randrange(max(size - rows, 1))
                request = server.query(sql, first, *([first + rows] if rows else []))
                began = time.perf_counter()
                await ask(connection, request)
                histogram.add(time.perf_counter() - began)
            cpu = server.cpu_seconds() - cpu
    reads |= latencies(histogram, cpu)
    return reads


async def _read_beside(server: Server, size: int, kind: Kind, phases: Phases) -> dict[str, float]:
    """Read a row again and again: alone, and while another client scans the table."""
    found: dict[str, float] = {}

    async def read_for(name: str, until: trio.Event) -> None:
        histogram = Histogram()
        async with server.connected() as connection:
            while not (until.is_set() and histogram.count >= READS_BESIDE):
                began = time.perf_counter()
                await ask(connection, server.query(kind.point, 1))
                histogram.add(time.perf_counter() - began)
        told = latencies(histogram, 0.0)
        for part in ("median", "99th"):
            found[f"µs {part} {name}"] = told[f"µs {part}"]
            phases.beside.add(f"{name}, {part}", size, told[f"µs {part}"])

    nothing, scanned = trio.Event(), trio.Event()
    nothing.set()
    await read_for("alone", nothing)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(read_for, "beside a scan", scanned)
        await server.read_all(kind.scan, size)
        scanned.set()
    return found


def latencies(histogram: Histogram, cpu: float) -> dict[str, float]:
    return {
        "µs median": histogram.percentile(0.5) * 1e6,
        "µs 99th": histogram.percentile(0.99) * 1e6,
        "µs CPU": cpu / histogram.count * 1e6,
    }


async def _beside(path: Path, size: int) -> dict[str, float]:
    """Do the same with sqlite3, in a process of its own."""
    command = [sys.executable, "-m", "tests.speed.growth.beside", str(path), str(size)]
    done = await trio.run_process(command, capture_stdout=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found
