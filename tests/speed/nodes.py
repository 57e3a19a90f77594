"""Measures what forwarding costs, and a move: a real cluster of three nodes on three log nodes.

    python -m tests.speed.nodes                     5 seconds for each number, 10 moves

The same requests are sent to the node that owns the database, and to one that forwards them. Then
the database moves from node to node while one client after another inserts through a third. Nodes,
log nodes and clients share the machine, so the numbers are for comparison with each other.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import clock_gettime
from typing import Final

import trio

from tests.nodes.cluster import LEASE_SECONDS_DEFAULT, Cluster, NodeMachine
from tests.processes.machine import KEY
from tests.processes.wire import Lost, Wire, query
from tests.replication.nodes import log_nodes
from tests.speed.replicated import asked, request
from tests.speed.side_by_side import ROWS, TABLE, clock_of

CLIENTS: Final = 32
DATABASE: Final = "moved0"
READ, INSERT = "point read", "insert"
SQL: Final = {READ: "select n from t where id = $1", INSERT: "insert into log values ($1)"}
WINDOW_SECONDS: Final = 4.0
"""After a move: it is over by then."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.speed.nodes")
    parser.add_argument("--seconds", type=float, default=5.0, help="for each measurement")
    parser.add_argument("--moves", type=int, default=10)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        for line in trio.run(measured, Path(folder), options.seconds, options.moves):
            print(line, flush=True)
    return 0


async def measured(folder: Path, seconds: float, moves: int) -> list[str]:
    with log_nodes(3, folder) as log:
        settings = {"QSERVER_LEASE_S": str(LEASE_SECONDS_DEFAULT)}
        cluster = Cluster(folder, log, 0, settings, can_be_cut=False)
        async with cluster.running():
            await cluster.make_databases(1, DATABASE[:-1])
            async with cluster.connected() as wire:
                for sql in (*TABLE, "create table log (n int)"):
                    assert (await wire.query(sql, database=DATABASE)).is_good
            owner = cluster.nodes[(await cluster.owners())[DATABASE]]
            other, *_ = (node for node in cluster.nodes if node is not owner)
            lines = [f"{'':50}{'owner':>12}{'another node':>14}"]
            for work in (READ, INSERT):
                direct = await cost(cluster, owner, work, seconds)
                forwarded = await cost(cluster, other, work, seconds)
                lines += compared(work, direct, forwarded)
            return [*lines, await moved(cluster, moves)]


async def cost(cluster: Cluster, node: NodeMachine, work: str, seconds: float) -> dict[str, float]:
    """What a request costs that is sent to a node."""
    await asked(node.url, sent(work), CLIENTS, seconds / 10)
    before = processor_seconds(cluster)
    rate, _ = await asked(node.url, sent(work), CLIENTS, seconds)
    used = processor_seconds(cluster) - before
    _, lone_ms = await asked(node.url, sent(work), 1, min(seconds, 3.0))
    return {
        f"µs of CPU of all nodes, {CLIENTS} clients": used / (rate * seconds) * 1e6,
        f"a second, {CLIENTS} clients": rate,
        "ms for a lone client, in the middle": lone_ms,
    }


def sent(work: str) -> Callable[[int], bytes]:
    def made(at: int) -> bytes:
        fields: dict[str, object] = {"sql": SQL[work], "params": [at % ROWS + 1]}
        return request("/v1/query", {**fields, "database": DATABASE}, KEY)

    return made


def compared(work: str, direct: dict[str, float], forwarded: dict[str, float]) -> Iterator[str]:
    for what, number in direct.items():
        yield f"{f'{work}: {what}':50}{number:12,.2f}{forwarded[what]:14,.2f}"


def processor_seconds(cluster: Cluster) -> float:
    processes = [pid for node in cluster.nodes for pid in (node.supervisor.pid, *node.members())]
    return sum(clock_gettime(clock_of(process)) for process in processes)


async def moved(cluster: Cluster, moves: int) -> str:
    """Move the database again and again under load; say how long nobody was answered."""
    answers: list[float] = []
    longest = []
    async with trio.open_nursery() as nursery:
        async with cluster.nodes[0].connected() as wire:
            nursery.start_soon(insert, wire, answers)
            for number in range(moves):
                began = trio.current_time()
                target = cluster.nodes[1 + number % 2]
                await cluster.move(cluster.ids[DATABASE], target.name)
                await trio.sleep(WINDOW_SECONDS)
                since = [began, *(each for each in answers if each > began)]
                longest.append(max(late - early for early, late in pairwise(since)))
            nursery.cancel_scope.cancel()
    times = [f"{1000 * seconds:,.0f} ms {word}" for seconds, word in _ends(longest)]
    return f"{moves} moves under load; without an answer: {', '.join(times)}"


def _ends(seconds: Sequence[float]) -> list[tuple[float, str]]:
    return [(median(seconds), "in the middle"), (max(seconds), "at most")]


async def insert(wire: Wire, answers: list[float]) -> None:
    """Insert, one row after the other, and note when each was answered."""
    while True:
        try:
            answer = await wire.send(query(SQL[INSERT], [1], database=DATABASE))
        except Lost:
            continue
        if answer.is_good:
            answers.append(trio.current_time())


if __name__ == "__main__":
    raise SystemExit(main())
