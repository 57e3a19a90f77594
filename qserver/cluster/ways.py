"""What links need of the world: how connections between processes begin.

    Links ──► knock(process) ──► a connection to it
          ◄── arrived(connection) ◄── receive     of a caller that has knocked here

`LocalDoors` are such ways, between the processes of one machine. From its first byte on a
connection is the same over all ways: frames of messages.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Protocol

Arrived = Callable[[socket.socket], None]
"""Takes over a connection of a caller. It does not wait."""


class Ways(Protocol):
    """The ways of one process to all others."""

    noun: str
    """What has the numbers: a "process"."""

    async def knock(self, process: int) -> socket.socket:
        """Return a new connection to a process; raise OSError if there can be none now."""

    async def receive(self, arrived: Arrived) -> None:
        """Hand on the connections that others make, until this is cancelled."""
