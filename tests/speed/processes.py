"""Measures what several processes bring: point reads and inserts over eight databases.

    python -m tests.speed.processes                     one process beside two, three rounds
    python -m tests.speed.processes --processes 4 --requests 20000

What counts is the CPU time of the server's processes, which clients beside them do not change:

    all    of all processes, for a request
    most   of the busiest process, for a request of all: on free cores it bounds the rate

The ratio `most of one process / most of several` is how many times as many requests several
processes answer if each has a core of its own. Connections either stay with one database, or change
it with each request, so that each request moves its connection to another process.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
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
DATABASES: Final = 8
ROWS: Final = 1000
CONNECTIONS: Final = 16
WARM_REQUESTS: Final = 400
READ, INSERT, CHANGING = "point read", "insert", "point read, another database each time"
WORK: Final = (READ, INSERT, CHANGING)


@dataclass(frozen=True)
class Cost:
    """CPU time for a request, in microseconds."""

    every: float
    most: float


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.speed.processes")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--requests", type=int, default=16_000, help="for each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    found: dict[tuple[int, str], list[Cost]] = {}
    for _ in range(options.rounds):
        for processes in (1, options.processes):
            with tempfile.TemporaryDirectory() as folder, serving(Path(folder), processes) as made:
                for work in WORK:
                    cost = trio.run(measured, made, work, options.requests)
                    found.setdefault((processes, work), []).append(cost)
    for line in report(found, options.processes):
        print(line)
    return 0


def report(found: dict[tuple[int, str], list[Cost]], processes: int) -> Iterator[str]:
    several = f"{processes}: all"
    yield f"{'CPU µs a request':40} {'one process':>12} {several:>9} {'most':>6}   ratio"
    for work in WORK:
        one = median(each.every for each in found[1, work])
        every = median(each.every for each in found[processes, work])
        most = median(each.most for each in found[processes, work])
        yield f"{work:40} {one:12.1f} {every:9.1f} {most:6.1f}   {one / most:.2f}"


@contextmanager
def serving(folder: Path, processes: int) -> Iterator[Server]:
    """A server whose databases have been filled, and opened."""
    settings = {"QSERVER_API_KEY": KEY, "QSERVER_PROCESSES": str(processes)}
    made = launch("own", folder, settings, by_command=True)
    try:
        made.wait_until_ready()
        fill(made)
        yield made
    finally:
        made.stop()


def fill(made: Server) -> None:
    headers = {"Authorization": f"Bearer {KEY}"}
    for number in range(DATABASES):
        name = f"d{number}"
        answer = made.http.post("/v1/databases", json={"name": name}, headers=headers)
        assert answer.status_code == 201, answer.text
        rows = f"insert into t select i, i from generate_series(1, {ROWS}) s(i)"
        texts = ["create table t (id int primary key, n int)", rows, "create table log (n int)"]
        body = {"statements": [{"sql": each} for each in texts], "database": name}
        answer = made.http.post("/v1/transaction", json=body, headers=headers)
        assert answer.json()["success"], answer.text


async def measured(made: Server, work: str, requests: int) -> Cost:
    await ask_all(made, work, WARM_REQUESTS)
    before = processor_seconds(made)
    await ask_all(made, work, requests)
    used = [now - was for now, was in zip(processor_seconds(made), before, strict=True)]
    return Cost(sum(used) / requests * 1e6, max(used) / requests * 1e6)


def processor_seconds(made: Server) -> list[float]:
    """The CPU time of each process that serves."""
    processes = made.workers() or [made.process.pid]
    return [clock_gettime(clock_of(process)) for process in processes]


def clock_of(process: int) -> int:
    """The clock of a process's CPU time, as clock_getcpuclockid(3) of Linux names it."""
    return (~process << 3) | 2


async def ask_all(made: Server, work: str, requests: int) -> None:
    address = Address.of(made.url)

    async def client(number: int) -> None:
        connection = Connection(address)
        for at in range(requests // CONNECTIONS):
            database = (number + (at if work == CHANGING else 0)) % DATABASES
            await connection.ask(request(work, database, at))
            assert connection.status == 200 and b'"success":true' in connection.head
        connection.close()

    async with trio.open_nursery() as nursery:
        for number in range(CONNECTIONS):
            nursery.start_soon(client, number)


def request(work: str, database: int, at: int) -> bytes:
    sql = "insert into log values ($1)" if work == INSERT else "select n from t where id = $1"
    body = json.dumps({"sql": sql, "params": [at % ROWS + 1], "database": f"d{database}"}).encode()
    head = f"POST /v1/query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


if __name__ == "__main__":
    raise SystemExit(main())
