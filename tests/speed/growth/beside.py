"""The table of `memory` in sqlite3: fills it up to a size, reads it, and prints what that took."""

from __future__ import annotations

import json
import resource
import sqlite3
import sys
import time
from collections.abc import Iterator
from random import Random

from qserver.workloads.histogram import Histogram
from tests.speed.growth.memory import READS, WIDE, latencies
from tests.speed.growth.server import ROWS_AT_ONCE


def rows(first: int, last: int) -> Iterator[tuple[int, str, str, int]]:
    for number in range(first, last):
        yield number, f"name of row {number}", "x" * 60, number * 7 % 1000


def main(path: str, size: int) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA cache_size = -{WIDE.memory_mb * 1024}")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, name TEXT NOT NULL,"
        " note TEXT NOT NULL, n INTEGER NOT NULL)"
    )
    (filled,) = connection.execute("SELECT count(*) FROM t").fetchone()
    began = time.perf_counter()
    for first in range(filled, size, ROWS_AT_ONCE):
        connection.execute("BEGIN")
        some = rows(first, min(first + ROWS_AT_ONCE, size))
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", some)
        connection.execute("COMMIT")
    found = {"seconds of loading": time.perf_counter() - began}
    cpu = time.process_time()
    connection.execute("SELECT count(*) FROM t WHERE note <> name").fetchone()
    found["CPU seconds of a scan"] = time.process_time() - cpu
    cpu = time.process_time()
    connection.execute("SELECT count(*), sum(n), min(n), max(n) FROM t").fetchone()
    found["CPU seconds of an aggregate"] = time.process_time() - cpu
    chance, histogram = Random(2), Histogram()
    for _ in range(2):
        cpu, histogram = time.process_time(), Histogram()
        for _ in range(READS):
            key = chance.randrange(size)
            began = time.perf_counter()
            connection.execute("SELECT name, n FROM t WHERE id = ?", (key,)).fetchone()
            histogram.add(time.perf_counter() - began)
        cpu = time.process_time() - cpu
    found |= latencies(histogram, cpu)
    found["MB at most"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
