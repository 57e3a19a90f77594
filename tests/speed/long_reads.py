"""Measures what a long aggregate costs commits beside it, without a follower and with one.

    python -m tests.speed.long_reads                    two processes, three rounds
    python -m tests.speed.long_reads --rows 1000000

Writers commit one after the other, over some connections. Then readers join them that work through
all rows, again and again, over connections that the owner has accepted. What counts is what a
commit takes, as a ratio to the same without readers, in one run:

    ms     by the clock: the machine has one core for the owner, and one for the follower and all
           clients
    owner  microseconds of CPU of the owner for a commit, with all that it does beside: on free
           cores that is what readers take from writers
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Final

import trio

from qserver.benchmarks.wire import Address, Connection
from tests.speed.side_by_side import HEADERS, KEY, encoded, make_database, processor_seconds
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


@dataclass(frozen=True)
class Took:
    """What commits took."""

    seconds: list[float]
    of_processes: list[float]
    """CPU of each process meanwhile."""

    @property
    def middle(self) -> float:
        return median(self.seconds)

    @property
    def late(self) -> float:
        return quantiles(self.seconds, n=100)[98]

    def owner(self) -> int:
        """Which process it is, if nobody reads."""
        return self.of_processes.index(max(self.of_processes))

    def cpu(self, process: int) -> float:
        """Of a process, for a commit."""
        return self.of_processes[process] / len(self.seconds)


class Load:
    """Writers and readers of one server."""

    def __init__(self, made: Server) -> None:
        self._made = made
        self._address = Address.of(made.url)
        self._seconds: list[float] = []
        self.reads = 0

    async def ask(self, connection: Connection, sql: str, parameter: int) -> None:
        await connection.ask(encoded(sql, parameter, "hot"))
        assert connection.status == 200 and b'"success":true' in connection.head

    async def commits(self, readers: int) -> Took:
        self._seconds = []
        before = processor_seconds(self._made)
        async with trio.open_nursery() as nursery:
            for number in range(readers):
                nursery.start_soon(self._read, WRITERS + number + 1)
            async with trio.open_nursery() as writing:
                for number in range(WRITERS):
                    writing.start_soon(self._write, number + 1)
            nursery.cancel_scope.cancel()
        after = processor_seconds(self._made)
        return Took(self._seconds, [now - was for now, was in zip(after, before, strict=True)])

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


def measured(rows: int, replicas: int) -> tuple[Took, Took, int]:
    """What commits took without and with readers, and how many reads these made."""
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
    names = "".join(f"{each:>9}" for each in ("alone", "beside", "ratio") * 2)
    print(f"{'a commit: ms, then owner':24}{names} {'99 %, ms':>9} {'reads':>6}")
    for replicas in (0, 1):
        every = [measured(options.rows, replicas) for _ in range(options.rounds)]
        lines = ""
        for alone, beside in (
            (
                median(each.middle for each, _, _ in every) * 1000,
                median(each.middle for _, each, _ in every) * 1000,
            ),
            (
                median(each.cpu(each.owner()) for each, _, _ in every) * 1e6,
                median(each.cpu(first.owner()) for first, each, _ in every) * 1e6,
            ),
        ):
            lines += f"{alone:9.2f}{beside:9.2f}{beside / alone:9.2f}"
        late = median(each.late for _, each, _ in every) * 1000
        reads = sum(count for _, _, count in every)
        name = "with a follower" if replicas else "without a follower"
        print(f"{name:24}{lines} {late:9.2f} {reads:6}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
