"""Runs a first query over vectors in a fresh process, and tells who imported numpy.

A thread waits inside the import until the event loop has taken a turn.
"""

from __future__ import annotations

import sys
from threading import get_ident, main_thread
from typing import Any

import trio

from qserver.web.service.computing import compute_in_threads
from tests.sql.databases import opened_sql

QUERY = "SELECT b, count(*), sum(a) FROM t WHERE a > 10 GROUP BY b ORDER BY b"


class Watch:
    """Finds no module, but sees who looks for numpy."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def find_spec(self, name: str, *_: Any) -> None:
        if name == "numpy":
            if get_ident() == main_thread().ident:
                self.found.append("loop")
            else:
                trio.from_thread.run_sync(self.found.append, "thread")


async def main() -> None:
    watch = Watch()
    async with opened_sql(compute=compute_in_threads()) as database:
        await database.execute("CREATE TABLE t (id INT PRIMARY KEY, a INT NOT NULL, b INT)")
        await database.execute("INSERT INTO t SELECT g, g, g % 7 FROM generate_series(1, 9000) g")
        by_rows = await database.execute(QUERY.replace("t WHERE", "(TABLE t LIMIT 9000) t WHERE"))
        assert "numpy" not in sys.modules
        sys.meta_path.insert(0, watch)
        answers = [(await database.execute(QUERY)).rows for _ in range(3)]
        print(*watch.found, all(answer == by_rows.rows for answer in answers))


trio.run(main)
