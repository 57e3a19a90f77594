"""Growth with the rows of a table: statements, memory per row, and the start of the server.

One table grows. At each size the server is stopped cleanly and started again, so that no checkpoint
is under way while statements are measured, and memory is that of the data alone.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path
from random import Random
from typing import Final

from qserver.benchmarks.printing import Progress
from tests.speed.growth.curves import Chart, Line, Lines, Panel
from tests.speed.growth.server import Requests, Server, serving

ROWS_WEIGHED_MIN: Final = 100_000
"""Fewer rows find room in memory that the start of the process has freed."""
FIRST_FRESH: Final = 1_000_000_000
"""Inserts that are measured have keys from here on."""
FIRST_QUERY: Final = "SELECT k FROM t WHERE id = 1"
"""It opens the database."""
READ: Final = "SELECT count(*) FROM t WHERE c <> '' AND id >= $1 AND id < $2"
"""It reads the pages of some rows: statements are measured over rows in memory."""
CREATE: Final = (
    "CREATE TABLE t (id INTEGER PRIMARY KEY, k INTEGER NOT NULL, v INTEGER NOT NULL,"
    " c TEXT NOT NULL)"
)
FILL: Final = (
    "INSERT INTO t SELECT i, i % 100, (i::bigint * 7919 % 1000003)::integer,"
    " lpad('row ' || i, 40, '.') FROM generate_series($1::integer, $2::integer) AS s (i)"
)


def requests(server: Server, rows: int) -> dict[str, Requests]:
    """What is measured, by name."""
    chance, fresh = Random(1), count(FIRST_FRESH)
    point = "SELECT id, k, c FROM t WHERE id = $1"
    span = "SELECT id, k FROM t WHERE id BETWEEN $1 AND $2"
    insert = "INSERT INTO t VALUES ($1, 1, 2, 'three')"

    def span_request() -> bytes:
        first = chance.randrange(max(rows - 100, 1))
        return server.query(span, first, first + 99)

    return {
        "aggregate, 100 groups": lambda: server.query(
            "SELECT k, count(*), sum(v) FROM t GROUP BY k"
        ),
        "top 10, no index": lambda: server.query("SELECT id, v FROM t ORDER BY v DESC LIMIT 10"),
        "insert of a row": lambda: server.query(insert, next(fresh)),
        "range of 100 rows": span_request,
        "point read": lambda: server.query(point, chance.randrange(rows)),
    }


async def measure(folder: Path, sizes: list[int], progress: Progress) -> Chart:
    statements = Lines()
    memory, start = Line("after a start"), Line("until the first answer")
    data = folder / "rows"
    empty = await _create(data)
    filled = 0
    for size in sizes:
        async with serving(data) as server:
            work = server.fill(FILL, filled, size)
            await progress.step(f"{size:,} rows: filling", work)
        filled = size
        async with serving(data) as server:
            await server.do(server.query(FIRST_QUERY))
            start.add(size, server.cpu_seconds())
            if size >= ROWS_WEIGHED_MIN:
                memory.add(size, (server.resident_bytes() - empty) / size)
            await progress.step(f"{size:,} rows: reading", server.read_all(READ, size))
            for name, request in requests(server, size).items():
                seconds = await progress.step(f"{size:,} rows: {name}", server.cpu_of(request))
                statements.add(name, size, seconds * 1e6)
            await server.do(server.query(f"DELETE FROM t WHERE id >= {FIRST_FRESH}"))
    return Chart(
        "rows",
        "Growth with the rows of a table",
        [
            Panel("Statements", "rows", "µs of CPU per statement", list(statements.values())),
            Panel("Memory", "rows", "bytes resident per row", [memory]),
            Panel("Start of the server", "rows", "seconds of CPU", [start]),
        ],
        ["A row has two integers and a text of 40 characters beside its key. Over HTTP."],
    )


async def _create(data: Path) -> int:
    """Create the table; return the memory of a server that has it without rows."""
    async with serving(data) as server:
        await server.do(server.query(CREATE))
    async with serving(data) as server:
        await server.do(server.query(FIRST_QUERY))
        return server.resident_bytes()
