"""Reads a stream from a position on, and refuses one that does not fit together."""

from __future__ import annotations

from typing import Final

import msgspec

from qserver.errors import DataCorrupted
from qserver.replication.messages import (
    Claim,
    Entry,
    Part,
    checksum_of,
    decode,
    decode_body,
)
from qserver.replication.port import Message, Stream, Unanswered
from qserver.replication.position import Position

MESSAGES_AT_ONCE: Final = 64


class Purged(Exception):
    """What is to be read next is gone: a base has it."""


class Whole(msgspec.Struct, frozen=True):
    """A message that counts, with the place of its last part."""

    sequence: int
    checksum: int
    entry: Entry


class Reader:
    """`sequence`, `checksum` and `claim` are those of the last message that was read."""

    def __init__(self, stream: Stream, position: Position) -> None:
        self._stream = stream
        self.sequence = position.sequence
        self.checksum = position.checksum
        self.claim = position.claim
        self.size = 0
        """Bytes of the messages that were read."""
        self._parts: list[bytes] = []

    async def read_on(self) -> list[Whole] | None:
        """Return the next messages that count; None if the node that was asked has no more."""
        messages = await self._stream.read(self.sequence + 1, MESSAGES_AT_ONCE)
        if not messages:
            return None
        return [whole for message in messages for whole in self._add(message)]

    async def read_towards_end(self) -> list[Whole] | None:
        """Return the next messages that count; None if all nodes together have no more.

        Raises Unanswered if the node that was asked lags behind.
        """
        wholes = await self.read_on()
        if wholes is None:
            bounds = await self._stream.bounds()
            if bounds.first > self.sequence + 1:
                raise Purged
            if bounds.last > self.sequence:
                raise Unanswered
        return wholes

    async def check_last(self) -> None:
        """Refuse a stream in which another message is where the last one was that is known here."""
        messages = await self._stream.read(self.sequence, 1) if self.sequence else []
        if messages and checksum_of(messages[0].data) != self.checksum:
            name = self._stream.name
            raise _unfit(f"message {self.sequence} of the stream {name} is another one")

    def _add(self, message: Message) -> list[Whole]:
        where = f"message {message.sequence} of the stream {self._stream.name}"
        if message.sequence != self.sequence + 1:
            raise _unfit(f"{where} came after {self.sequence}")
        entry = decode(message.data, where)
        if entry.previous != self.checksum:
            raise _unfit(f"{where} does not follow what is here of message {self.sequence}")
        is_claim = isinstance(entry.body, Claim)
        if is_claim:
            self.claim = entry.claim
            self._parts = []
        elif entry.claim != self.claim:
            raise _unfit(f"{where} was written after its writer had lost the stream")
        self.sequence, self.checksum = message.sequence, checksum_of(message.data)
        self.size += len(message.data)
        if isinstance(entry.body, Part):
            self._parts.append(entry.body.data)
            if not entry.body.is_last:
                return []
            body = decode_body(b"".join(self._parts), where)
            self._parts = []
            entry = msgspec.structs.replace(entry, body=body)
        return [Whole(self.sequence, self.checksum, entry)]


def _unfit(problem: str) -> DataCorrupted:
    return DataCorrupted(
        f"the replicated log does not fit together: {problem}",
        hint="It lost or changed what it had acknowledged. Nothing is shown. Look at the log's"
        " nodes; the newest files have what is missing (qserver cluster rescue).",
    )
