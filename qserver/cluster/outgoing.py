"""Messages that wait to be sent over one connection: in turns, piece by piece.

    lane 7    Item, large ─┐     lanes behind a large one: what has the same id keeps its order
                 Item, End │
                           ▼
    waiting   Item 7 │ Answer 3 │ Answer 9, large ──► one frame of each in turn

A message with several pieces goes to the end after each of them. So a short one waits for one piece
of each that is under way, however large they are, and never for room that a large one takes.
Messages of one call, lock or stream arrive in the order in which they were sent; others need not.

A message is *sent* when its last byte has left for the kernel. Before, the peer cannot have acted
on it, because it acts on whole messages; from then on only an answer tells. A message of which no
byte has left can be withdrawn.
"""

from __future__ import annotations

from collections import deque
from itertools import count

import trio

from qserver.cluster.frames import head_of
from qserver.cluster.messages import Message, encode
from qserver.cluster.pieces import PIECE_BYTES, piece_head
from qserver.errors import ProgramLimitExceeded
from qserver.limits import LINK_FRAME_BYTES_MAX, LINK_MESSAGE_BYTES_MAX, LINK_UNSENT_BYTES_MAX


class Outgoing:
    """A message on its way. `ended` is set when it was sent, or never will be."""

    def __init__(self, message: Message, descriptor: int | None = None) -> None:
        self._kind, payload = encode(message)
        if len(payload) > LINK_MESSAGE_BYTES_MAX:
            raise ProgramLimitExceeded(
                f"{len(payload)} bytes for another process are more than {LINK_MESSAGE_BYTES_MAX}"
            )
        self.lane: int | None = getattr(message, "id", None)
        self.size = len(payload)
        self.is_large = self.size > LINK_FRAME_BYTES_MAX
        self.descriptor = descriptor
        self.unsent: list[memoryview] = []
        """Of the frame that is being sent."""
        self._uncut = memoryview(payload)
        self.number = 0
        """Of a large one, among those of its connection."""
        self.queued = False
        self.begun = False
        self.sent = False
        self.ended = trio.Event()

    def cut(self) -> None:
        """Make the next frame."""
        has_descriptor = self.descriptor is not None
        payload, self._uncut = self._uncut, self._uncut[:0]
        if self.is_large:
            self._uncut, payload = payload[PIECE_BYTES:], payload[:PIECE_BYTES]
            is_last = not self._uncut
            head = piece_head(self.number, self._kind, len(payload), is_last, has_descriptor)
        else:
            head = head_of(self._kind, len(payload), has_descriptor)
        self.unsent = [memoryview(head), payload] if payload else [memoryview(head)]

    def advance(self, count: int) -> None:
        """`count` more bytes of the frame have left, and the descriptor with the first."""
        self.begun = True
        self.descriptor = None
        while self.unsent and count >= len(self.unsent[0]):
            count -= len(self.unsent.pop(0))
        if count:
            self.unsent[0] = self.unsent[0][count:]
        self.sent = not self.unsent and not self._uncut


class Queue:
    """Messages of one connection that are not sent yet."""

    def __init__(self) -> None:
        self._waiting: deque[Outgoing] = deque()
        self._lanes: dict[int | None, deque[Outgoing]] = {}
        """By id: a large message that waits or is being sent, and all behind it with that id."""
        self._numbers = count()
        self._bytes = [0, 0]
        """Of short messages, and of large ones."""
        self._work = trio.lowlevel.ParkingLot()
        self._room = trio.lowlevel.ParkingLot()
        self.is_closed = False

    async def wait_for_room(self, message: Outgoing) -> None:
        """Wait until others have left, or it is closed."""
        while self._bytes[message.is_large] > LINK_UNSENT_BYTES_MAX and not self.is_closed:
            await self._room.park()

    def append(self, message: Outgoing) -> None:
        if self.is_closed:
            message.ended.set()
            return
        message.queued = True
        self._bytes[message.is_large] += message.size
        if message.lane in self._lanes:
            self._lanes[message.lane].append(message)
            return
        if message.is_large:
            message.number = next(self._numbers) % 2**32
            if message.lane is not None:
                self._lanes[message.lane] = deque([message])
        self._waiting.append(message)
        self._work.unpark()

    async def next(self) -> Outgoing:
        """Wait for the message of which a frame is to be sent, and take it."""
        while not self._waiting:
            await self._work.park()
        return self._waiting.popleft()

    def put_back(self, message: Outgoing) -> None:
        """It has more frames: others come before them."""
        self._waiting.append(message)

    def withdraw(self, message: Outgoing) -> bool:
        """Return whether a message is not sent and never will be."""
        if not message.begun:  # otherwise the peer may have all of it, soon
            self.end(message)
            if message in self._waiting:
                self._waiting.remove(message)
        return message.ended.is_set() and not message.sent

    def end(self, message: Outgoing) -> None:
        """It is sent, or will not be."""
        if message.ended.is_set():
            return
        message.ended.set()
        if message.queued:
            self._bytes[message.is_large] -= message.size
            self._room.unpark_all()
        lane = self._lanes.get(message.lane)
        if lane is not None and lane[0] is message:
            self._go_on(message.lane, lane)

    def _go_on(self, name: int | None, lane: deque[Outgoing]) -> None:
        """Let what waits behind a large message go, up to the next large one."""
        lane.popleft()
        while lane:
            message = lane[0]
            if not message.ended.is_set():
                self._waiting.append(message)
                self._work.unpark()
                if message.is_large:
                    message.number = next(self._numbers) % 2**32
                    return
            lane.popleft()
        del self._lanes[name]

    def close(self) -> None:
        """None that waits will be sent."""
        self.is_closed = True
        while self._waiting:
            self.end(self._waiting.popleft())
        self._room.unpark_all()
