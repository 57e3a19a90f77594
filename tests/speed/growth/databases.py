"""Growth with databases: opening them, their memory, and the threads of the server.

Each has one table with one row. At each number the server is started anew and every database is
asked once, which opens it.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Final

import trio

from qserver.benchmarks.printing import Progress
from qserver.limits import DATABASES_OF_ORGANIZATION_MAX
from tests.speed.growth.curves import Chart, Line, Panel
from tests.speed.growth.server import Server, ask, serving

MAKERS: Final = 8


async def measure(folder: Path, sizes: list[int], progress: Progress) -> Chart:
    opening, answer = Line("CPU of the first answer"), Line("first answer, by the clock")
    again = Line("CPU of a later answer")
    memory, threads = Line("of each open database"), Line("threads")
    data = folder / "databases"
    made = 0
    for size in sizes:
        assert size < DATABASES_OF_ORGANIZATION_MAX, "the database `main` counts too"
        await progress.step(f"{size:,} databases: making them", _make(data, made, size))
        made = size
        async with serving(data) as server:
            before, cpu = server.resident_bytes(), server.cpu_seconds()
            label = f"{size:,} databases: opening them"
            seconds = await progress.step(label, _ask_each(server, size))
            opening.add(size, 1e3 * (server.cpu_seconds() - cpu) / size)
            answer.add(size, 1e3 * median(seconds))
            memory.add(size, max(server.resident_bytes() - before, 1) / size / 1000)
            threads.add(size, server.threads())
            cpu = server.cpu_seconds()
            await progress.step(f"{size:,} databases: asking again", _ask_each(server, size))
            again.add(size, 1e3 * (server.cpu_seconds() - cpu) / size)
    return Chart(
        "databases",
        "Growth with open databases",
        [
            Panel("Answers", "databases", "milliseconds", [answer, opening, again]),
            Panel("Memory", "databases", "kilobytes resident per database", [memory]),
            Panel("Threads", "databases", "threads of the server", [threads]),
        ],
        ["Each has one table with one row, and is opened by its first request."],
    )


async def _ask_each(server: Server, size: int) -> list[float]:
    seconds = []
    async with server.connected() as connection:
        for number in range(size):
            request = server.query("SELECT n FROM t WHERE id = 1", database=f"d{number}")
            began = time.perf_counter()
            await ask(connection, request)
            seconds.append(time.perf_counter() - began)
    return seconds


async def _make(data: Path, made: int, size: int) -> None:
    numbers = iter(range(made, size))

    async def make_some() -> None:
        async with server.connected() as connection:
            for number in numbers:
                name = f"d{number}"
                await ask(connection, server.post("/v1/databases", {"name": name}))
                for sql in (
                    "CREATE TABLE t (id INT PRIMARY KEY, n INT)",
                    "INSERT INTO t VALUES (1, 2)",
                ):
                    await ask(connection, server.query(sql, database=name))

    async with serving(data) as server:
        async with trio.open_nursery() as nursery:
            for _ in range(MAKERS):
                nursery.start_soon(make_some)
