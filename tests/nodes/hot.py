"""Small writes and strong reads of one database: how long it was away, and whether a read was old.

    writer ──► nodes without a fault     a transfer and a count; each answer raises the floor
    reader ──► any node                  must have the floor of when it began, or more

All clients run in one loop: so it is known which answer had come before which request left. The
count grows with each write, so one version has one count, and no transfer changes the sum.
"""

from __future__ import annotations

from math import inf
from random import Random
from typing import Final

import trio

from tests.nodes.cluster import AnyWire, Cluster, NodeMachine
from tests.processes.clients import settled
from tests.processes.floor import Floor
from tests.processes.ledger import Ledger
from tests.processes.machine import KEY
from tests.processes.wire import Lost, Wire, posted, query

SETUP: Final = (
    "CREATE TABLE hot (id integer PRIMARY KEY, n bigint NOT NULL)",
    "INSERT INTO hot VALUES (1, 0), (2, 1000), (3, 1000)",
    "CREATE TABLE sent (number bigint NOT NULL)",
)
READ: Final = "SELECT id, n FROM hot ORDER BY id"
COUNT: Final = "UPDATE hot SET n = n + 1 WHERE id = 1"
GIVE: Final = "UPDATE hot SET n = n - $1::bigint WHERE id = 2"
TAKE: Final = "UPDATE hot SET n = n + $1::bigint WHERE id = 3"
SEND: Final = "INSERT INTO sent VALUES ($1)"
TWICE: Final = "SELECT number, count(*) AS n FROM sent GROUP BY number HAVING count(*) > 1"
ANSWERS_OF_CONNECTION: Final = 20
"""Then another one is made, to any node."""
PAUSE_SECONDS: Final = (0.01, 0.08)
LOST_SECONDS: Final = 0.05
"""Before the next try: proxies run in the same loop, and need it when all nodes are away."""
JUST_NOW_SECONDS: Final = 0.3


class LivingWire(AnyWire):
    """A connection to a node without a fault."""

    def chosen(self) -> list[int]:
        every = range(self._cluster.count)
        return [each for each in every if each not in self._cluster.avoided] or list(every)

    @property
    def is_avoided(self) -> bool:
        return self.number >= 0 and self.number not in self.chosen()


class Hot:
    def __init__(self, cluster: Cluster, database: str, ledger: Ledger, chance: Random) -> None:
        self._cluster = cluster
        self.database = database
        self._ledger = ledger
        self._chance = chance
        self._floor = Floor()
        self._counted = 0
        self._asking: trio.CancelScope | None = None
        self._wire = LivingWire(cluster, KEY)
        self.reads = self.writes = self.lost = 0
        self._last = trio.current_time()
        self._since = self._last
        self.trouble = ""
        """What came of the last write that did not succeed."""
        self.longest = 0.0
        """Seconds without an answer to a write, at most, since `look_from_now_on`."""
        self.patience_seconds = inf
        """Then a write is given up, and another one is sent."""
        self._begun = self._wanted = 0
        self._enough = trio.Event()

    # --- how long it is away ---

    def look_from_now_on(self) -> None:
        """Measure anew; a request that waits at a node with a fault is given up."""
        self._since = trio.current_time()
        self.longest = 0.0
        if self._wire.is_avoided and self._asking is not None:
            self._asking.cancel()

    async def answers(self) -> None:
        """Wait until a request that begins now, or later, is answered."""
        self._wanted = self._begun + 1
        self._enough = trio.Event()
        await self._enough.wait()

    @property
    def is_away(self) -> bool:
        return not self._enough.is_set()

    def _succeeded(self, begun: int) -> None:
        now = trio.current_time()
        self.longest = max(self.longest, now - max(self._last, self._since))
        self._last = now
        if begun >= self._wanted:
            self._enough.set()

    # --- requests ---

    async def write(self) -> None:
        async with self._wire as wire:
            while not self._ledger.is_over:
                for _ in range(ANSWERS_OF_CONNECTION):
                    if wire.is_avoided or not await self._write_once(wire):
                        break
                    await trio.sleep(self._chance.uniform(*PAUSE_SECONDS))
                wire.close()

    async def _write_once(self, wire: LivingWire) -> bool:
        amount = self._chance.randint(1, 9)
        self._begun += 1
        begun = self._begun
        values = {GIVE: amount, TAKE: amount, SEND: begun}
        statements = [{"sql": COUNT}, *({"sql": sql, "params": [n]} for sql, n in values.items())]
        with trio.move_on_after(self.patience_seconds) as self._asking:
            try:
                body = {"statements": statements, "database": self.database}
                answer = await wire.send(posted("/v1/transaction", body))
            except Lost as lost:
                self._fail(f"{lost} at {wire.host}")
                await trio.sleep(LOST_SECONDS)
                return False
            if answer.status == 500:
                self._problem(f"a write was answered with {answer.body!r}")
            if answer.is_good:
                self.writes += 1
                self._counted += 1
                self._floor.raise_to(answer.json["version"])
                self._succeeded(begun)
            else:
                self._fail(f"{answer.body!r} at {wire.host}")
                await trio.sleep(LOST_SECONDS)
            return True
        self._fail("given up")
        return False

    def _fail(self, trouble: str) -> None:
        self.lost += 1
        self.trouble = trouble

    async def read(self) -> None:
        while not self._ledger.is_over:
            async with self._cluster.connected() as wire:
                for _ in range(ANSWERS_OF_CONNECTION):
                    if not await self.read_once(wire):
                        break
                    await trio.sleep(self._chance.uniform(*PAUSE_SECONDS))

    async def read_at(self, node: NodeMachine) -> None:
        """Read at one node. What waits there is given up: so a read has always begun just now."""
        async with node.connected() as wire:
            wire.patience_seconds = JUST_NOW_SECONDS
            while True:
                await self.read_once(wire)

    async def read_once(self, wire: Wire) -> bool:
        """Return whether the connection can be used again."""
        floor, counted = self._floor.version, self._counted
        try:
            answer = await wire.send(query(READ, database=self.database))
        except Lost:
            self.lost += 1
            await trio.sleep(LOST_SECONDS)
            return False
        if answer.status == 500:
            self._problem(f"a read was answered with {answer.body!r}")
        if not answer.is_good:
            self.lost += 1
            await trio.sleep(LOST_SECONDS)
            return True
        self.reads += 1
        self._judge(wire, answer.json["version"], answer.rows, floor, counted)
        return True

    def _judge(
        self, wire: Wire, version: int, rows: list[list[int]], floor: int, counted: int
    ) -> None:
        where = f"at {wire.host}"
        if len(rows) != 3:
            self._problem(f"a read {where} has {rows}")
            return
        (_, count), (_, given), (_, taken) = rows
        for wrong in self._floor.judge(version, count, floor):
            self._problem(f"a read {where} {wrong}")
        if count < counted:
            self._problem(f"a read {where} has {count} writes, and {counted} were answered before")
        if given + taken != 2000:
            self._problem(f"a read {where} sees half a transfer: {rows}")

    async def compare(self) -> None:
        """Nobody writes any more: all that was answered is there."""
        async with self._cluster.connected() as wire:
            before = self.reads
            while self.reads == before:
                await self.read_once(wire)
            twice = (await settled(wire, query(TWICE, database=self.database))).rows
        if twice:
            self._problem(f"writes were applied more than once: {twice}")

    def _problem(self, what: str) -> None:
        self._ledger.problems.append(f"{self.database}: {what}")
