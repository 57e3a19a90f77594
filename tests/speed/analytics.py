"""Scans of whole tables beside sqlite3 and DuckDB (one thread), all in this process.

Each work is measured in milliseconds of CPU time: of sqlite3, of DuckDB, and of qserver by rows
alone, for the first and the second scan of pages without vectors, and warm. Their order is that of
the columns, again and again, and the table shows medians. `python -m tests.speed.sql` runs
this after its own tasks.
"""

from __future__ import annotations

import csv
import random
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

from qserver.benchmarks.printing import line
from qserver.query.sql_database import SqlDatabase
from tests.speed.in_process import cpu_ms, cpu_ms_of, insert_texts, opened_duckdb

ROUNDS = 5
NAMES = 10_000
FIRST_DAY = date(1992, 1, 1)


@dataclass(frozen=True, slots=True)
class Work:
    """A query for all three."""

    name: str
    sql: str


WORKS = (
    Work(
        "GROUP BY k % 10",
        "SELECT k % 10 AS g, count(*) AS n, sum(k) AS s FROM facts GROUP BY k % 10",
    ),
    Work("filter of 0.1 %", "SELECT id, name FROM facts WHERE v < 100"),
    Work("count with filter", "SELECT count(*) FROM facts WHERE k > 500"),
    Work(
        "numeric sum avg min max",
        "SELECT sum(price), avg(price), min(price), max(price) FROM facts",
    ),
    Work("GROUP BY text, 100 values", "SELECT name, count(*), sum(k) FROM facts GROUP BY name"),
    Work(
        "join 10,000, aggregate",
        "SELECT names.name, count(*), sum(facts.k) FROM facts JOIN names"
        " ON facts.name_id = names.id GROUP BY names.name",
    ),
    Work("ORDER BY other LIMIT 10", "SELECT id, k FROM facts ORDER BY v DESC LIMIT 10"),
    Work(
        "TPC-H Q1",
        "SELECT flag, status, sum(quantity), sum(price), sum(price * (1 - discount)),"
        " sum(price * (1 - discount) * (1 + tax)), avg(quantity), avg(price), avg(discount),"
        " count(*) FROM lineitem WHERE shipped <= date '1998-09-02'"
        " GROUP BY flag, status ORDER BY flag, status",
    ),
    Work(
        "TPC-H Q6",
        "SELECT sum(price * discount) FROM lineitem WHERE shipped >= date '1994-01-01'"
        " AND shipped < date '1995-01-01' AND discount BETWEEN 0.05 AND 0.07 AND quantity < 24",
    ),
)

TABLES = (
    "CREATE TABLE facts (id INTEGER PRIMARY KEY, k INTEGER NOT NULL, v INTEGER NOT NULL,"
    " name VARCHAR NOT NULL, price NUMERIC(10, 2) NOT NULL, name_id INTEGER NOT NULL)",
    "CREATE TABLE names (id INTEGER PRIMARY KEY, name VARCHAR NOT NULL)",
    "CREATE TABLE lineitem (id INTEGER PRIMARY KEY, quantity NUMERIC(12, 2) NOT NULL,"
    " price NUMERIC(12, 2) NOT NULL, discount NUMERIC(12, 2) NOT NULL, tax NUMERIC(12, 2) NOT NULL,"
    " flag VARCHAR NOT NULL, status VARCHAR NOT NULL, shipped DATE NOT NULL)",
)


def contents(rows: int) -> Iterator[tuple[str, list[list[Any]]]]:
    """Yield each table with its rows."""
    chance = random.Random(1)
    yield (
        "facts",
        [
            [
                number,
                number % 1000,
                number * 7919 % rows,
                f"name {chance.randrange(100)}",
                f"{chance.randrange(10**6) / 100:.2f}",
                chance.randrange(NAMES),
            ]
            for number in range(rows)
        ],
    )
    yield "names", [[number, f"group {number % 50}"] for number in range(NAMES)]
    yield "lineitem", [_line_item(number, chance) for number in range(3 * rows)]


def _line_item(number: int, chance: random.Random) -> list[Any]:
    quantity = chance.randint(1, 50)
    shipped = FIRST_DAY + timedelta(days=chance.randrange(2526))
    is_open = shipped > date(1995, 6, 17)
    return [
        number,
        f"{quantity}.00",
        f"{quantity * chance.randint(90_000, 200_000) / 100:.2f}",
        f"0.{chance.randint(0, 10):02}",
        f"0.{chance.randint(0, 8):02}",
        "N" if is_open else chance.choice("AR"),
        "O" if is_open else "F",
        shipped.isoformat(),
    ]


async def filled(
    database: SqlDatabase, rows: int
) -> tuple[sqlite3.Connection, duckdb.DuckDBPyConnection]:
    """Put the same rows into all three."""
    lite = sqlite3.connect(":memory:", isolation_level=None)
    duck = opened_duckdb()
    for text in TABLES:
        lite.execute(text)
        duck.execute(text)
        await database.execute(text)
    with TemporaryDirectory() as folder:
        for table, found in contents(rows):
            path = Path(folder) / f"{table}.csv"
            with path.open("w", newline="") as file:
                csv.writer(file).writerows(found)
            duck.execute(f"COPY {table} FROM '{path}' (HEADER false)")
            places = ", ".join("?" * len(found[0]))
            lite.executemany(f"INSERT INTO {table} VALUES ({places})", found)
            for text in insert_texts(table, found):
                await database.execute(text)
    return lite, duck


async def compare(database: SqlDatabase, rows: int, write: Callable[[str], object]) -> bool:
    """Print the table; return whether no warm scan is slower than DuckDB's."""
    lite, duck = await filled(database, rows)
    await database.database.checkpoint()  # the scans are to be all that runs
    heads = ("sqlite3", "DuckDB", "by rows", "first", "second", "warm", "DuckDB/warm")
    write(line("milliseconds of CPU time", heads) + "\n")
    reached = True
    for work in WORKS:
        await database.execute(work.sql)  # plans it
        times = [
            [
                cpu_ms(lite, work.sql.replace("date '", "'")),
                cpu_ms(duck, work.sql),
                *await times_of(database, work.sql),
            ]
            for _ in range(ROUNDS)
        ]
        medians = [median(column) for column in zip(*times, strict=True)]
        ratio = medians[1] / medians[-1]
        reached = reached and ratio >= 1.0
        missed = "" if ratio >= 1.0 else "  missed"
        write(f"{line(work.name, (*medians, ratio))}{missed}\n")
    return reached


async def times_of(database: SqlDatabase, sql: str) -> list[float]:
    """By rows, for the first scan of pages, the second and a later one."""
    vectors = database.database.page_cache.vectors
    most, vectors.bytes_max = vectors.bytes_max, 0
    times = [await cpu_ms_of(database, sql)]
    vectors.bytes_max = most
    vectors.clear()
    early = [await cpu_ms_of(database, sql) for _ in range(2)]
    later = [await cpu_ms_of(database, sql) for _ in range(3)]
    return [*times, *early, median(later)]
