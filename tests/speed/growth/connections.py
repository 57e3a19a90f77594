"""Growth with connections that are busy at the same time, one request each."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from random import Random

from qserver.benchmarks.printing import Progress
from qserver.workloads.operations import insert, point
from tests.speed.growth.curves import Chart, Lines, Panel
from tests.speed.growth.server import serving


async def measure(folder: Path, sizes: list[int], progress: Progress) -> Chart:
    lines = Lines()
    async with serving(folder / "connections", "--connections-max", str(max(sizes) + 10)) as server:
        tables = await server.make_accounts()
        work = {"point read": point(tables, Random(1)), "insert": insert(tables, Random(1))}
        for size in sizes:
            for name, operations in work.items():
                requests = map(server.operation, operations)
                measured = server.cpu_of(partial(next, requests), size)
                seconds = await progress.step(f"{size:,} connections: {name}", measured)
                lines.add(name, size, 1e6 * seconds)
    return Chart(
        "connections",
        "Growth with connections that are busy at once",
        [
            Panel("Requests", "connections", "µs of CPU per request", list(lines.values())),
        ],
        ["Inserts are durable, in groups: one sync serves all that wait for it."],
    )
