"""Growth with the statements of one transaction, which is one request."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random

from qserver.benchmarks.printing import Progress
from qserver.workloads.operations import Operation, insert, point, update
from tests.speed.growth.curves import Chart, Lines, Panel
from tests.speed.growth.server import Server, serving


async def measure(folder: Path, sizes: list[int], progress: Progress) -> Chart:
    chance = Random(1)
    kinds = {"insert": insert, "update by key": update, "point read": point}
    lines = Lines()
    async with serving(folder / "transactions") as server:
        tables = await server.make_accounts()
        work = {name: kind(tables, chance) for name, kind in kinds.items()}
        for size in sizes:
            for name, operations in work.items():
                measured = server.cpu_of(partial(_together, server, operations, size))
                seconds = await progress.step(f"{size:,} statements: {name}", measured)
                lines.add(name, size, 1e6 * seconds / size)
    return Chart(
        "transactions",
        "Growth with the statements of a transaction",
        [
            Panel(
                "Statements",
                "statements in the transaction",
                "µs of CPU per statement",
                list(lines.values()),
            )
        ],
        ["One request and, if it writes, one durable commit, whatever the number of statements."],
    )


def _together(server: Server, operations: Iterator[Operation], size: int) -> bytes:
    """Some operations of one statement as a transaction, also if it is only one."""
    drawn = [each for some in islice(operations, size) for each in some.statements]
    statements = [{"sql": sql, "params": params} for sql, params in drawn]
    return server.post("/v1/transaction", {"statements": statements})
