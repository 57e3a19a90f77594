"""Log nodes that make a call again until it is answered, as every caller of the port has to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

import trio

from qserver.replication.port import (
    Bounds,
    LogNodes,
    Message,
    Refused,
    Stream,
    Unanswered,
    Value,
)
from tests.patience import PATIENCE_SECONDS

T = TypeVar("T")
PAUSE_SECONDS: Final = 0.01


async def answered(call: Callable[[], Awaitable[T]]) -> T:
    with trio.fail_after(PATIENCE_SECONDS):
        while True:
            try:
                return await call()
            except Unanswered:
                await trio.sleep(PAUSE_SECONDS)
    raise AssertionError("it ends by an answer, or by its time")


class PatientStream:
    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.name = stream.name

    @property
    def leader(self) -> str:
        return self.stream.leader

    async def append(self, data: bytes, expected: int) -> int:
        """As once: an earlier attempt of this call that was written is its success."""
        attempts = 0

        async def append() -> int:
            nonlocal attempts
            attempts += 1
            try:
                return await self.stream.append(data, expected)
            except Refused as refused:
                if attempts == 1 or refused.last <= expected:
                    raise
                if not (found := await self.stream.read(expected + 1, 1)):
                    raise Unanswered("a node that lags was asked") from None
                if found[0].data != data:
                    raise
                return expected + 1

        return await answered(append)

    async def read(self, first: int, most: int) -> Sequence[Message]:
        return await answered(lambda: self.stream.read(first, most))

    async def bounds(self) -> Bounds:
        return await answered(self.stream.bounds)

    async def purge(self, until: int) -> None:
        await answered(lambda: self.stream.purge(until))


class PatientNodes:
    def __init__(self, nodes: LogNodes) -> None:
        self.nodes = nodes

    async def open_stream(self, name: str) -> PatientStream:
        return PatientStream(await answered(lambda: self.nodes.open_stream(name)))

    async def find_stream(self, name: str) -> PatientStream | None:
        found = await answered(lambda: self.nodes.find_stream(name))
        return None if found is None else PatientStream(found)

    async def remove_stream(self, name: str) -> None:
        await answered(lambda: self.nodes.remove_stream(name))

    async def streams(self) -> Sequence[str]:
        return await answered(self.nodes.streams)

    async def value(self, key: str) -> Value | None:
        return await answered(lambda: self.nodes.value(key))

    async def values(self, prefix: str) -> dict[str, Value]:
        return await answered(lambda: self.nodes.values(prefix))

    async def set_value(self, key: str, data: bytes, revision: int) -> int:
        """As once, if no other caller sets the same data."""
        attempts = 0

        async def set_value() -> int:
            nonlocal attempts
            attempts += 1
            try:
                return await self.nodes.set_value(key, data, revision)
            except Refused:
                value = await self.nodes.value(key) if attempts > 1 else None
                if value is None or value.data != data:
                    raise
                return value.revision

        return await answered(set_value)

    async def remove_value(self, key: str) -> None:
        await answered(lambda: self.nodes.remove_value(key))

    async def save_part(self, key: str, data: bytes) -> None:
        await answered(lambda: self.nodes.save_part(key, data))

    async def load_part(self, key: str) -> bytes | None:
        return await answered(lambda: self.nodes.load_part(key))

    async def parts(self, prefix: str) -> Sequence[str]:
        return await answered(lambda: self.nodes.parts(prefix))

    async def remove_parts(self, prefix: str) -> None:
        await answered(lambda: self.nodes.remove_parts(prefix))
