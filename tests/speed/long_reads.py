"""Measures what a long aggregate costs commits beside it, without a follower and with one.

    python -m tests.speed.long_reads                    two processes, three rounds
    python -m tests.speed.long_reads --rows 1000000

Writers commit one after the other, over some connections. Then readers join them that work through
all rows, again and again, over connections that the owner has accepted. What counts is how long a
commit takes, as a ratio to the same without readers, in one run: the machine has one core for the
owner, and one for the follower and all clients.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Final

import trio

from qserver.benchmarks.wire import Address, Connection
from tests.speed.side_by_side import HEADERS, KEY, encoded, make_database
from tests.web.contract.servers import Server, launch

WRITERS, READERS, COMMITS = 4, 2, 400
WRITE: Final = "update t set n = n + 1 where id = $1"
SUM: Final = "select sum(length(md5(n::text))) from t where n <> $1"
MOVED: Final = 8
"""Writes in a row, after which a connection is at the owner."""


def fill(made: Server, rows: int, replicas: int) -> None:
    table = "create table t (id int primary key, n int)"
    insert = f"insert into t select i, i from generate_series(1, {rows}) s(i)"
    make_database(made, "hot", [table, insert])
    body = {"replicas": replicas}
    assert made.http.patch("/v1/databases/hot", json=body, headers=HEADERS).status_code == 200


class Load:
    """Writers and readers of one server."""

    def __init__(self, made: Server) -> None:
        self._address = Address.of(made.url)
        self._seconds: list[float] = []
        self.reads = 0

    async def ask(self, connection: Connection, sql: str, parameter: int) -> None:
        await connection.ask(encoded(sql, parameter, "hot"))
        assert connection.status == 200 and b'"success":true' in connection.head

    async def commits(self, readers: int) -> list[float]:
        """The seconds of each commit."""
        self._seconds = []
        async with trio.open_nursery() as nursery:
            for number in range(readers):
                nursery.start_soon(self._read, WRITERS + number + 1)
            async with trio.open_nursery() as writing:
                for number in range(WRITERS):
                    writing.start_soon(self._write, number + 1)
            nursery.cancel_scope.cancel()
        return self._seconds

    async def _at_owner(self, row: int) -> Connection:
        connection = Connection(self._address)
        for _ in range(MOVED):
            await self.ask(connection, WRITE, row)
        return connection

    async def _write(self, row: int) -> None:
        connection = await self._at_owner(row)
        for _ in range(COMMITS):
            began = perf_counter()
            await self.ask(connection, WRITE, row)
            self._seconds.append(perf_counter() - began)
        connection.close()

    async def _read(self, row: int) -> None:
        connection = await self._at_owner(row)
        while True:
            await self.ask(connection, SUM, -1)
            self.reads += 1


def measured(rows: int, replicas: int) -> tuple[list[float], list[float], int]:
    """The seconds of commits without and with readers, and how many reads these made."""
    settings = {"QSERVER_API_KEY": KEY, "QSERVER_PROCESSES": "2"}
    with tempfile.TemporaryDirectory() as folder:
        made = launch("own", Path(folder), settings, by_command=True)
        try:
            made.wait_until_ready()
            fill(made, rows, replicas)
            load = Load(made)
            trio.run(load.commits, READERS)  # plans are made, and the follower has begun
            alone = trio.run(load.commits, 0)
            load.reads = 0
            return alone, trio.run(load.commits, READERS), load.reads
        finally:
            made.stop()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.speed.long_reads")
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    print(f"{'a commit, ms':24} {'alone':>8} {'beside':>8} {'ratio':>6} {'99 %':>8} {'reads':>6}")
    for replicas in (0, 1):
        every = [measured(options.rows, replicas) for _ in range(options.rounds)]
        alone = median(median(each) for each, _, _ in every) * 1000
        beside = median(median(each) for _, each, _ in every) * 1000
        late = median(quantiles(each, n=100)[98] for _, each, _ in every) * 1000
        reads = sum(count for _, _, count in every)
        name = "with a follower" if replicas else "without a follower"
        print(f"{name:24} {alone:8.2f} {beside:8.2f} {beside / alone:6.1f} {late:8.2f} {reads:6}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
