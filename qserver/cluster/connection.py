"""One connection between two processes: messages out, messages in, until it breaks.

    send ──► waiting frames ──► _write ──► socket ──► _read ──► FrameReader ──► receive(message)
             bounded in bytes              (Unix, non-blocking)                 does not wait

A frame is *sent* when its last byte has left for the kernel. Before, the peer cannot have acted on
it, because it acts on whole frames; from then on only an answer tells. A frame of which no byte has
left can be withdrawn. `Outgoing` knows which.

Receiving a message never waits for sending one: so two processes that send each other much cannot
wait for each other. A large frame goes in pieces, and other tasks run between them; frames behind
it on the same connection wait.

A peer that takes nothing for as long as its watchdog lets a loop stand still counts as broken. What
it sends may come at any time: a process that has died closes its sockets.
"""

from __future__ import annotations

import os
import socket
from array import array
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

import trio

from qserver.cluster.frames import DamagedFrame, FrameReader, head_of
from qserver.cluster.messages import Message, Move, decode, encode
from qserver.errors import ProgramLimitExceeded
from qserver.limits import LINK_FRAME_BYTES_MAX, LINK_UNSENT_BYTES_MAX, STALL_SECONDS_MAX

Report = Callable[[str], None]
Receive = Callable[[Message, int | None], None]
"""Takes a message; the descriptor belongs to it then, even if it raises DamagedFrame."""

_PIECE_BYTES: Final = 256 * 1024
_ANCILLARY_BYTES: Final = socket.CMSG_SPACE(4 * array("i").itemsize)
_CLOSE_ON_EXEC: Final[int] = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


class LinkBroken(Exception):
    """The connection has ended: the message was not sent."""


class Outgoing:
    """A frame on its way. `ended` is set when it was sent, or never will be."""

    def __init__(self, message: Message, descriptor: int | None = None) -> None:
        kind, payload = encode(message)
        if len(payload) > LINK_FRAME_BYTES_MAX:
            raise ProgramLimitExceeded(
                f"{len(payload)} bytes for another process are more than {LINK_FRAME_BYTES_MAX}"
            )
        self.unsent = [memoryview(head_of(kind, len(payload), descriptor is not None))]
        if payload:
            self.unsent.append(memoryview(payload))
        self.descriptor = descriptor
        self.size = sum(map(len, self.unsent))
        self.queued = False
        self.begun = False
        self.sent = False
        self.ended = trio.Event()

    def advance(self, count: int) -> None:
        """`count` more bytes have left, and the descriptor with the first."""
        self.begun = True
        self.descriptor = None
        while self.unsent and count >= len(self.unsent[0]):
            count -= len(self.unsent.pop(0))
        if count:
            self.unsent[0] = self.unsent[0][count:]


class Connection:
    """A socket to another process. `run` serves it; afterwards it is closed."""

    def __init__(self, connected: socket.socket, name: str, report: Report) -> None:
        connected.setblocking(False)
        self._socket = connected
        self._name = name
        self._report = report
        self._reader = FrameReader()
        self._waiting: deque[Outgoing] = deque()
        self._writing: Outgoing | None = None
        self._waiting_bytes = 0
        self._work = trio.lowlevel.ParkingLot()
        self._room = trio.lowlevel.ParkingLot()
        self.is_closed = False

    async def send(self, frame: Outgoing) -> None:
        """Wait for room, and let the frame follow those before it; or raise LinkBroken."""
        while self._waiting_bytes > LINK_UNSENT_BYTES_MAX and not self.is_closed:
            await self._room.park()
        if self.is_closed:
            raise LinkBroken
        self.send_nowait(frame)

    def send_nowait(self, frame: Outgoing) -> None:
        """The same without waiting for room: for small frames, and few for each thing under way."""
        if self.is_closed:
            frame.ended.set()
            return
        frame.queued = True
        self._waiting.append(frame)
        self._waiting_bytes += frame.size
        self._work.unpark()

    def withdraw(self, frame: Outgoing) -> bool:
        """Return whether the frame is not sent and never will be."""
        if frame.begun:  # the peer may have all of it, soon
            return frame.ended.is_set() and not frame.sent
        self._end(frame)
        if frame in self._waiting:
            self._waiting.remove(frame)
        return not frame.sent

    async def run(self, receive: Receive) -> None:
        """Send and receive until one of them fails."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._until_broken, self._write, nursery.cancel_scope)
                await self._until_broken(lambda: self._read(receive), nursery.cancel_scope)
        finally:
            self.close()

    def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self._socket.close()
            self._reader.close()
            if self._writing is not None:
                self._end(self._writing)
            while self._waiting:
                self._end(self._waiting.popleft())
            self._room.unpark_all()

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
        while True:
            while not self._waiting:
                await self._work.park()
            frame = self._writing = self._waiting.popleft()
            while not frame.ended.is_set():  # it may be withdrawn while the socket is full
                ancillary = []
                if frame.descriptor is not None:
                    rights = array("i", [frame.descriptor])
                    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)]
                try:
                    frame.advance(self._socket.sendmsg(frame.unsent, ancillary))
                except BlockingIOError:
                    with trio.fail_after(STALL_SECONDS_MAX):
                        await trio.lowlevel.wait_writable(self._socket)
                if not frame.unsent:
                    frame.sent = True
                    self._end(frame)
                elif frame.begun:
                    await trio.lowlevel.checkpoint()
            self._writing = None

    def _end(self, frame: Outgoing) -> None:
        if not frame.ended.is_set():
            frame.ended.set()
            if frame.queued:
                self._waiting_bytes -= frame.size
            if self._waiting_bytes <= LINK_UNSENT_BYTES_MAX:
                self._room.unpark_all()

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
            while (frame := self._reader.next_frame()) is not None:
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
