"""The faults of a cluster, and how long each database was away because of them.

kill            SIGKILL to a node; it starts again when others have its databases
kill, soon      … and starts again at once
machine         a node is cut off from all and killed: nobody is told
stop            SIGSTOP for longer than the lease, then SIGCONT
stop, short     … for less
term            SIGTERM; it starts again
cut log         a node reaches no log node, for longer than the lease
cut peers       a node and the others do not reach each other
cut both
mute            others do not hear what a node answers: it may have done what it was asked for
log kill        SIGKILL to a log node; it starts again
log stop        SIGSTOP to a log node for a while
move            some databases, and now and then `control`, get another owner
move, cut       … those of a node that is cut off meanwhile, for less than the lease
move, stop      … those of a node that stands still, for less than the lease
two             SIGKILL to two nodes
all             SIGKILL to all nodes
"""

from __future__ import annotations

import signal
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from math import inf
from random import Random
from typing import Final

import trio

from tests.nodes.cluster import LEASE_SECONDS, Cluster, NodeMachine, start_together
from tests.nodes.hot import JUST_NOW_SECONDS, Hot
from tests.processes.ledger import Ledger
from tests.processes.wire import Lost, query

KINDS: Final[Mapping[str, int]] = {
    "kill": 16,
    "kill, soon": 10,
    "machine": 8,
    "stop": 12,
    "stop, short": 8,
    "term": 12,
    "cut log": 10,
    "cut peers": 8,
    "cut both": 8,
    "mute": 6,
    "log kill": 10,
    "log stop": 8,
    "move": 14,
    "move, cut": 6,
    "move, stop": 6,
    "two": 4,
    "all": 4,
}
AFTER_LEASE: Final = f"{LEASE_SECONDS * 1.1:.1f} + 1.5 s"
EXPECTED: Final[Mapping[str, str]] = {
    "kill": AFTER_LEASE,
    "kill, soon": f"a start, or {AFTER_LEASE}",
    "machine": f"{AFTER_LEASE}, or 5 s until links are cut",
    "stop": AFTER_LEASE,
    "stop, short": "as long as it stood",
    "term": "some seconds",
    "cut log": AFTER_LEASE,
    "cut peers": "as long as the cut",
    "cut both": AFTER_LEASE,
    "mute": "as long as the cut",
    "log kill": "0.2 s, or 4 to 11 s if it led",
    "log stop": "0.2 s, or 4 to 11 s if it led",
    "move": "some seconds",
    "move, cut": f"{0.7 * LEASE_SECONDS:.1f} s, or {AFTER_LEASE}",
    "move, stop": f"{0.7 * LEASE_SECONDS:.1f} s, or {AFTER_LEASE}",
    "two": AFTER_LEASE,
    "all": "a start",
}
BACK: Final = "some seconds"
SERVED_SECONDS_MAX: Final = 90.0
"""Then it is a problem."""


class Faults:
    def __init__(
        self, cluster: Cluster, hot: Sequence[Hot], ledger: Ledger, chance: Random
    ) -> None:
        self._cluster = cluster
        self._hot = hot
        self._ledger = ledger
        self._chance = chance
        self.gaps: defaultdict[str, list[float]] = defaultdict(list)
        """Seconds for which each database was away, by fault."""

    async def cause(self, kind: str, number: int) -> None:
        await trio.sleep(self._chance.uniform(0.0, 1.0))
        node = self._cluster.nodes[number]
        word, _, rest = kind.partition(" ")
        match word.strip(","):
            case "cut" | "mute":
                await self._cut(kind, node, rest)
            case "log":
                await self._log(kind, number)
            case "kill" if rest:
                await self._kill_soon(kind, [node])
            case "kill" | "machine":
                await self._kill(kind, [node])
            case "two":
                await self._kill(kind, [each for each in self._cluster.nodes if each is not node])
            case "all":
                await self._kill_soon(kind, self._cluster.nodes)
            case "stop":
                await self._stop(kind, node)
            case "term":
                await self._end(kind, node)
            case "move" if rest:
                await self._move_away(kind, node)
            case "move":
                await self._move(kind)
        await self.until_served(kind)

    # --- kinds ---

    async def _kill(self, kind: str, nodes: Sequence[NodeMachine]) -> None:
        cluster = self._cluster
        cluster.avoided.update(node.number for node in nodes)
        async with self._window(kind):
            for node in nodes:
                if kind == "machine":
                    cluster.cut_from_peers(node.number, silent=True)
                    cluster.cut_from_log(node.number, silent=True)
                node.kill()
        async with self._window(f"{kind}, back"):
            cluster.cuts.mend_all()
            await self._start(nodes)

    async def _kill_soon(self, kind: str, nodes: Sequence[NodeMachine]) -> None:
        self._cluster.avoided.update(node.number for node in nodes)
        async with self._window(kind):
            for node in nodes:
                node.kill()
            await trio.sleep(self._chance.uniform(0.0, 1.0))
            await self._start(nodes)

    async def _start(self, nodes: Sequence[NodeMachine]) -> None:
        await start_together(nodes)
        await self._all_are_there()

    async def _all_are_there(self) -> None:
        with trio.move_on_after(SERVED_SECONDS_MAX) as scope:
            await self._cluster.until_all_serve()
        if scope.cancelled_caught:
            serving = (await self._cluster.placement()).serving
            self._problem(f"only the nodes {serving} have joined again")
        self._cluster.avoided.clear()

    async def _stop(self, kind: str, node: NodeMachine) -> None:
        lease = LEASE_SECONDS
        self._cluster.avoided.add(node.number)
        is_short = kind.endswith("short")
        most = (0.2 * lease, 0.6 * lease) if is_short else (1.3 * lease, 2.5 * lease)
        async with self._window(kind):
            node.send(signal.SIGSTOP)
            await trio.sleep(self._chance.uniform(*most))
            node.send(signal.SIGCONT)
            await self._all_are_there()

    async def _end(self, kind: str, node: NodeMachine) -> None:
        self._cluster.avoided.add(node.number)
        halves = self._ledger.half_answers
        async with self._window(kind):
            node.send(signal.SIGTERM)
            if code := await node.ended():
                self._ledger.problems.append(f"{node.name} drained, and ended with {code}")
            if self._ledger.half_answers > halves:
                self._ledger.problems.append(f"an answer was cut off by: {kind}")
        async with self._window(f"{kind}, back"):
            await self._start([node])

    async def _cut(self, kind: str, node: NodeMachine, what: str) -> None:
        cluster = self._cluster
        cluster.avoided.add(node.number)
        silent = self._chance.random() < 0.7
        lasts = what in ("log", "both")  # others get its databases
        async with self._window(kind, None if lasts else cluster.cuts.mend_all):
            if kind == "mute":
                cluster.mute(node.number)
            if what in ("log", "both"):
                cluster.cut_from_log(node.number, silent=silent)
            if what in ("peers", "both"):
                cluster.cut_from_peers(node.number, silent=silent)
            await trio.sleep(self._chance.uniform(1.3, 2.5) * LEASE_SECONDS)
        async with self._window(f"{kind}, back"):
            cluster.cuts.mend_all()
            await self._all_are_there()

    async def _log(self, kind: str, number: int) -> None:
        process = list(self._cluster.log.processes.values())[number]
        async with self._window(kind):
            process.stop() if kind.endswith("stop") else process.kill()
            await trio.sleep(self._chance.uniform(0.5, 6.0))
        async with self._window(f"{kind}, back"):
            if kind.endswith("stop"):
                process.continue_()
            else:
                await trio.to_thread.run_sync(process.start)

    async def _move(self, kind: str) -> None:
        cluster, chance = self._cluster, self._chance
        families = chance.sample(sorted(cluster.ids.values()), chance.randint(1, 4))
        if chance.random() < 0.3:
            families.append("control")
        async with self._window(kind):
            for family in families:
                await cluster.move(family, chance.choice(cluster.nodes).name)

    async def _move_away(self, kind: str, node: NodeMachine) -> None:
        """Move what a node has while it cannot be told, and its lease holds.

        Whoever opened it now would be one of two: reads at the node show that.
        """
        cluster = self._cluster
        owners = await cluster.owners()
        hot = [each for each in self._hot if owners[each.database] == node.number][:4]
        others = [each for each in cluster.nodes if each is not node]
        cluster.avoided.add(node.number)
        await cluster.until_renewed(node)
        async with self._window(kind), trio.open_nursery() as nursery:
            if kind.endswith("cut"):
                cluster.cut_from_log(node.number, silent=True)
                cluster.cut_from_peers(node.number, silent=True)
            else:
                node.send(signal.SIGSTOP)
            for each in hot:
                each.patience_seconds = JUST_NOW_SECONDS  # what waits at the node says nothing
                nursery.start_soon(each.read_at, node)
                family = cluster.ids[each.database]
                await cluster.move(family, self._chance.choice(others).name)
            with trio.move_on_after(0.7 * LEASE_SECONDS):
                for each in hot:
                    await each.answers()
                await trio.sleep(0.3)  # there are two of them
            node.send(signal.SIGCONT)
            await trio.sleep(0.3)
            cluster.cuts.mend_all()
            nursery.cancel_scope.cancel()
            for each in hot:
                each.patience_seconds = inf
        await self._all_are_there()

    # --- what follows ---

    @asynccontextmanager
    async def _window(
        self, kind: str, before: Callable[[], None] | None = None
    ) -> AsyncIterator[None]:
        """Measure from here until each database answers after the block."""
        for hot in self._hot:
            hot.look_from_now_on()
        yield
        if before is not None:
            before()
        with trio.move_on_after(SERVED_SECONDS_MAX) as scope:
            async with trio.open_nursery() as nursery:
                for hot in self._hot:
                    nursery.start_soon(hot.answers)
        if scope.cancelled_caught:
            away = {hot.database: hot.trouble for hot in self._hot if hot.is_away}
            self._problem(f"away {SERVED_SECONDS_MAX:g} s after {kind}: {away}")
        self.gaps[kind] += [hot.longest for hot in self._hot]

    async def until_served(self, kind: str) -> None:
        """Wait until each database is served through each node."""
        missing: set[str] = set()

        async def ask(node: NodeMachine, name: str) -> None:
            missing.add(f"{name} at {node.name}")
            async with node.connected() as wire:
                while True:
                    try:
                        answer = await wire.send(query("SELECT 1 AS one", database=name))
                    except Lost:
                        await trio.sleep(0.05)
                        continue
                    if answer.is_good:
                        missing.discard(f"{name} at {node.name}")
                        return
                    if not answer.is_unknown:
                        self._problem(f"{name} answers {answer.body!r} at {node.name}")
                        return
                    await trio.sleep(0.05)

        with trio.move_on_after(SERVED_SECONDS_MAX):
            async with trio.open_nursery() as nursery:
                for node in self._cluster.nodes:
                    for name in self._cluster.ids:
                        nursery.start_soon(ask, node, name)
            return
        self._problem(f"not served after {kind}: {sorted(missing)}")

    def _problem(self, what: str) -> None:
        self._ledger.problems.append(what)
