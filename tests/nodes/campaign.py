"""Three nodes on three log nodes under load, one fault after the other, and what became of it all.

    writers      with and without Idempotency-Keys, in bulk, in open transactions, pipelined
    branchers    make branches, write and delete them
    hot          transfers and strong reads of each database, which measure how long it is away
    readers      feeds and live queries that wander from node to node
    revoker      keys, sessions and names that all nodes must refuse from an answer on

At the end all is compared, and once more at a node that had nothing and serves alone.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

import trio

from tests.nodes.cluster import LEASE_SECONDS, LEASE_SECONDS_DEFAULT, NODES, Cluster, Prepare
from tests.nodes.faults import BACK, EXPECTED, KINDS, Faults
from tests.nodes.hot import SETUP as HOT_SETUP
from tests.nodes.hot import Hot
from tests.nodes.readers import Feed, Revoker, watch
from tests.processes.clients import Writer, settled
from tests.processes.ledger import SETUP, Followed, Ledger
from tests.processes.under_load import DATABASES, FaultsReport, UnderLoad
from tests.processes.wire import posted
from tests.replication.nodes import Nodes

WRITERS: Final = 4
FEEDS: Final = 4
LIVE: Final = 2


@dataclass(slots=True)
class Report(FaultsReport):
    gaps: Mapping[str, list[float]] = field(default_factory=dict)
    reads: int = 0
    writes: int = 0
    lost: int = 0
    feeds_moved: int = 0
    refused: int = 0

    def lines(self) -> Iterator[str]:
        ledger = self.ledger
        yield f"faults: {self.total}; lease: {LEASE_SECONDS} s (default {LEASE_SECONDS_DEFAULT} s)"
        yield (
            f"acknowledged writes: {ledger.acknowledged:,}, transfers: {self.writes:,}; strong"
            f" reads: {self.reads:,}; branches: {ledger.branches}; requests without an answer"
            f" among these: {self.lost:,}"
        )
        yield self.repeated()
        yield (
            f"versions followed: {self.versions_followed:,}; feeds that went on elsewhere:"
            f" {self.feeds_moved:,}; refused after it was revoked: {self.refused:,}"
        )
        yield f"{'a database was away, in seconds':32} times  median   worst  expected"
        for kind, gaps in self.gaps.items():
            yield (
                f"  {kind:30} {self.faults[kind] or '':>5} {statistics.median(gaps):7.2f}"
                f" {max(gaps):7.2f}  {EXPECTED.get(kind, BACK)}"
            )


class NodesCampaign(UnderLoad[Report]):
    def __init__(
        self,
        folder: Path,
        seed: int,
        faults: int,
        log: Nodes,
        tell: Callable[[str], None] = lambda line: None,
        *,
        kinds: Mapping[str, int] = KINDS,
        prepare: Prepare = None,
    ) -> None:
        self._cluster = Cluster(folder, log, seed, prepare=prepare)
        super().__init__(self._cluster, Random(seed), Report(seed, Ledger()))
        self._kinds = kinds
        self._planned = self._plan(faults)
        self._tell = tell
        self._hot: list[Hot] = []
        self._feeds: list[Feed] = []
        self._revoker: Revoker

    def _plan(self, count: int) -> list[tuple[str, int]]:
        """Each kind once, in a drawn order; then kinds are drawn by lot."""
        first = self._chance.sample(list(self._kinds), len(self._kinds))
        weights = list(self._kinds.values())
        later = self._chance.choices(list(self._kinds), weights, k=max(0, count - len(first)))
        return [(kind, self._chance.randrange(NODES)) for kind in [*first, *later][:count]]

    async def run(self) -> Report:
        async with self._cluster.running():
            await self._set_up()
            async with trio.open_nursery() as readers:
                self._begin_reading(readers)
                async with trio.open_nursery() as nursery:
                    self._begin_writing(nursery)
                    await self._cause_faults()
                    self._ledger.is_over = True
                    if self._problems():
                        nursery.cancel_scope.cancel()  # what is away may never answer
                if not self._problems():
                    await self._compare()
                    await self._compare_readers(feed.followed for feed in self._feeds)
                self._count()
                readers.cancel_scope.cancel()
            if not self._problems():
                await self._finish()
            self._ledger.problems += [f"a server said: {each}" for each in self._cluster.bugs]
        self._problems()
        return self.report

    async def _set_up(self) -> None:
        cluster = self._cluster
        for name in await cluster.make_databases(DATABASES):
            async with cluster.connected() as wire:
                body = {"statements": [*SETUP, *HOT_SETUP], "database": name}
                made = await settled(wire, posted("/v1/transaction", body))
                assert made.is_good, made.body
            self._hot.append(Hot(cluster, name, self._ledger, self._chance_of_its_own()))
        for name in list(cluster.ids)[:FEEDS]:
            self._feeds.append(Feed(cluster, Followed(name, 0), self._chance_of_its_own()))

    def _begin_reading(self, nursery: trio.Nursery) -> None:
        for feed in self._feeds:
            nursery.start_soon(feed.wander)
        for name in list(self._cluster.ids)[:LIVE]:
            nursery.start_soon(watch, self._cluster, name, self._live, self._chance_of_its_own())

    def _begin_writing(self, nursery: trio.Nursery) -> None:
        cluster, ledger, every = self._cluster, self._ledger, list(self._cluster.ids)
        for number in range(WRITERS):
            writer = Writer(cluster, ledger, self._chance_of_its_own(), every, number)
            nursery.start_soon(writer.run, writer.write)
        for hot in self._hot:
            nursery.start_soon(hot.write)
            nursery.start_soon(hot.read)
        brancher = self._make_brancher(every)
        nursery.start_soon(brancher.run, brancher.branch)
        self._revoker = Revoker(cluster, self.report.seed, ledger)
        nursery.start_soon(self._revoker.revoke)

    async def _cause_faults(self) -> None:
        faults = Faults(self._cluster, self._hot, self._ledger, self._chance)
        self.report.gaps = faults.gaps
        for kind, number in self._planned:
            if self._problems():
                return
            self._tell(f"{self.report.total + 1}: {kind} {number}")
            await faults.cause(kind, number)
            self.report.faults[kind] += 1
            self._tell(f"{self.report.total} faults, {self._ledger.acknowledged:,} acknowledged")

    # --- what must be there ---

    async def _compare(self) -> None:
        await self._compare_entries(self._cluster.ids)
        for hot in self._hot:
            await hot.compare()

    def _count(self) -> None:
        self.report.reads = sum(hot.reads for hot in self._hot)
        self.report.writes = sum(hot.writes for hot in self._hot)
        self.report.lost = sum(hot.lost for hot in self._hot)
        self.report.versions_followed = sum(feed.followed.version for feed in self._feeds)
        self.report.feeds_moved = sum(feed.moves for feed in self._feeds)
        self.report.refused = self._revoker.report.tries.total()

    async def _finish(self) -> None:
        """All nodes end; one that has nothing serves everything alone."""
        for node in self._cluster.nodes:
            if code := await node.stop():
                self._ledger.problems.append(f"{node.name} drained in peace, and ended with {code}")
        alone = self._cluster.nodes[0]
        alone.data = alone.folder / "empty"
        await alone.start()
        self._cluster.nodes = [alone]
        await self._compare()
        if code := await alone.stop():
            self._ledger.problems.append(f"{alone.name} was alone, and ended with {code}")
