"""Growth with the statements of one transaction, which is one request."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from qserver.benchmarks.growth.curves import Chart, Line, Panel
from qserver.benchmarks.growth.server import ACCOUNTS, serving
from qserver.benchmarks.progress import Progress


async def measure(folder: Path, sizes: list[int], progress: Progress) -> Chart:
    chance, fresh = Random(1), count(1)
    statements: dict[str, Callable[[], tuple[str, list[Any]]]] = {
        "insert": lambda: ("INSERT INTO entry VALUES ($1, 'entry')", [next(fresh)]),
        "update by key": lambda: (
            "UPDATE account SET n = n + 1 WHERE id = $1",
            [chance.randrange(ACCOUNTS)],
        ),
        "point read": lambda: (
            "SELECT id, owner, n FROM account WHERE id = $1",
            [chance.randrange(ACCOUNTS)],
        ),
    }
    lines = {name: Line(name) for name in statements}
    async with serving(folder / "transactions") as server:
        await server.make_accounts()
        for size in sizes:
            for name, statement in statements.items():

                def request(
                    size: int = size, statement: Callable[[], tuple[str, list[Any]]] = statement
                ) -> bytes:
                    drawn = [statement() for _ in range(size)]
                    body = [{"sql": sql, "params": params} for sql, params in drawn]
                    return server.post("/v1/transaction", {"statements": body})

                label = f"{size:,} statements: {name}"
                seconds = await progress.step(label, server.cpu_of(request))
                lines[name].add(size, 1e6 * seconds / size)
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
