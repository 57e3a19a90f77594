"""Measures what a replicated log costs, beside the file of the same machine in the same run.

    python -m tests.speed.replicated                    three log nodes on this machine
    python -m tests.speed.replicated --rows 1000000     what a new machine takes to serve so many

Nodes, server and clients share the machine, so the numbers are for comparison with each other.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

import trio

from qserver.benchmarks.wire import Address, Connection
from tests.replication.campaign import settings_of
from tests.replication.nodes import Nodes, log_nodes
from tests.web.contract.servers import Server, launch

KEY: Final = "svc_k_replicated_0123456789"
HEADERS: Final = {"Authorization": f"Bearer {KEY}"}
CLIENTS: Final = 32
LONE: Final = 300
ROWS_AT_ONCE: Final = 50_000


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.speed.replicated")
    parser.add_argument("--seconds", type=float, default=10.0, help="for each measurement")
    parser.add_argument("--rows", type=int, default=100_000)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, log_nodes(3, Path(folder)) as nodes:
        found = {
            "three log nodes": measured(Path(folder), "log", nodes, options.seconds),
            "file": measured(Path(folder), "file", None, options.seconds),
        }
        for line in report(found):
            print(line, flush=True)
        print(new_machine(Path(folder), nodes, options.rows), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        print(new_machine_from_base(Path(folder), options.rows))
    return 0


def report(found: dict[str, dict[str, float]]) -> Iterator[str]:
    yield f"{'':38}" + "".join(f"{name:>18}" for name in found)
    for what in next(iter(found.values())):
        yield f"{what:38}" + "".join(f"{each[what]:18,.2f}" for each in found.values())


@contextmanager
def serving(folder: Path, name: str, nodes: Nodes | None) -> Iterator[Server]:
    place = folder / name
    place.mkdir(exist_ok=True)
    replicated = {} if nodes is None else settings_of(nodes, name, "1")
    made = launch("own", place, {"QSERVER_API_KEY": KEY, **replicated}, by_command=True)
    try:
        made.wait_until_ready()
        yield made
    finally:
        made.stop()


def measured(folder: Path, name: str, nodes: Nodes | None, seconds: float) -> dict[str, float]:
    with serving(folder, name, nodes) as made:
        run(made, "create table t (id int primary key, n int)", "create table log (n int)")
        run(made, "insert into t select i, i from generate_series(1, 1000) s(i)")
        inserts, insert_ms = trio.run(asked, made.url, insert, CLIENTS, seconds)
        transfers, transfer_ms = trio.run(asked, made.url, transfer, CLIENTS, seconds)
        _, lone_ms = trio.run(asked, made.url, insert, 1, min(seconds, 5.0))
        return {
            f"inserts/s, {CLIENTS} clients": inserts,
            "  of one, ms in the middle": insert_ms,
            f"transfers/s, {CLIENTS} clients": transfers,
            "  of one, ms in the middle ": transfer_ms,
            "a lone client's insert, ms": lone_ms,
            "making a database, ms": making(made, database),
            "making a branch, ms": making(
                made, lambda at: {"name": f"br{at}", "branch_of": "main"}
            ),
        }


def database(at: int) -> dict[str, str]:
    return {"name": f"new{at}"}


def branch_of_main(at: int) -> dict[str, str]:
    return {"name": f"branch{at}", "branch_of": "main"}


def making(made: Server, body: Callable[[int], dict[str, str]]) -> float:
    """The middle of ten."""
    times = []
    for at in range(10):
        began = perf_counter()
        answer = made.http.post("/v1/databases", json=body(at), headers=HEADERS)
        assert answer.status_code == 201, answer.text
        times.append(perf_counter() - began)
    return 1000 * median(times)


def run(made: Server, *texts: str) -> None:
    for text in texts:
        answer = made.http.post("/v1/query", json={"sql": text}, headers=HEADERS, timeout=600)
        assert answer.json()["success"], answer.text


def insert(at: int) -> bytes:
    return request("/v1/query", {"sql": "insert into log values ($1)", "params": [at]})


def transfer(at: int) -> bytes:
    texts = ("update t set n = n - 1 where id = $1", "update t set n = n + 1 where id = $1")
    keys = (at % 1000 + 1, at * 7 % 1000 + 1)
    statements = [{"sql": sql, "params": [key]} for sql, key in zip(texts, keys, strict=True)]
    return request("/v1/transaction", {"statements": statements})


def request(path: str, fields: dict[str, object], key: str = KEY) -> bytes:
    body = json.dumps(fields).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def asked(
    url: str, work: Callable[[int], bytes], clients: int, seconds: float
) -> tuple[float, float]:
    """How many requests were answered in a second, and the middle of their milliseconds."""
    times: list[float] = []

    async def client(number: int) -> None:
        connection = Connection(Address.of(url))
        at = number
        while perf_counter() < until:
            began = perf_counter()
            await connection.ask(work(at))
            assert connection.status == 200 and b'"success":true' in connection.head
            times.append(perf_counter() - began)
            at += clients
        connection.close()

    until = perf_counter() + seconds
    async with trio.open_nursery() as nursery:
        for number in range(clients):
            nursery.start_soon(client, number)
    return len(times) / seconds, 1000 * median(times)


def new_machine(folder: Path, nodes: Nodes, rows: int) -> str:
    """Fill a database, lose the machine, and begin on another with an empty disk."""
    with serving(folder, "first", nodes) as made:
        fill(made, rows)
    return f"a new machine with an empty disk: {counted(folder, 'second', nodes, rows)}"


def new_machine_from_base(folder: Path, rows: int) -> str:
    """The same with a log that has a base and nothing behind it."""
    with serving(folder, "whole", None) as made:
        fill(made, rows)
    (folder / "based").mkdir()
    with log_nodes(3, folder / "based") as nodes:
        settings = {**os.environ, **settings_of(nodes, "whole")}
        command = [sys.executable, "-m", "qserver", "restore", str(folder / "whole" / "data")]
        subprocess.run([*command, "--log", settings["QSERVER_LOG"]], env=settings, check=True)
        return f"the same from a base: {counted(folder, 'third', nodes, rows)}"


def fill(made: Server, rows: int) -> None:
    """Insert rows, and make a branch."""
    run(made, "create table wide (id int primary key, n int, t text)")
    for first in range(1, rows + 1, ROWS_AT_ONCE):
        last = min(rows, first + ROWS_AT_ONCE - 1)
        series = f"generate_series({first}, {last}) s(i)"
        run(made, f"insert into wide select i, i * 2, 'row ' || i from {series}")
    body = {"name": "of_it", "branch_of": "main"}
    assert made.http.post("/v1/databases", json=body, headers=HEADERS).status_code == 201


def counted(folder: Path, name: str, nodes: Nodes, rows: int) -> str:
    """Say after how many seconds a server without files has counted the rows."""
    began = perf_counter()
    with serving(folder, name, nodes) as made:
        ready = perf_counter() - began
        counts = []
        for database in ("main", "of_it"):
            body = {"sql": "select count(*) as n from wide", "database": database}
            answer = made.http.post("/v1/query", json=body, headers=HEADERS, timeout=600)
            counts.append(answer.json()["rows"][0]["n"])
        served = perf_counter() - began
    assert counts == [rows, rows], counts
    found = f"{rows:,} rows and a branch of them counted after {served:.1f} s"
    return f"ready after {ready:.1f} s, {found}"


if __name__ == "__main__":
    raise SystemExit(main())
