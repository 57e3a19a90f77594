"""Clients that wander: feeds and live queries that go on at other nodes, and keys that are revoked.

wander       the feed of a database; after a while, or an error, on from there at any node
watch        a live query, likewise
Revoker      a key is made, used through all nodes and revoked; from the answer on all refuse
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

import trio

from qserver.client import TrioClient
from qserver.errors import QserverError
from tests.nodes.cluster import Cluster
from tests.processes.clients import SUM
from tests.processes.ledger import Followed, Ledger
from tests.processes.machine import KEY
from tests.processes.revoking import Revocations

PAUSE_SECONDS: Final = 0.05
STAY_SECONDS: Final = (0.5, 8.0)
"""How long a reader stays with a node, and has patience with it."""


class Feed:
    """How often a feed went on at another node is counted in `moves`."""

    def __init__(self, cluster: Cluster, followed: Followed, chance: Random) -> None:
        self._cluster = cluster
        self.followed = followed
        self._chance = chance
        self.moves = 0

    async def wander(self) -> None:
        while True:
            node = self._chance.choice(self._cluster.nodes)
            with trio.move_on_after(self._chance.uniform(*STAY_SECONDS)):
                try:
                    await self._follow(node.url)
                except QserverError:
                    await trio.sleep(PAUSE_SECONDS)
            self.moves += 1

    async def _follow(self, url: str) -> None:
        followed = self.followed
        async with TrioClient(url, KEY) as client:
            async with client.changes(followed.version, ["entry"], followed.database) as feed:
                async for version in feed:
                    rows = [each for each in version.changes if each["op"] != "schema"]
                    followed.take(version.version, [each["after"]["number"] for each in rows])


async def watch(
    cluster: Cluster, database: str, seen: dict[str, list[Any]], chance: Random
) -> None:
    while True:
        node = chance.choice(cluster.nodes)
        with trio.move_on_after(chance.uniform(*STAY_SECONDS)):
            try:
                async with (
                    TrioClient(node.url, KEY) as client,
                    client.live(SUM, database=database) as live,
                ):
                    seen[database] = [list(each) for each in live.rows]
                    async for _ in live:
                        seen[database] = [list(each) for each in live.rows]
            except QserverError:
                await trio.sleep(PAUSE_SECONDS)


class Revoker(Revocations):
    """Rounds through all nodes, also those with a fault: they are asked until they answer."""

    def __init__(self, cluster: Cluster, seed: int, ledger: Ledger) -> None:
        super().__init__(cluster, seed)  # type: ignore[arg-type]
        self._cluster = cluster
        self._ledger = ledger
        self.rounds = 0

    async def revoke(self) -> None:
        nodes = self._cluster.nodes
        self._homes = {node.number: f"d{node.number}" for node in nodes}
        self._resting = {node.number: node.connected() for node in nodes}
        async with self._cluster.connected() as self._wire:
            while not self._ledger.is_over:
                await self._round()
                self.rounds += 1
                self._ledger.problems += self.report.problems
                self.report.problems.clear()
        for wire in self._resting.values():
            wire.close()
