"""Several nodes on the nodes of one log, each a process; every way between them can be cut.

    client ──► node 127.0.0.11 ──► proxy ──► log node n1
                   │           └─► proxy ──► log node n2
                   └─► proxy 127.0.0.1 ──► node 127.0.0.12

A node listens for others on the port of QSERVER_LINK at its own loopback address. What QSERVER_LINK
names is a proxy on the same port of another address.
"""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import Final

import trio

from qserver.control.nodes.lease import Lease
from qserver.control.nodes.membership import Membership
from qserver.control.nodes.placement import Placement
from qserver.control.nodes.values import (
    PatientValues,
    change_placement,
    moved_by_hand,
    number_named,
)
from qserver.errors import InvalidRequest
from tests.nodes.proxies import Address, Cuts, Proxy
from tests.processes.machine import KEY, PAUSE_SECONDS, Machine, port_of_no_client
from tests.processes.wire import Answer, JsonObject, Lost, Wire
from tests.replication.campaign import settings_of
from tests.replication.nodes import Nodes

NODES: Final = 3
LEASE_SECONDS: Final = 4
LEASE_SECONDS_DEFAULT: Final = 12
CLUSTER_KEY: Final = "key-of-the-cluster-of-tests"
PATIENCE_SECONDS: Final = (3.0, 20.0)
"""Then a client leaves a node that does not answer, and asks another."""
CONNECT_SECONDS_MAX: Final = 2.0


class NodeWire(Wire):
    """A connection to one node. Who hears nothing for long asks again."""

    def __init__(self, node: NodeMachine, key: str) -> None:
        super().__init__(node.port, key)
        self.host = node.host


class AnyWire(Wire):
    """A connection to any node, and the next one perhaps to another."""

    def __init__(self, cluster: Cluster, key: str) -> None:
        super().__init__(0, key)
        self._cluster = cluster
        self.number = -1
        """Of the node that it was made to."""

    def close(self) -> None:
        super().close()
        self.number = -1

    def chosen(self) -> list[int]:
        """The numbers of the nodes that may be asked."""
        return [node.number for node in self._cluster.nodes]

    async def _connect(self) -> trio.SocketStream:
        chance = self._cluster.chance
        self.number = chance.choice(self.chosen())
        node = self._cluster.nodes[self.number]
        self.host, self._port = node.host, node.port
        self.patience_seconds = chance.uniform(*PATIENCE_SECONDS)
        with trio.move_on_after(CONNECT_SECONDS_MAX):
            return await super()._connect()
        raise OSError("it does not answer")

    async def receive(self) -> Answer:
        try:
            return await super().receive()
        except Lost as lost:
            raise Lost(lost.is_half) from None  # others may answer


class NodeMachine(Machine):
    def __init__(
        self, folder: Path, number: int, settings: Mapping[str, str], prepare: Prepare
    ) -> None:
        folder.mkdir(exist_ok=True)
        super().__init__(folder, settings, processes=1, prepare=prepare)
        self.number = number
        self.name = f"q{number + 1}"
        self.host = f"127.0.0.{11 + number}"
        self.link_port = port_of_no_client()
        self.settings |= {
            "QSERVER_NODE": self.name,
            "QSERVER_HOST": self.host,
            "QSERVER_LINK": f"{self.host}:{self.link_port}",
            "QSERVER_NODE_URL": self.url,
            "QSERVER_TAKE_OVER": "0",
            "QSERVER_CLUSTER_KEY": CLUSTER_KEY,
        }

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def lives(self) -> bool:
        return self._supervisor is not None and self._supervisor.poll() is None

    def connected(self, key: str = KEY) -> Wire:
        return NodeWire(self, key)

    def send(self, order: signal.Signals) -> None:
        """Send a signal to it, and to what it has started."""
        for process in [*self.members(), self.supervisor.pid]:
            with suppress(ProcessLookupError):
                os.kill(process, order)


Prepare = Callable[[], None] | None


async def start_together(nodes: Sequence[NodeMachine]) -> None:
    for node in nodes:
        node.launch()
    for node in nodes:
        await node.wait_until_ready()


class Cluster:
    """`running` is a cluster with all its nodes; it ends with the block."""

    def __init__(
        self,
        folder: Path,
        log: Nodes,
        seed: int,
        settings: Mapping[str, str] | None = None,
        *,
        prepare: Prepare = None,
        count: int = NODES,
        can_be_cut: bool = True,
    ) -> None:
        """Without proxies, if no way is to be cut; then it also runs from one loop to the next."""
        self.folder = folder
        self.log = log
        self.chance = Random(f"clients {seed}")
        self.cuts = Cuts()
        self.count = count
        self._proxies: list[Proxy] = []
        lease = {"QSERVER_LEASE_S": str(LEASE_SECONDS)}
        self.nodes = [
            NodeMachine(folder / f"q{number + 1}", number, {**lease, **(settings or {})}, prepare)
            for number in range(count)
        ]
        for node in self.nodes:
            node.settings = {**settings_of(log, node.name), **node.settings}
            if can_be_cut:
                self._put_proxies(node)
        self.avoided: set[int] = set()
        """Nodes that clients who want an answer do not ask."""
        self.ids: dict[str, str] = {}
        """Databases by name."""

    def _put_proxies(self, node: NodeMachine) -> None:
        """Between the node and the log, and between the others and it."""
        here = Address("127.0.0.1", node.link_port)
        there = Address(node.host, node.link_port)
        self._proxies.append(Proxy(self.cuts, here, there, node.number))
        addresses = []
        for name, process in self.log.processes.items():
            listen = Address("127.0.0.1", port_of_no_client())
            target = Address(process.server.host, process.server.port)
            self._proxies.append(Proxy(self.cuts, listen, target, name, node.number))
            addresses.append(f"{listen.host}:{listen.port}")
        node.settings["QSERVER_LOG"] = f"nats://{','.join(addresses)}"
        node.settings["QSERVER_LINK"] = f"{here.host}:{here.port}"

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with trio.open_nursery() as nursery:
            try:
                for proxy in self._proxies:
                    await nursery.start(proxy.run)
                await self.start()
                yield
            finally:
                self.kill()
                nursery.cancel_scope.cancel()

    async def start(self) -> None:
        for node in self.nodes:  # one after the other: so their numbers are known
            await node.start()

    def kill(self) -> None:
        for node in self.nodes:
            node.kill()

    # --- cuts ---

    def cut_from_log(self, number: int, *, silent: bool) -> None:
        for name in self.log.processes:
            self.cuts.cut(number, name, silent=silent)

    def cut_from_peers(self, number: int, *, silent: bool) -> None:
        for other in range(self.count):
            if other != number:
                self.cuts.cut(number, other, silent=silent)
                self.cuts.cut(other, number, silent=silent)

    def mute(self, number: int) -> None:
        """Let no other node hear what a node answers."""
        for other in range(self.count):
            if other != number:
                self.cuts.mute(number, other)

    # --- how it is talked to ---

    def connected(self, key: str = KEY) -> Wire:
        return AnyWire(self, key)

    async def made(self, path: str, **body: object) -> JsonObject:
        async with self.connected() as wire:
            return await wire.made(path, **body)

    async def make_databases(self, count: int, prefix: str = "d") -> list[str]:
        for number in range(count):
            record = await self._made_database(f"{prefix}{number}")
            self.ids[record["name"]] = record["id"]
        return list(self.ids)

    async def _made_database(self, name: str) -> JsonObject:
        """Make a database. One whose answer did not come in time may be there, too."""
        while True:
            try:
                async with self.connected() as wire:
                    answer = await wire.ask("POST", "/v1/databases", name=name)
                    if answer.status == 409:
                        answer = await wire.ask("GET", f"/v1/databases/{name}")
            except (Lost, OSError):
                continue
            if answer.status != 503:
                assert answer.status in (200, 201), answer.body
                return answer.json
            await trio.sleep(PAUSE_SECONDS)

    @property
    def bugs(self) -> list[str]:
        return [f"{node.name}: {each}" for node in self.nodes for each in node.bugs]

    # --- what the log says ---

    @asynccontextmanager
    async def membership(self) -> AsyncIterator[Membership]:
        """The placement, to look at and to change, as a node has it."""
        async with self.log.opened() as values:
            membership = Membership(
                values,
                lambda: Lease(trio.current_time, LEASE_SECONDS),
                lambda: "",
                lambda text, error: None,
            )
            await membership.look()
            yield membership

    async def move(self, family: str, name: str) -> None:
        """Move a family as `qserver cluster move` does; a node that does not serve gets none."""
        async with self.membership() as membership, self.log.opened() as nodes:
            seen = [each.facts for each in membership.seen.values()]
            number = number_named(name, {each.name: each.number for each in seen})
            with suppress(InvalidRequest):
                await change_placement(
                    PatientValues(nodes, LEASE_SECONDS),
                    lambda was: moved_by_hand(was, family, number, name),
                )

    async def placement(self) -> Placement:
        async with self.membership() as membership:
            return membership.placement

    async def owners(self) -> dict[str, int]:
        """The numbers of the nodes that own the databases, by name."""
        placement = await self.placement()
        return {name: placement.owner_of(family) for name, family in self.ids.items()}

    async def until_renewed(self, node: NodeMachine) -> None:
        """Return when a node has just renewed its lease, or has ended."""
        async with self.membership() as membership:
            before = membership.seen[node.number].revision
            while membership.seen[node.number].revision == before and node.lives:
                await trio.sleep(0.02)
                await membership.look()

    async def until_all_serve(self) -> None:
        """Return when all nodes that live own databases."""
        async with self.membership() as membership:
            while True:
                lives = {each.number for each in self.nodes if each.lives}
                if set(membership.placement.serving) == lives:
                    return
                await trio.sleep(0.05)
                await membership.look()

    def __repr__(self) -> str:
        return f"a cluster of {self.count} nodes in {self.folder}"
