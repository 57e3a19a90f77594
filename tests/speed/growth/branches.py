"""Branches: how long one takes to make as the table grows, and what it costs to change rows in it.

A branch shares the pages of its parent, so making one must not grow with the rows, and it must cost
what it changes: a page for each row if the rows lie anywhere, a page for 48 of them if they lie
side by side.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import median
from typing import Final

from qserver.benchmarks.printing import Progress
from tests.speed.growth.curves import Chart, Lines, Panel
from tests.speed.growth.memory import WIDE, print_values
from tests.speed.growth.server import Server, ask, serving

MADE: Final = 10
"""Branches that are made at each size, one after the other."""
BRANCHES: Final = (10, 100)
CHANGED: Final = 1000
"""Rows that are changed in each of them."""
UPDATE: Final = "UPDATE t SET n = n + 1 WHERE id = ANY ($1::integer[])"
POINT: Final = "SELECT n FROM t WHERE id = $1"


async def measure(folder: Path, sizes: list[int], progress: Progress) -> Chart:
    made, disk, memory = Lines(), Lines(), Lines()
    data, filled = folder / "branches", 0
    async with serving(data) as server:
        await server.do(server.query(WIDE.create))
    for size in sizes:
        async with serving(data) as server:
            work = server.fill(WIDE.fill, filled, size)
            await progress.step(f"{size:,} rows: loading", work)
        filled = size
        async with serving(data) as server:
            await server.do(server.query(POINT, 1))
            await progress.step(f"{size:,} rows: branches", _make(server, size, made))
    rows = sizes[-1]
    for how, keys in (("side by side", _side_by_side), ("anywhere", _anywhere)):
        for count in BRANCHES:
            stored, resident = await _change(data, rows, count, how, keys)
            disk.add(f"{CHANGED:,} rows {how}", count, stored)
            memory.add(f"{CHANGED:,} rows {how}", count, resident)
    return Chart(
        "branches",
        "Branches",
        [
            Panel("Making one", "rows of the parent", "milliseconds", list(made.values())),
            Panel("On the disk", "branches", "kilobytes each", list(disk.values())),
            Panel("In memory", "branches", "kilobytes each", list(memory.values())),
        ],
        [
            f"The median of {MADE}; then {CHANGED:,} rows changed in each of many branches of"
            f" {rows:,} rows: side by side, or anywhere in the table. Over HTTP."
        ],
    )


async def _make(server: Server, size: int, made: Lines) -> None:
    clock: list[float] = []
    cpu: list[float] = []
    first: list[float] = []
    async with server.connected() as connection:
        for number in range(MADE):
            name = f"b{size}-{number}"
            request = server.post("/v1/databases", {"name": name, "branch_of": "main"})
            began, used = time.perf_counter(), server.cpu_seconds()
            await ask(connection, request)
            clock.append(1e3 * (time.perf_counter() - began))
            cpu.append(1e3 * (server.cpu_seconds() - used))
            used = server.cpu_seconds()
            await ask(connection, server.query(POINT, size // 2, database=name))
            first.append(1e3 * (server.cpu_seconds() - used))
    values = [median(clock), median(cpu), median(first)]
    names = ("made, by the clock", "made, CPU", "its first answer, CPU")
    for name, value in zip(names, values, strict=True):
        made.add(name, size, value)
    told = {"ms": values[0], "ms CPU": values[1], "ms CPU of the first answer": values[2]}
    print_values(size, "a branch", told)


def _side_by_side(chance: Random, rows: int) -> list[int]:
    first = chance.randrange(max(rows - CHANGED, 1))
    return list(range(first, first + CHANGED))


def _anywhere(chance: Random, rows: int) -> list[int]:
    return [chance.randrange(rows) for _ in range(CHANGED)]


async def _change(
    data: Path,
    rows: int,
    count: int,
    how: str,
    keys: Callable[[Random, int], list[int]],
) -> tuple[float, float]:
    """Return the kilobytes that each branch takes on the disk and in memory."""
    chance, names = Random(count), [f"{how.replace(' ', '-')}-{count}-{at}" for at in range(count)]
    before = _bytes_of(data)
    async with serving(data) as server, server.connected() as connection:
        await ask(connection, server.query(POINT, 1))
        resident, used = server.resident_bytes(), server.cpu_seconds()
        for name in names:
            made = server.post("/v1/databases", {"name": name, "branch_of": "main"})
            await ask(connection, made)
            await ask(connection, server.query(UPDATE, keys(chance, rows), database=name))
        resident = server.resident_bytes() - resident
        used = server.cpu_seconds() - used
    # The server has stopped: all pages are saved, and the logs are moved into the files.
    disk = (_bytes_of(data) - before) / count / 1000
    memory = max(resident, 1) / count / 1000
    told = {"kB on the disk": disk, "kB in memory": memory, "ms CPU": 1e3 * used / count}
    print_values(rows, f"{count} branches, {CHANGED} rows {how}, each", told)
    return disk, memory


def _bytes_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())
