"""Measures how cost grows, and saves the curves as JSON, which `make docs` draws.

    python -m tests.speed.growth --output docs/performance

With the defaults, on two cores: rows 4 minutes (ten million rows: 3 more), memory 4 (5 more, and
3 GB of disk), narrow 1 (a hundred million: 40 more, and 4 GB), branches 2 (5 more), connections 2,
databases 4, transactions 1. What a part has measured is saved when it ends, also if a later one is
interrupted.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import trio

from qserver.benchmarks.printing import Progress
from qserver.limits import DATABASES_OF_ORGANIZATION_MAX, TRANSACTION_STATEMENTS_MAX
from tests.speed.growth import (
    branches,
    connections,
    databases,
    memory,
    rows,
    transactions,
)
from tests.speed.growth.curves import Chart, sizes_up_to

Measure = Callable[[Path, list[int], Progress], Awaitable[Chart]]
PARTS: Final[dict[str, tuple[Measure, int]]] = {
    "rows": (rows.measure, 7),
    "memory": (partial(memory.measure, memory.WIDE), 9),
    "narrow": (partial(memory.measure, memory.NARROW), 8),
    "branches": (branches.measure, 2),
    "connections": (connections.measure, 2),
    "databases": (databases.measure, 3),
    "transactions": (transactions.measure, 3),
}
"""What measures a part, and how many steps it takes for each size."""


def main(arguments: Sequence[str] | None = None) -> int:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        prog="python -m tests.speed.growth",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "parts", nargs="*", metavar="part", help=f"{', '.join(PARTS)}; without: all"
    )
    parser.add_argument("--output", type=Path, default=Path(), help="folder for the JSON files")
    parser.add_argument("--rows-max", type=int, default=1_000_000)
    parser.add_argument("--connections-max", type=int, default=1000)
    parser.add_argument("--databases-max", type=int, default=DATABASES_OF_ORGANIZATION_MAX - 1)
    parser.add_argument("--statements-max", type=int, default=TRANSACTION_STATEMENTS_MAX)
    options = parser.parse_args(arguments)
    for name in options.parts:
        if name not in PARTS:
            parser.error(f"there is no part {name!r}: {', '.join(PARTS)}")
    steps = (1, 3)
    numbers_of_rows = sizes_up_to(options.rows_max, first=min(1000, options.rows_max))
    sizes = {
        **dict.fromkeys(("rows", "memory", "narrow", "branches"), numbers_of_rows),
        "connections": sizes_up_to(options.connections_max, per_decade=steps),
        "databases": sizes_up_to(options.databases_max, per_decade=steps),
        "transactions": sizes_up_to(options.statements_max, per_decade=steps),
    }
    for name in options.parts or PARTS:
        measure, per_size = PARTS[name]
        progress = Progress(per_size * len(sizes[name]), sys.stderr)
        with tempfile.TemporaryDirectory() as folder:
            chart = trio.run(measure, Path(folder), sizes[name], progress)
        print(f"{name}: saved in {chart.save(options.output)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
