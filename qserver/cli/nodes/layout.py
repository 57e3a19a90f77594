"""Which processes a cluster on one machine has, and at which ports.

--port 8000    8000 …   nodes, for clients
               8100 …   nodes, for each other
               8200 …   log nodes, for nodes; for each other at 10200 …
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from random import SystemRandom
from typing import Final

import msgspec

from qserver.errors import InvalidRequest
from qserver.limits import CLUSTER_NODES_MAX
from qserver.replication.nats.configuration import ROUTE_PORTS
from qserver.replication.nats.connection import PORT_MAX, Server

HOST: Final = "127.0.0.1"
LINK_PORTS: Final = 100
LOG_PORTS: Final = 200
"""How far the first port of links, and of log nodes, is from the first one for clients."""
PORT_LAST: Final = PORT_MAX - LOG_PORTS - ROUTE_PORTS - CLUSTER_NODES_MAX
ANY: Final = (20_000, 30_000)
"""Where any free ports are looked for: below those that systems give to clients."""
TRIES: Final = 200


class NodePlace(msgspec.Struct, frozen=True):
    name: str
    port: int
    link: int

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"


class Layout(msgspec.Struct, frozen=True):
    nodes: tuple[NodePlace, ...]
    log: dict[str, Server]
    """Log nodes by name."""

    @property
    def log_url(self) -> str:
        return "nats://" + ",".join(map(str, self.log.values()))

    def ports(self) -> Iterator[int]:
        for node in self.nodes:
            yield from (node.port, node.link)
        for server in self.log.values():
            yield from (server.port, server.port + ROUTE_PORTS)

    def taken(self) -> int | None:
        """Return a port that somebody has."""
        return next((port for port in self.ports() if not _is_free(port)), None)


def layout_at(port: int, nodes: int, log_nodes: int) -> Layout:
    """The layout whose first port that is; 0: at any that are free. Raises if one is taken."""
    if port:
        made = _layout(port, nodes, log_nodes)
        taken = made.taken()
        if taken is not None:
            raise InvalidRequest(
                f"port {taken} is in use",
                hint=f"Stop what has it, or name another --port. From {port} on {nodes} must be"
                f" free, and as many from {port + LINK_PORTS}; {log_nodes} from"
                f" {port + LOG_PORTS} and from {port + LOG_PORTS + ROUTE_PORTS}.",
            )
        return made
    chance = SystemRandom()
    for _ in range(TRIES):
        made = _layout(chance.randrange(*ANY), nodes, log_nodes)
        if made.taken() is None:
            return made
    raise InvalidRequest("there are no free ports", hint="Name some with --port.")


def _layout(port: int, nodes: int, log_nodes: int) -> Layout:
    return Layout(
        tuple(NodePlace(f"q{at + 1}", port + at, port + LINK_PORTS + at) for at in range(nodes)),
        {f"n{at + 1}": Server(HOST, port + LOG_PORTS + at, False) for at in range(log_nodes)},
    )


def _is_free(port: int) -> bool:
    """Return whether a server could listen there; connections that end do not matter."""
    with socket.socket() as tried, suppress(OSError):
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        tried.bind((HOST, port))
        return True
    return False
