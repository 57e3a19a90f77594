"""Growth with connections that are busy at the same time, one request each."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from random import Random

from qserver.benchmarks.growth.curves import Chart, Line, Panel
from qserver.benchmarks.growth.server import serving
from qserver.benchmarks.progress import Progress
from qserver.workloads.operations import insert, point


async def measure(folder: Path, sizes: list[int], progress: Progress) -> Chart:
    lines = {"point read": Line("point read"), "insert": Line("insert")}
    async with serving(folder / "connections", "--connections-max", str(max(sizes) + 10)) as server:
        tables = await server.make_accounts()
        work = {"point read": point(tables, Random(1)), "insert": insert(tables, Random(1))}
        for size in sizes:
            for name, line in lines.items():
                requests = map(server.operation, work[name])
                measured = server.cpu_of(partial(next, requests), size)
                label = f"{size:,} connections: {name}"
                line.add(size, 1e6 * await progress.step(label, measured))
    return Chart(
        "connections",
        "Growth with connections that are busy at once",
        [
            Panel("Requests", "connections", "µs of CPU per request", list(lines.values())),
        ],
        ["Inserts are durable, in groups: one sync serves all that wait for it."],
    )
