"""Growth with databases: opening them, their memory, and the threads of the server.

At each number the server is started anew, and up to a thousand databases with one table of one row
are asked once each, which opens them. The rest are there, and nobody asks for them.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Final

import trio

from qserver.benchmarks.printing import Progress
from tests.speed.growth.curves import Chart, Line, Panel
from tests.speed.growth.server import Server, ask, serving

MAKERS: Final = 8
OPEN_MAX: Final = 1000
FILL: Final = (
    "CREATE TABLE t (id INT PRIMARY KEY, n INT)",
    "INSERT INTO t VALUES (1, 2)",
)
DEFAULT: Final = "/v1/organizations/default"


async def measure(folder: Path, sizes: list[int], progress: Progress) -> Chart:
    opening, answer = Line("CPU of the first answer"), Line("first answer, by the clock")
    again = Line("CPU of a later answer")
    memory, threads = Line("of each open database"), Line("threads")
    start, started = Line("start, CPU"), Line("after the start")
    data = folder / "databases"
    made = 0
    for size in sizes:
        await progress.step(f"{size:,} databases: making them", _make(data, made, size))
        made, asked = size, min(size, OPEN_MAX)
        async with serving(data) as server:
            before, cpu = server.resident_bytes(), server.cpu_seconds()
            start.add(size, 1e3 * cpu)
            started.add(size, before / 1e6)
            label = f"{size:,} databases: opening them"
            seconds = await progress.step(label, _ask_each(server, asked))
            opening.add(size, 1e3 * (server.cpu_seconds() - cpu) / asked)
            answer.add(size, 1e3 * median(seconds))
            memory.add(size, max(server.resident_bytes() - before, 1) / asked / 1000)
            threads.add(size, server.threads())
            cpu = server.cpu_seconds()
            await progress.step(f"{size:,} databases: asking again", _ask_each(server, asked))
            again.add(size, 1e3 * (server.cpu_seconds() - cpu) / asked)
    return Chart(
        "databases",
        "Growth with databases",
        [
            Panel("Answers", "databases", "milliseconds", [answer, opening, again]),
            Panel("Start", "databases", "milliseconds", [start]),
            Panel("Memory", "databases", "MB resident", [started]),
            Panel("Memory", "databases", "kilobytes resident per open database", [memory]),
            Panel("Threads", "databases", "threads of the server", [threads]),
        ],
        ["Each is opened by its first request; of more than 1,000, 1,000 are."],
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
                for sql in FILL if number < OPEN_MAX else ():
                    await ask(connection, server.query(sql, database=name))

    async with serving(data) as server:
        limits = b'{"limits": {"databases": %d}}' % (size + 1)  # `main` is one, too
        await server.do(server.request(DEFAULT, limits, method="PATCH"))
        async with trio.open_nursery() as nursery:
            for _ in range(MAKERS):
                nursery.start_soon(make_some)
