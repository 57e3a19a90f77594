"""Measures the 22 queries of TPC-H in process, beside DuckDB with one thread.

    python -m tests.speed.tpch [--scale 0.05]

The data is loaded into a file, which is then opened anew. For each query: milliseconds of CPU time
of the first run after that, which plans it and reads columns from the file, of a later one, of
DuckDB, and the ratio of the last two. The data comes from `tpchgen-cli`, a development dependency.
"""

from __future__ import annotations

import argparse
import gc
import sys
from pathlib import Path
from statistics import geometric_mean, median
from tempfile import TemporaryDirectory

import duckdb
import trio

from qserver.benchmarks.printing import line
from qserver.durability.sqlite import open_log
from qserver.engine.collector import settle_collector
from qserver.query.sql_database import SqlDatabase
from tests.speed.in_process import cpu_ms, cpu_ms_of, opened_in_process
from tests.speed.tpch.queries import QUERIES, Query
from tests.speed.tpch.tables import generate, generator, load, load_duckdb

ROUNDS = 3
SCALE_MIN = 0.01
WHY = "with fewer suppliers the data has a part twice from the same one, against the key"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.speed.tpch")
    parser.add_argument("--scale", type=float, default=0.05, help="1 is a gigabyte of data")
    options = parser.parse_args()
    if options.scale < SCALE_MIN:
        parser.error(f"--scale must be at least {SCALE_MIN}: {WHY}")
    if generator() is None:
        print("tpchgen-cli is not installed: there is no data for TPC-H")
        return 0
    try:
        trio.run(measure, options.scale)
    finally:
        gc.unfreeze()  # or DuckDB finds what the collector was told to spare leaked
    return 0


async def measure(scale: float) -> None:
    settle_collector()
    with TemporaryDirectory() as folder:
        await trio.to_thread.run_sync(generate, Path(folder), scale)
        duck = load_duckdb(Path(folder))
        async with await open_log(Path(folder) / "tpch.qserver") as log:
            async with opened_in_process(log) as database:
                await load(Path(folder), database)
                await database.database.checkpoint()
            async with opened_in_process(log) as database:
                print(line("TPC-H, ms of CPU time", ("first", "warm", "DuckDB", "DuckDB/warm")))
                every = [await measured(query, database, duck) for query in QUERIES]
        duck.close()
    first, warm, theirs = (geometric_mean(times) for times in zip(*every, strict=True))
    print(line("geometric mean", (first, warm, theirs, theirs / warm)))
    print(
        f"the first run takes {first / warm:.1f} times a later one, {warm / theirs:.1f} of DuckDB's"
    )


async def measured(
    query: Query, database: SqlDatabase, duck: duckdb.DuckDBPyConnection
) -> tuple[float, float, float]:
    """The milliseconds of the first run, of a later one, and of DuckDB; prints them, too."""
    first = await cpu_ms_of(database, query.with_literals)
    await cpu_ms_of(database, query.with_literals)
    warm = median([await cpu_ms_of(database, query.with_literals) for _ in range(ROUNDS)])
    theirs = median([cpu_ms(duck, query.with_literals) for _ in range(ROUNDS)])
    print(line(f"query {query.number}", (first, warm, theirs, theirs / warm)), flush=True)
    return first, warm, theirs


if __name__ == "__main__":
    sys.exit(main())
