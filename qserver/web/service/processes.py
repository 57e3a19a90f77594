"""One process of several: what it inherits, and its links to the others.

supervisor ─► fork ─► Member ─┬─ listening sockets      accepted by all processes
                              ├─ links                  calls, and connections that move
                              └─ windows                requests counted by all, in memory
"""

from __future__ import annotations

import logging
import socket
from pathlib import Path
from typing import Any, Final

import msgspec
import trio

from qserver.cluster import Links, Listeners
from qserver.cluster import Service as LinkService
from qserver.cluster.shared_windows import SharedWindows
from qserver.control.owners import Owners
from qserver.http1 import Adopt, Moved, Refusal
from qserver.limits import MOVE_SECONDS_MAX

logger: Final = logging.getLogger("qserver")
AWAY: Final = "the process of this database does not answer"


class Member(msgspec.Struct, frozen=True):
    """What a forked process begins with."""

    number: int
    count: int
    sockets: list[socket.socket]
    listeners: Listeners
    windows: SharedWindows
    alive: int
    """Reads as ended when the supervisor has."""

    def evidence(self, folder: Path) -> Path:
        """The watchdog's file of this process."""
        return folder / f"stall.{self.number}.txt"


class Mover:
    """Takes clients' connections to the processes that own their databases, and from there."""

    def __init__(self, member: Member, owners: Owners) -> None:
        self._adopt: Adopt | None = None
        self._began = trio.Event()
        service = LinkService(owners.methods, owners.streams, self._welcome, owners.locks)
        listeners, number = member.listeners, member.number
        self.links = owners.links = Links(
            number, listeners.keep(number), listeners.paths, service, logger.warning
        )

    def begin(self, adopt: Adopt) -> None:
        self._adopt = adopt
        self._began.set()

    def move(self, moved: Moved) -> None:
        deadline = trio.current_time() + MOVE_SECONDS_MAX
        self.links.send_connection(
            moved.process,
            moved.client,
            moved.data,
            moved.socket,
            deadline=deadline,
            failed=self._failed,
        )

    async def _welcome(self, client: Any, data: bytes, connected: socket.socket) -> None:
        """Serve a connection that has arrived, as soon as this process serves any."""
        await self._began.wait()
        connected.setblocking(False)
        self._take(connected, client, data, None)

    def _failed(self, connected: socket.socket, client: Any, data: bytes) -> None:
        self._take(connected, client, data, Refusal(503, AWAY, "Try again."))

    def _take(
        self, connected: socket.socket, client: Any, data: bytes, refusal: Refusal | None
    ) -> None:
        assert self._adopt is not None, "it serves"
        address = None if client is None else (str(client[0]), int(client[1]))
        self._adopt(Moved(0, connected, address, data), refusal)

    def __repr__(self) -> str:
        return f"the way to other processes, by {self.links!r}"
