"""Compares SQL in process with the standard library's sqlite3 in memory, and scans with DuckDB.

    python -m tests.speed.sql [--rows 100000] [--seconds 2.0]

Both get the same statements as text, with new literals each time and nothing prepared. The ratio of
the two rates counts, not the rates. The two alternate several times, and the table shows the median
ratio: other work on the machine then slows both. Reads and scans run one after the other; updates
run in several tasks at once, because a commit waits and the engine commits waiting transactions
together. Then `analytics` measures scans of whole tables.
"""

from __future__ import annotations

import argparse
import gc
import random
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import trio

from qserver.engine.collector import settle_collector
from qserver.query.sql_database import SqlDatabase
from tests.speed import analytics
from tests.speed.in_process import cpu_ms_of, insert_texts, opened_in_process

Text = Callable[[random.Random], str]

SMALL_ROWS = 10_000
CLIENTS = 64
SLICES = 21
TEXT_OF_ROW = "c" * 40


@dataclass(frozen=True, slots=True)
class Task:
    """A kind of statement, and the ratio to sqlite3's rate that it should reach."""

    name: str
    aim: float
    text: Text
    clients: int = 1


def tasks(rows: int) -> list[Task]:
    fresh = iter(range(10 * rows, 1 << 60, 1000))
    return [
        Task(
            "point SELECT by key", 0.7, lambda r: f"SELECT * FROM t WHERE id = {r.randrange(rows)}"
        ),
        Task(
            "UPDATE by key",
            0.15,
            lambda r: f"UPDATE t SET k = {r.randrange(100)} WHERE id = {r.randrange(rows)}",
            CLIENTS,
        ),
        Task("filter scan", 1.0, lambda r: f"SELECT id, c FROM t WHERE k > {r.randrange(85, 95)}"),
        Task(
            "grouped aggregate",
            0.8,
            lambda r: (
                "SELECT k, count(*), sum(id), min(id) FROM t"
                f" WHERE id > {r.randrange(100)} GROUP BY k"
            ),
        ),
        Task(
            "equi-join",
            0.6,
            lambda r: (
                f"SELECT t.id, u.name FROM t JOIN u ON t.v = u.v WHERE u.id > {r.randrange(100)}"
            ),
        ),
        Task(
            "ORDER BY key LIMIT 10",
            0.7,
            lambda r: (
                f"SELECT id, k FROM t WHERE id > {r.randrange(rows - 20)} ORDER BY id LIMIT 10"
            ),
        ),
        Task("INSERT of 1,000 rows", 0.3, lambda r: insert_text(next(fresh))),
        Task(
            "INSERT … SELECT of 1,000 rows",
            0.3,
            lambda r: f"INSERT INTO w SELECT id + {next(fresh)}, k, c FROM t WHERE id < 1000",
        ),
        Task(
            "count, min and max of a key",
            0.7,
            lambda r: f"SELECT count(*), min(id), max(id) FROM t WHERE id > {r.randrange(rows)}",
        ),
    ]


def insert_text(first: int) -> str:
    """Made as fast as can be: its time counts."""
    values = ", ".join(
        f"({number}, {number % 100}, 'row {number}')" for number in range(first, first + 1000)
    )
    return f"INSERT INTO w (id, k, c) VALUES {values}"


TABLES = (
    "CREATE TABLE t"
    " (id INTEGER PRIMARY KEY, k INTEGER NOT NULL, v INTEGER NOT NULL, c TEXT NOT NULL)",
    "CREATE TABLE u (id INTEGER PRIMARY KEY, v INTEGER NOT NULL, name TEXT NOT NULL)",
    "CREATE TABLE w (id BIGINT PRIMARY KEY, k INTEGER NOT NULL, c TEXT NOT NULL)",
)


def fill_texts(rows: int) -> Iterator[str]:
    yield from insert_texts("t", ((n, n % 100, n * 7 % rows, TEXT_OF_ROW) for n in range(rows)))
    yield from insert_texts("u", ((n, n * 10 % rows, f"name {n}") for n in range(SMALL_ROWS)))


def rate_of_sqlite(connection: sqlite3.Connection, task: Task, seconds: float) -> float:
    """Statements per second of CPU time."""
    chance = random.Random(1)
    done, start = 0, time.process_time()
    while time.process_time() - start < seconds:
        connection.execute(task.text(chance)).fetchall()
        done += 1
    return done / (time.process_time() - start)


async def rate_of_qserver(database: SqlDatabase, task: Task, seconds: float) -> float:
    chance = random.Random(1)
    done, start = 0, time.process_time()

    async def client() -> None:
        nonlocal done
        while time.process_time() - start < seconds:
            await database.execute(task.text(chance))
            done += 1

    async with trio.open_nursery() as nursery:
        for _ in range(task.clients):
            nursery.start_soon(client)
    return done / (time.process_time() - start)


async def first_sight(database: SqlDatabase) -> float:
    """Milliseconds from the text of a new fingerprint, of about 100 characters, to its answer."""
    times = []
    for number in range(20):
        text = (
            f"SELECT id AS name_{number}, k + 1, c FROM t WHERE id = 17 AND k < 50"
            f" AND c LIKE 'c%' ORDER BY id, k LIMIT {number + 1}"
        )
        start = time.perf_counter()
        await database.execute(text)
        times.append(1000 * (time.perf_counter() - start))
    return median(times)


SERIES_ROWS = 50_000
SERIES_AIM = 150_000
SERIES = f"""INSERT INTO s SELECT i, i % 1000, {{}} FROM generate_series(1, {SERIES_ROWS}) AS i"""
SERIES_TEXTS = ("repeat('c', 100)", "lpad(i::text, 100, 'ab')", "md5(i::text) || repeat('c', 68)")


async def rows_of_series() -> float:
    """Rows per second of CPU time that one INSERT … SELECT writes: the middle of three texts.

    Each has a database of its own: elsewhere a checkpoint may be saving what came before.
    """
    rates = []
    for text in SERIES_TEXTS:
        async with opened_in_process() as database:
            await database.execute("CREATE TABLE s (id INTEGER PRIMARY KEY, k INTEGER, c TEXT)")
            rates.append(1000 * SERIES_ROWS / await cpu_ms_of(database, SERIES.format(text)))
    return median(rates)


async def compare(rows: int, seconds: float, write: Callable[[str], object]) -> bool:
    """Print the table; return whether every aim was reached."""
    series = await rows_of_series()
    connection = sqlite3.connect(":memory:", isolation_level=None)
    async with opened_in_process() as database:
        for text in (*TABLES, *fill_texts(rows)):
            connection.execute(text)
            await database.execute(text)
        settle_collector()
        write(f"{'statement':30}{'sqlite3/s':>12}{'qserver/s':>12}{'ratio':>8}{'aim':>7}\n")
        reached = True
        for task in tasks(rows):
            rates = []
            for _ in range(SLICES):
                theirs = rate_of_sqlite(connection, task, seconds / SLICES)
                ours = await rate_of_qserver(database, task, seconds / SLICES)
                rates.append((ours / theirs, theirs, ours))
            ratio, theirs, ours = sorted(rates)[SLICES // 2]
            reached = reached and ratio >= task.aim
            verdict = "" if ratio >= task.aim else "  missed"
            write(
                f"{task.name:30}{theirs:12,.1f}{ours:12,.1f}{ratio:8.2f}{task.aim:7.2f}{verdict}\n"
            )
        reached = reached and series >= SERIES_AIM
        write(f"rows of generate_series: {series:,.0f}/s (aim: {SERIES_AIM:,})\n")
        write(f"a new fingerprint: {await first_sight(database):.2f} ms (aim: under 10)\n")
    async with opened_in_process() as database:
        return await analytics.compare(database, rows, write) and reached


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="SQL in process beside sqlite3 in memory.")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args(arguments)
    try:
        return 0 if trio.run(compare, options.rows, options.seconds, sys.stdout.write) else 1
    finally:
        gc.unfreeze()  # or DuckDB finds what the collector was told to spare leaked


if __name__ == "__main__":
    sys.exit(main())
