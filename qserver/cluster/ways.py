"""What links need of the world: how connections between processes begin.

    Links ──► knock(process) ──► a connection to it     LocalDoors    one machine, by descriptors
          ◄── arrived(…) ◄── receive                    RemoteDoors   several machines, by TCP
          ──► carrier.carry, carrier.relay

From its first byte on a connection is the same over all ways: frames of messages.

A client's connection moves as a descriptor with a message, where that is possible; there is no
carrier then. Elsewhere a carrier brings what was read from it to the other process, and relays its
bytes from then on.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from qserver.cluster.messages import Move


class LinkedHere(NamedTuple):
    """A connection of a caller, and who that is, for reports."""

    name: str
    socket: socket.socket


class MovedHere(NamedTuple):
    """A client's connection that a carrier has brought: it goes on over this socket."""

    meta: Any
    data: bytes
    socket: socket.socket


Arrival = LinkedHere | MovedHere
Arrived = Callable[[Arrival], None]
"""Takes over a connection that has arrived. It does not wait."""


class Carrier(Protocol):
    """Moves clients' connections to where no descriptor can travel."""

    async def carry(self, process: int, message: Move, deadline: float) -> socket.socket:
        """Return the connection over which a client's goes on, once the process has taken it.

        Raise OSError if it has not, and will not.
        """

    async def relay(self, moved: socket.socket, beyond: socket.socket) -> None:
        """Pass bytes on until both have ended. Whoever calls this closes both."""


class Ways(Protocol):
    """The ways of one process to all others."""

    @property
    def noun(self) -> str:
        """What has the numbers: a "process" or a "node"."""

    @property
    def retry_seconds_max(self) -> float:
        """Pauses between attempts to reach one that is away grow up to this."""

    @property
    def is_watched(self) -> bool:
        """Whether a peer can vanish without a word, so that each end says that it is there."""

    @property
    def carrier(self) -> Carrier | None: ...

    async def knock(self, process: int) -> socket.socket:
        """Return a new connection to a process; raise OSError if there can be none now."""

    async def receive(self, arrived: Arrived) -> None:
        """Hand on what others send here, until this is cancelled."""
