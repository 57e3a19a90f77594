"""One end of a stream between two processes: values both ways, each way bounded.

    send ──► credit left? ──► Item ───────► arrived ──► async for
                   ▲                           │
                   └───────── Credit ◄─────────┘  one for each value that was taken

A sender has so many credits as the other end has places for values that nobody has taken yet. With
none left it waits: a slow consumer holds its producer back, and nothing else on the connection.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import trio

from qserver.cluster.connection import Connection, LinkBroken
from qserver.cluster.frames import DamagedFrame
from qserver.cluster.messages import Credit, Item
from qserver.cluster.outgoing import Outgoing
from qserver.errors import QserverError
from qserver.limits import LINK_STREAM_VALUES_MAX


class Stream:
    """An async iterator of what the other end sends, until it ends; `send` is the way back."""

    def __init__(self, stream_id: int, connection: Connection) -> None:
        self._id = stream_id
        self._connection = connection
        self._arrived: deque[Any] = deque()
        self._credits = LINK_STREAM_VALUES_MAX
        self._changed = trio.lowlevel.ParkingLot()
        self._error: QserverError | None = None
        self.has_ended = False

    async def send(self, value: Any) -> None:
        """Send a plain value, when the other end has room for it.

        What is sent when the other end has left is dropped.
        """
        frame = Outgoing(Item(self._id, value))
        while not self._credits and not self.has_ended:
            await self._changed.park()
        if self._error is not None:
            raise self._error
        self._credits -= 1
        try:
            await self._connection.send(frame)
        except LinkBroken:
            await trio.lowlevel.checkpoint()  # whoever ends this stream says why
        except trio.Cancelled:
            self._credits += 1
            raise

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> Any:
        while not self._arrived and not self.has_ended:
            await self._changed.park()
        if not self._arrived:
            if self._error is not None:
                raise self._error
            raise StopAsyncIteration
        self._connection.send_nowait(Outgoing(Credit(self._id)))
        return self._arrived.popleft()

    def arrive(self, value: Any) -> None:
        if len(self._arrived) >= LINK_STREAM_VALUES_MAX:
            raise DamagedFrame("a stream has sent more than there was room for")
        self._arrived.append(value)
        self._changed.unpark_all()

    def credit(self) -> None:
        self._credits += 1
        self._changed.unpark_all()

    def end(self, error: QserverError | None = None) -> None:
        """The other end sends no more; what has arrived can still be taken."""
        if not self.has_ended:
            self.has_ended = True
            self._error = error
            self._changed.unpark_all()
