"""Faults of a replicated log under load, with the servers that write it.

    node           SIGKILL to one of the log's nodes; it starts again
    node stopped   SIGSTOP to one for a while
    two nodes      SIGKILL to two of three: nothing can be written until one is back
    all nodes      SIGKILL to all; they start again
    node cut       the server reaches one of the nodes no more for a while, or none of them
    new machine    SIGKILL to all processes of the server; another takes over, with an empty disk

and the faults of processes (`tests.processes.campaign`), which know nothing of the log. Between the
server and each node is a proxy; nodes always reach each other.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import trio

from qserver.replication import bases, family
from tests.nodes.proxies import Address, Cuts, Proxy
from tests.processes.campaign import FAULTS, Campaign, Report
from tests.processes.machine import endless, port_of_no_client
from tests.replication.nodes import HOST, TOKEN, Nodes

STOPPED_SECONDS: Final = 3.0
DOWN_SECONDS_MAX: Final = 1.0
CUT_SECONDS: Final = (0.5, 8.0)
SERVER: Final = "server"
"""Who calls the nodes through proxies."""

KINDS: Final = {
    **{kind: max(1, count // 6) for kind, count in FAULTS.items()},
    **dict.fromkeys(("two nodes", "all nodes"), 8),
    **dict.fromkeys(("node", "node stopped", "node cut", "new machine"), 14),
}


def with_small_bases() -> None:
    """Make bases, and purge streams, after some hundred commits and not after 64 MiB of them."""
    endless()
    bases.BASE_BYTES = 1 << 16  # type: ignore[misc]
    bases.BASE_SHARE = 0.0  # type: ignore[misc]
    family.POSITION_BYTES = 1 << 14  # type: ignore[misc]


def settings_of(nodes: Nodes, node: str, take_over: str = "0") -> dict[str, str]:
    """The settings of a server whose log is on these nodes."""
    servers = ",".join(f"{each.host}:{each.port}" for each in nodes.servers)
    return {
        "QSERVER_LOG": f"nats://{servers}",
        "QSERVER_LOG_TOKEN": TOKEN,
        "QSERVER_LOG_COPIES": str(len(nodes.servers)),
        "QSERVER_NODE": node,
        "QSERVER_TAKE_OVER": take_over,
    }


class LogCampaign(Campaign):
    kinds = KINDS
    once = (("kill", 0), ("node", 0), ("node cut", 0), ("new machine", 0), ("all nodes", 0))

    def __init__(
        self,
        folder: Path,
        seed: int,
        faults: int,
        nodes: Nodes,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._cuts = Cuts()
        self._proxies = {name: self._proxy(name, nodes) for name in nodes.processes}
        settings = settings_of(nodes, "machine0", "1")
        addresses = [f"{each.listen.host}:{each.listen.port}" for each in self._proxies.values()]
        settings["QSERVER_LOG"] = f"nats://{','.join(addresses)}"
        super().__init__(folder, seed, faults, tell, settings, with_small_bases)
        self._nodes = nodes
        self._machines = 0

    def _proxy(self, name: str, nodes: Nodes) -> Proxy:
        listen = Address(HOST, port_of_no_client())
        server = nodes.processes[name].server
        return Proxy(self._cuts, listen, Address(server.host, server.port), name, SERVER)

    async def run(self) -> Report:
        async with trio.open_nursery() as nursery:
            for proxy in self._proxies.values():
                await nursery.start(proxy.run)
            report = await super().run()
            nursery.cancel_scope.cancel()
        return report

    async def _fault_of_all(self, kind: str) -> None:
        match kind:
            case "node" | "two nodes" | "all nodes":
                await self._kill_nodes({"node": 1, "two nodes": 2}.get(kind, 99))
            case "node stopped":
                node = self._chance.choice(list(self._nodes.processes.values()))
                node.stop()
                await trio.sleep(STOPPED_SECONDS)
                node.continue_()
            case "node cut":
                await self._cut()
            case "new machine":
                await self._replace_machine()
            case _:
                await super()._fault_of_all(kind)

    async def _kill_nodes(self, most: int) -> None:
        every = list(self._nodes.processes.values())
        chosen = self._chance.sample(every, min(most, len(every)))
        for node in chosen:
            node.kill()
        await trio.sleep(self._chance.uniform(0.0, DOWN_SECONDS_MAX))
        for node in chosen:
            node.start()

    async def _cut(self) -> None:
        """Cut the server off from one node, or from all, by silence or by an end of connections."""
        names = list(self._proxies)
        is_silent = self._chance.random() < 0.5
        for name in self._chance.choice(([self._chance.choice(names)], names)):
            self._cuts.cut(SERVER, name, silent=is_silent)
        await trio.sleep(self._chance.uniform(*CUT_SECONDS))
        self._cuts.mend_all()

    async def _replace_machine(self) -> None:
        """Lose the machine with its disk; the next one begins with nothing."""
        machine = self._machine
        machine.kill()
        self._machines += 1
        machine.data = machine.folder / f"data{self._machines}"
        machine.settings["QSERVER_NODE"] = f"machine{self._machines}"
        machine.launch()
