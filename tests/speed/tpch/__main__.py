"""Measures the 22 queries of TPC-H in process, beside DuckDB with one thread.

    python -m tests.speed.tpch [--scale 0.05]

For each query: milliseconds of CPU time of the first run, which plans it and reads rows or fills
vectors, of a later one, of DuckDB, and the ratio of the last two. The data comes from
`tpchgen-cli`, a development dependency.
"""

from __future__ import annotations

import argparse
import gc
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import trio

from qserver.benchmarks.printing import line
from qserver.engine.collector import settle_collector
from tests.speed.in_process import cpu_ms, cpu_ms_of, opened
from tests.speed.tpch.queries import QUERIES
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
        async with opened() as database:
            await load(Path(folder), database)
            await database.database.checkpoint()  # the queries are to be all that runs
            heads = ("first", "warm", "DuckDB", "DuckDB/warm")
            print(line("TPC-H, ms of CPU time", heads))
            for query in QUERIES:
                first = await cpu_ms_of(database, query.with_literals)
                await cpu_ms_of(database, query.with_literals)
                warm = [await cpu_ms_of(database, query.with_literals) for _ in range(ROUNDS)]
                theirs = [cpu_ms(duck, query.with_literals) for _ in range(ROUNDS)]
                times = first, median(warm), median(theirs), median(theirs) / median(warm)
                print(line(f"query {query.number}", times), flush=True)
        duck.close()


if __name__ == "__main__":
    sys.exit(main())
