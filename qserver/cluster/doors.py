"""The ways in to all processes of one machine, made before they are forked.

    knock(1): one end of a new socket pair ──► outside │ door 1 │ inside ──► next_at_door

Who knocks keeps the other end, which is a connection from then on. The supervisor keeps all doors,
so what was sent to a process that has died waits there for its successor.

Doors have no names. So nothing is left behind in a file system, whoever is killed, and nobody can
knock but processes that were forked.

`LocalDoors` are the ways of one process: it knocks at all doors, and is inside of its own.
"""

from __future__ import annotations

import errno
import socket
from typing import Final

import trio

from qserver.cluster.connection import Report
from qserver.cluster.ways import Arrived, LinkedHere
from qserver.limits import LINK_RETRY_SECONDS

_CLOSE_ON_EXEC: Final[int] = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


class Doors:
    def __init__(self, processes: int) -> None:
        self.count = processes
        pairs = [socket.socketpair() for _ in range(processes)]
        self._outside = [outside for outside, _ in pairs]
        self.inside = {number: inside for number, (_, inside) in enumerate(pairs)}
        for each in (*self._outside, *self.inside.values()):
            each.setblocking(False)

    def keep(self, process: int) -> socket.socket:
        """Close the inside of all doors but that of a process, in the process, and return it."""
        for number in [*self.inside]:
            if number != process:
                self.inside.pop(number).close()
        return self.inside[process]

    def knock(self, process: int) -> socket.socket:
        """Return a connection to a process, which will find it; raise OSError if too many wait."""
        near, far = socket.socketpair()
        with far:
            try:
                socket.send_fds(self._outside[process], [b"!"], [far.fileno()])
            except OSError:
                near.close()
                raise
        return near

    def close(self) -> None:
        for each in (*self._outside, *self.inside.values()):
            each.close()


def next_at_door(inside: socket.socket) -> socket.socket:
    """Return the next connection; raise BlockingIOError if there is none."""
    _, descriptors, _, _ = socket.recv_fds(inside, 1, 1, _CLOSE_ON_EXEC)
    if not descriptors:
        raise OSError(0, "too many files are open")
    return socket.socket(fileno=descriptors[0])


class LocalDoors:
    """The ways of the process that has the inside of a door."""

    noun = "process"
    retry_seconds_max = LINK_RETRY_SECONDS
    is_watched = False  # a process that has died closes its sockets
    carrier = None

    def __init__(self, inside: socket.socket, doors: Doors, report: Report) -> None:
        self._inside = inside
        self._doors = doors
        self._report = report

    async def knock(self, process: int) -> socket.socket:
        if not 0 <= process < self._doors.count:
            raise OSError(errno.ENXIO, f"there is no process {process}")
        return self._doors.knock(process)

    async def receive(self, arrived: Arrived) -> None:
        while True:
            await trio.lowlevel.wait_readable(self._inside)
            try:
                accepted = next_at_door(self._inside)
            except BlockingIOError:
                continue
            except OSError as error:
                self._report(f"cannot accept a connection of a process now: {error.strerror}")
                await trio.sleep(LINK_RETRY_SECONDS)
                continue
            arrived(LinkedHere("a calling process", accepted))
