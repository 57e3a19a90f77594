"""Growth with connections that are busy at the same time, one request each."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from random import Random

from qserver.benchmarks.growth.curves import Chart, Line, Panel
from qserver.benchmarks.growth.server import ACCOUNTS, serving
from qserver.benchmarks.progress import Progress


async def measure(folder: Path, sizes: list[int], progress: Progress) -> Chart:
    chance, fresh = Random(1), count(1)
    async with serving(folder / "connections", "--connections-max", str(max(sizes) + 10)) as server:
        await server.make_accounts()

        def read() -> bytes:
            number = chance.randrange(ACCOUNTS)
            return server.query("SELECT id, owner, n FROM account WHERE id = $1", number)

        def insert() -> bytes:
            return server.query("INSERT INTO entry VALUES ($1, 'entry')", next(fresh))

        times = {"point read": (Line("point read"), read), "insert": (Line("insert"), insert)}
        for size in sizes:
            for name, (line, request) in times.items():
                label = f"{size:,} connections: {name}"
                line.add(size, 1e6 * await progress.step(label, server.cpu_of(request, size)))
    return Chart(
        "connections",
        "Growth with connections that are busy at once",
        [
            Panel(
                "Requests",
                "connections",
                "µs of CPU per request",
                [line for line, _ in times.values()],
            ),
        ],
        ["Inserts are durable, in groups: one sync serves all that wait for it."],
    )
