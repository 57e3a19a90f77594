"""One connection between two processes: messages out, messages in, until it breaks.

    send ──► Queue ──► _write ──► socket ──► _read ──► FrameReader, Gatherer ──► receive(message)
             bounded in bytes     (non-blocking)                                 does not wait

Receiving a message never waits for sending one: so two processes that send each other much cannot
wait for each other. Messages are sent in turns, a frame of each, and other tasks run between the
frames of a large one.

A peer that takes nothing for as long as its watchdog lets a loop stand still counts as broken. What
it sends may come at any time: a process that has died closes its sockets. A machine may vanish
without that: a connection that is *watched* sends beats, and ends when none come.
"""

from __future__ import annotations

import os
import socket
from array import array
from collections.abc import Awaitable, Callable
from typing import Final

import trio

from qserver.cluster.frames import DamagedFrame, FrameReader
from qserver.cluster.messages import Beat, Message, Move, decode
from qserver.cluster.outgoing import Outgoing, Queue
from qserver.cluster.pieces import Gatherer
from qserver.limits import STALL_SECONDS_MAX

Report = Callable[[str], None]
Receive = Callable[[Message, int | None], None]
"""Takes a message; the descriptor belongs to it then, even if it raises DamagedFrame."""

BEAT_SECONDS: Final = 1.0
SILENT_BEATS_MAX: Final = 5
"""So many beats of this end without a byte from the other, and the connection ends."""

_PIECE_BYTES: Final = 256 * 1024
_ANCILLARY_BYTES: Final = socket.CMSG_SPACE(4 * array("i").itemsize)
_CLOSE_ON_EXEC: Final[int] = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


class LinkBroken(Exception):
    """The connection has ended: the message was not sent."""


class Connection:
    """A socket to another process. `run` serves it; afterwards it is closed."""

    def __init__(
        self, connected: socket.socket, name: str, report: Report, is_watched: bool = False
    ) -> None:
        connected.setblocking(False)
        self._socket = connected
        self._name = name
        self._report = report
        self._is_watched = is_watched
        self._silent_beats = 0
        self._reader = FrameReader()
        self._gatherer = Gatherer()
        self._queue = Queue()
        self._writing: Outgoing | None = None
        self.send_nowait = self._queue.append  # small messages, few for each thing under way
        self.withdraw = self._queue.withdraw

    @property
    def is_closed(self) -> bool:
        return self._queue.is_closed

    async def send(self, message: Outgoing) -> None:
        """Wait for room, and let the message have its turn; or raise LinkBroken."""
        await self._queue.wait_for_room(message)
        if self.is_closed:
            raise LinkBroken
        self._queue.append(message)

    async def run(self, receive: Receive) -> None:
        """Send and receive until one of them fails."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._until_broken, self._write, nursery.cancel_scope)
                if self._is_watched:
                    nursery.start_soon(self._until_broken, self._beat, nursery.cancel_scope)
                await self._until_broken(lambda: self._read(receive), nursery.cancel_scope)
        finally:
            self.close()

    def close(self) -> None:
        if not self.is_closed:
            self._socket.close()
            self._reader.close()
            self._gatherer.close()
            if self._writing is not None:
                self._queue.end(self._writing)
            self._queue.close()

    async def _until_broken(
        self, work: Callable[[], Awaitable[None]], scope: trio.CancelScope
    ) -> None:
        try:
            await work()
        except DamagedFrame as damage:
            self._report(f"the connection to {self._name} is damaged and closed: {damage}")
        except trio.TooSlowError:
            self._report(f"{self._name} took nothing for {STALL_SECONDS_MAX:g} seconds")
        except OSError:
            pass  # the peer has ended: those who wait for it are told
        scope.cancel()

    async def _write(self) -> None:
        queue = self._queue
        while True:
            message = self._writing = await queue.next()
            await self._write_frame(message)
            if message.sent:
                queue.end(message)
            elif not message.ended.is_set():
                queue.put_back(message)
                await trio.lowlevel.checkpoint()
            self._writing = None

    async def _write_frame(self, message: Outgoing) -> None:
        message.cut()
        while message.unsent and not message.ended.is_set():  # it may be withdrawn meanwhile
            ancillary = []
            if message.descriptor is not None:
                rights = array("i", [message.descriptor])
                ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)]
            try:
                message.advance(self._socket.sendmsg(message.unsent, ancillary))
            except BlockingIOError:
                with trio.fail_after(STALL_SECONDS_MAX):
                    await trio.lowlevel.wait_writable(self._socket)

    async def _beat(self) -> None:
        while self._silent_beats < SILENT_BEATS_MAX:
            self._silent_beats += 1
            self._queue.append(Outgoing(Beat()))
            await trio.sleep(BEAT_SECONDS)
        seconds = SILENT_BEATS_MAX * BEAT_SECONDS
        self._report(f"{self._name} has said nothing for {seconds:g} seconds: the link to it ends")

    async def _read(self, receive: Receive) -> None:
        while True:
            await trio.lowlevel.wait_readable(self._socket)
            data, ancillary, flags, _ = self._socket.recvmsg(
                _PIECE_BYTES, _ANCILLARY_BYTES, _CLOSE_ON_EXEC
            )
            self._reader.feed(data, _descriptors(ancillary))
            if flags & socket.MSG_CTRUNC:
                raise DamagedFrame("a descriptor is lost: too many are open")
            if not data:
                return
            self._silent_beats = 0
            while (piece := self._reader.next_frame()) is not None:
                frame = self._gatherer.gather(piece)
                if frame is None:
                    continue
                try:
                    message = decode(frame.kind, frame.payload)
                    if isinstance(message, Move) != (frame.descriptor is not None):
                        raise DamagedFrame(f"{type(message).__name__} with a wrong descriptor")
                except DamagedFrame:
                    if frame.descriptor is not None:
                        os.close(frame.descriptor)
                    raise
                receive(message, frame.descriptor)


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    found = array("i")
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            found.frombytes(data[: len(data) - len(data) % found.itemsize])
    return list(found)
