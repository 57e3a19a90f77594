"""One process beside several: the same requests to both, and what they cost.

What counts is the CPU time of the server's processes, which clients beside them do not change:

    all    of all processes, for a request
    most   of the busiest process, for a request of all: on free cores it bounds the rate

The ratio `most of one process / most of several` is how many times as many requests several
processes answer if each has a core of its own. The cost `all of several / one process` is what a
request costs more because there are several. No process may wait for work: one that does answers
fewer requests each time that it wakes up, and commits smaller groups. So there are many
connections, and where clients share the cores with the server, they go first.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import clock_gettime
from typing import Final

import trio

from qserver.benchmarks.wire import Address, Connection
from tests.web.contract.servers import Server, launch

KEY: Final = "svc_k_processes_0123456789"
HEADERS: Final = {"Authorization": f"Bearer {KEY}"}
ROWS: Final = 1000
CONNECTIONS: Final = 64
NICENESS: Final = 15
"""Of the server's threads; those of the pool that start later have it from the loop's."""
TABLE: Final = (
    "create table t (id int primary key, n int)",
    f"insert into t select i, i from generate_series(1, {ROWS}) s(i)",
)


@dataclass(frozen=True)
class Cost:
    """CPU time for a request, in microseconds."""

    every: float
    most: float


@dataclass(frozen=True)
class Comparison:
    name: str
    """Of its module."""
    works: Sequence[str]
    fill: Callable[[Server, int], None]
    """Makes the databases of a server with so many processes."""
    request: Callable[[str, int, int], tuple[str, str]]
    """Returns the statement and the database of a work, a connection, and its n-th request."""
    warm_requests: int = 400
    apart_seconds: float = 0.0
    """Between two new connections."""

    def main(self, arguments: Sequence[str] | None = None) -> int:
        parser = argparse.ArgumentParser(prog=f"python -m tests.speed.{self.name}")
        parser.add_argument("--processes", type=int, default=2)
        parser.add_argument("--requests", type=int, default=16_000, help="for each measurement")
        parser.add_argument("--rounds", type=int, default=3)
        options = parser.parse_args(arguments)
        found: dict[tuple[int, str], list[Cost]] = {}
        for _ in range(options.rounds):
            for processes in (1, options.processes):
                with self._serving(processes) as made:
                    for work in self.works:
                        cost = trio.run(self._measured, made, work, options.requests)
                        found.setdefault((processes, work), []).append(cost)
        for line in self._report(found, options.processes):
            print(line)
        return 0

    def _report(self, found: dict[tuple[int, str], list[Cost]], processes: int) -> Iterator[str]:
        several = f"{processes}: all"
        yield f"{'CPU µs a request':40} {'one process':>12} {several:>9} {'most':>6}   ratio   cost"
        for work in self.works:
            one = median(each.every for each in found[1, work])
            every = median(each.every for each in found[processes, work])
            most = median(each.most for each in found[processes, work])
            ratios = f"{one / most:5.2f}   {every / one:4.2f}"
            yield f"{work:40} {one:12.1f} {every:9.1f} {most:6.1f}   {ratios}"

    @contextmanager
    def _serving(self, processes: int) -> Iterator[Server]:
        settings = {"QSERVER_API_KEY": KEY, "QSERVER_PROCESSES": str(processes)}
        with tempfile.TemporaryDirectory() as folder:
            made = launch("own", Path(folder), settings, by_command=True)
            try:
                made.wait_until_ready()
                self.fill(made, processes)
                give_way(made)
                yield made
            finally:
                made.stop()

    async def _measured(self, made: Server, work: str, requests: int) -> Cost:
        await self._ask_all(made, work, self.warm_requests)
        before = processor_seconds(made)
        await self._ask_all(made, work, requests)
        used = [now - was for now, was in zip(processor_seconds(made), before, strict=True)]
        return Cost(sum(used) / requests * 1e6, max(used) / requests * 1e6)

    async def _ask_all(self, made: Server, work: str, requests: int) -> None:
        address = Address.of(made.url)

        async def client(number: int) -> None:
            await trio.sleep(number * self.apart_seconds)
            connection = Connection(address)
            for at in range(requests // CONNECTIONS):
                sql, database = self.request(work, number, at)
                await connection.ask(encoded(sql, at % ROWS + 1, database))
                assert connection.status == 200 and b'"success":true' in connection.head
            connection.close()

        async with trio.open_nursery() as nursery:
            for number in range(CONNECTIONS):
                nursery.start_soon(client, number)


def encoded(sql: str, parameter: int | None, database: str) -> bytes:
    params = [] if parameter is None else [parameter]
    body = json.dumps({"sql": sql, "params": params, "database": database}).encode()
    head = f"POST /v1/query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def make_database(made: Server, name: str, statements: Sequence[str]) -> None:
    answer = made.http.post("/v1/databases", json={"name": name}, headers=HEADERS)
    assert answer.status_code == 201, answer.text
    body = {"statements": [{"sql": each} for each in statements], "database": name}
    answer = made.http.post("/v1/transaction", json=body, headers=HEADERS)
    assert answer.json()["success"], answer.text


def give_way(made: Server) -> None:
    """Let clients go first, so that requests always wait for the server and never it for them."""
    for process in _serving_processes(made):
        for thread in Path(f"/proc/{process}/task").iterdir():
            os.setpriority(os.PRIO_PROCESS, int(thread.name), NICENESS)


def processor_seconds(made: Server) -> list[float]:
    """The CPU time of each process that serves."""
    return [clock_gettime(clock_of(process)) for process in _serving_processes(made)]


def _serving_processes(made: Server) -> list[int]:
    return list(made.workers()) or [made.process.pid]


def clock_of(process: int) -> int:
    """The clock of a process's CPU time, as clock_getcpuclockid(3) of Linux names it."""
    return (~process << 3) | 2
