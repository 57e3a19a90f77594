"""How long a large database is away when its owner changes, with and without a follower.

    python -m tests.nodes.gaps --rows 300000

Each row of the table is one change of owner under load: small writes, one after the other, through
a node that stays. The next owner either follows the database, or has never had it. A gap is the
longest time without an answer to a write; an error is an answer that says no.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trio

from tests.nodes.cluster import Cluster, NodeMachine
from tests.processes.machine import KEY, until
from tests.processes.wire import Lost, Wire
from tests.replication.nodes import log_nodes

LEASE_SECONDS: Final = 8
"""Longer than a busy machine makes a node wait for its turn."""
KINDS: Final = ("moved", "stopped", "killed")
ROWS_AT_ONCE: Final = 10_000
CALM_SECONDS: Final = 3.0
PAUSE_SECONDS: Final = 0.02
WRITE: Final = "UPDATE big SET n = n + 1 WHERE id = $1"


@dataclass(slots=True)
class Gap:
    kind: str
    replicas: int
    rows: int
    seconds: float
    writes: int
    errors: list[str]
    bugs: list[str]

    def __str__(self) -> str:
        follower = "a follower" if self.replicas else "no follower"
        return (
            f"{self.rows:>9,} rows  {follower:12} {self.kind:8} {self.seconds:7.2f} s"
            f" {len(self.errors):>6} errors {self.writes:>6} writes"
        )


class _Writer:
    """Writes through one node, and notes the longest pause."""

    def __init__(self, wire: Wire, database: str) -> None:
        self._wire = wire
        self._database = database
        self.longest = 0.0
        self.writes = 0
        self.errors: list[str] = []
        self.last = trio.current_time()

    async def run(self) -> None:
        while True:
            try:
                answer = await self._wire.query(WRITE, [1], database=self._database)
                if answer.is_good:
                    now = trio.current_time()
                    self.longest = max(self.longest, now - self.last)
                    self.writes, self.last = self.writes + 1, now
                else:
                    self.errors.append(answer.body.decode())
            except Lost as lost:
                self.errors.append(str(lost))
            await trio.sleep(PAUSE_SECONDS)


async def measure(folder: Path, kind: str, rows: int, replicas: int) -> Gap:
    """Change the owner once, in a cluster of its own."""
    with log_nodes(3, folder) as log:
        settings = {"QSERVER_REPLICAS": str(replicas), "QSERVER_LEASE_S": str(LEASE_SECONDS)}
        cluster = Cluster(folder, log, 1, settings)
        async with cluster.running():
            [name] = await cluster.make_databases(1)
            family = cluster.ids[name]
            placement = await cluster.placement()
            owner = placement.owner_of(family)
            [after] = placement.followers_of(family, 1)
            stays = cluster.nodes[after]
            await _fill(cluster, name, rows)
            if replicas:
                await _until_followed(stays, name)
            writer = _Writer(stays.connected(KEY), name)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(writer.run)
                await trio.sleep(CALM_SECONDS)
                writer.longest, writer.errors, writer.writes = 0.0, [], 0
                before = writer.writes
                await _change(cluster, kind, cluster.nodes[owner], stays, family)
                await _until_owned_by(cluster, family, after)
                await until(lambda: writer.writes >= before + 50, "no more writes")
                await trio.sleep(CALM_SECONDS)
                nursery.cancel_scope.cancel()
            found = await stays.connected(KEY).query(
                "SELECT count(*), sum(n) FROM big", database=name
            )
            [[count, total]] = found.rows
            assert count == rows, f"{count} rows of {rows}"
            assert int(total) >= writer.writes, "a write was lost"
            return Gap(
                kind, replicas, rows, writer.longest, writer.writes, writer.errors, cluster.bugs
            )


async def _fill(cluster: Cluster, name: str, rows: int) -> None:
    async with cluster.connected() as wire:
        made = "CREATE TABLE big (id integer PRIMARY KEY, n bigint NOT NULL, note text NOT NULL)"
        assert (await wire.query(made, database=name)).is_good
        for first in range(1, rows + 1, ROWS_AT_ONCE):
            last = min(rows, first + ROWS_AT_ONCE - 1)
            filled = await wire.query(
                "INSERT INTO big SELECT g, 0, repeat('x', 40) || g FROM generate_series($1::int,"
                " $2::int) AS s(g)",
                [first, last],
                database=name,
                timeout_ms=30_000,
            )
            assert filled.is_good, filled.body


async def _until_followed(node: NodeMachine, name: str) -> None:
    """Wait until a node answers a strong read with what it follows."""
    async with node.connected(KEY) as wire:
        with trio.fail_after(120):
            while True:
                answer = await wire.query("SELECT count(*) FROM big", database=name)
                if answer.is_good and "x-qserver-owner" not in answer.headers:
                    return
                await trio.sleep(0.2)


async def _change(
    cluster: Cluster, kind: str, owner: NodeMachine, after: NodeMachine, family: str
) -> None:
    match kind:
        case "moved":
            await cluster.move(family, after.name)
        case "stopped":
            await owner.stop()
        case "killed":
            owner.kill()


async def _until_owned_by(cluster: Cluster, family: str, number: int) -> None:
    with trio.fail_after(60):
        while True:
            if (await cluster.placement()).owner_of(family) == number:
                return
            await trio.sleep(0.1)


def gaps(rows: int, kinds: tuple[str, ...]) -> Iterator[Gap]:
    for kind in kinds:
        for replicas in (0, 1):
            folder = Path(tempfile.mkdtemp(prefix="qserver-gaps-"))
            yield trio.run(measure, folder, kind, rows, replicas)
            shutil.rmtree(folder)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.nodes.gaps", description=__doc__)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--kind", action="append", choices=KINDS)
    options = parser.parse_args()
    print(f"lease: {LEASE_SECONDS} s", flush=True)
    for gap in gaps(options.rows, tuple(options.kind or KINDS)):
        print(gap, flush=True)
        for error in dict.fromkeys(gap.errors[:5] + gap.bugs):
            print(f"    {error}", flush=True)


if __name__ == "__main__":
    main()
