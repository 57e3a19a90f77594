"""Log nodes in memory, which never fail: for tests, and what the simulated nodes agree on.

A call takes effect as a whole, in one moment: the order of calls is the order on which real nodes
agree.
"""

from __future__ import annotations

from collections.abc import Sequence

import trio

from qserver.errors import LogFailed
from qserver.replication.port import Bounds, Message, Refused, Stream, Value


class MemoryStream:
    def __init__(self, name: str) -> None:
        self.name = name
        self.leader = ""
        self.messages: list[Message] = []
        """Those that were not purged."""
        self.is_removed = False

    @property
    def last(self) -> int:
        return self.messages[-1].sequence if self.messages else 0

    async def append(self, data: bytes, expected: int) -> int:
        await self._checkpoint()
        if self.last != expected:
            raise Refused(self.last)
        self.messages.append(Message(expected + 1, data))
        return self.last

    async def read(self, first: int, most: int) -> Sequence[Message]:
        await self._checkpoint()
        begin = first - self.first
        return self.messages[begin : begin + most] if begin >= 0 else []

    @property
    def first(self) -> int:
        return self.messages[0].sequence if self.messages else 1

    async def bounds(self) -> Bounds:
        await self._checkpoint()
        return Bounds(self.first, self.last)

    async def purge(self, until: int) -> None:
        await self._checkpoint()
        until = min(until, self.last - 1)
        self.messages = [each for each in self.messages if each.sequence > until]

    async def _checkpoint(self) -> None:
        await trio.lowlevel.checkpoint()
        if self.is_removed:
            raise LogFailed(f"there is no stream {self.name}")

    def __repr__(self) -> str:
        return f"the stream {self.name} with messages {self.first} to {self.last}"


class MemoryNodes:
    def __init__(self) -> None:
        self._streams: dict[str, MemoryStream] = {}
        self._values: dict[str, Value] = {}
        self._parts: dict[str, bytes] = {}
        self._revisions = 0
        """How many were given: none is given twice, also not for a key that was removed."""

    async def open_stream(self, name: str) -> Stream:
        await trio.lowlevel.checkpoint()
        return self._streams.setdefault(name, MemoryStream(name))

    async def find_stream(self, name: str) -> Stream | None:
        await trio.lowlevel.checkpoint()
        return self._streams.get(name)

    async def remove_stream(self, name: str) -> None:
        await trio.lowlevel.checkpoint()
        if name in self._streams:
            self._streams.pop(name).is_removed = True

    async def streams(self) -> Sequence[str]:
        await trio.lowlevel.checkpoint()
        return sorted(self._streams)

    async def value(self, key: str) -> Value | None:
        await trio.lowlevel.checkpoint()
        return self._values.get(key)

    async def values(self, prefix: str) -> dict[str, Value]:
        await trio.lowlevel.checkpoint()
        return {key: self._values[key] for key in _with(prefix, self._values)}

    async def set_value(self, key: str, data: bytes, revision: int) -> int:
        await trio.lowlevel.checkpoint()
        now = self._values[key].revision if key in self._values else 0
        if now != revision:
            raise Refused(now)
        self._revisions += 1
        self._values[key] = Value(self._revisions, data)
        return self._revisions

    async def remove_value(self, key: str) -> None:
        await trio.lowlevel.checkpoint()
        self._values.pop(key, None)

    async def save_part(self, key: str, data: bytes) -> None:
        await trio.lowlevel.checkpoint()
        self._parts[key] = data

    async def load_part(self, key: str) -> bytes | None:
        await trio.lowlevel.checkpoint()
        return self._parts.get(key)

    async def parts(self, prefix: str) -> Sequence[str]:
        await trio.lowlevel.checkpoint()
        return _with(prefix, self._parts)

    async def remove_parts(self, prefix: str) -> None:
        await trio.lowlevel.checkpoint()
        for key in _with(prefix, self._parts):
            del self._parts[key]

    def __repr__(self) -> str:
        return f"log nodes with {len(self._streams)} streams, {len(self._values)} values"


def _with(prefix: str, keys: dict[str, Value] | dict[str, bytes]) -> list[str]:
    return sorted(key for key in keys if key.startswith(prefix))
