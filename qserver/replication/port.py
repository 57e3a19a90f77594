"""What is asked of the nodes that keep a replicated log: streams, values and parts.

    stream   1 2 3 4 5 …      messages in order; one is appended only behind the one that is named
    value    key ─► bytes     small, changed only from the revision that is named
    part     key ─► bytes     of a base: written once, read by whoever begins with it

A call goes to the nodes once. It either ends with an answer, or it raises:

- Refused: another message or revision is the last. Nothing was written *by this call*; an earlier
  one of the same caller, whose answer was lost, may be what is in the way.
- Unanswered: nobody knows. It may have been written, or may be written later.
- LogFailed: the nodes answered that they cannot do it, or are not set up as they must be.

So a caller repeats the same call until it has an answer, and only what can be read decides what is
in a stream. Reads may lag: a node that was asked may not have the newest messages yet. What it has
is committed, and never changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec


class Refused(Exception):
    """Another message is the last of a stream, or another revision that of a value."""

    def __init__(self, last: int) -> None:
        super().__init__(f"the last is {last}")
        self.last = last
        """The last sequence or revision that the node knows; 0 if there is none."""


class Unanswered(Exception):
    """No answer came. What was asked for may have been done, or may be done yet."""


class Message(msgspec.Struct, frozen=True):
    sequence: int
    data: bytes


class Bounds(msgspec.Struct, frozen=True):
    """Which messages a stream has."""

    first: int
    """The first that was not purged; `last + 1` if there is none."""
    last: int


class Value(msgspec.Struct, frozen=True):
    revision: int
    data: bytes


class Stream(Protocol):
    """Messages with sequences 1, 2, 3, … of which a front part may have been purged."""

    @property
    def name(self) -> str:
        """What it was opened as."""

    @property
    def leader(self) -> str:
        """The node that led it when nodes last told; empty if they did not."""

    async def append(self, data: bytes, expected: int) -> int:
        """Append one message if the last is `expected`, 0 if there was none; return its sequence.

        It is on the synced disks of a majority of nodes then. Raises Refused or Unanswered.
        """

    async def read(self, first: int, most: int) -> Sequence[Message]:
        """Return messages from a sequence on, in order and without a gap, at most `most`.

        Empty if the node that was asked has none there, or has purged it (see `bounds`).
        """

    async def bounds(self) -> Bounds:
        """Return which messages there are, as the stream's leader knows it."""

    async def purge(self, until: int) -> None:
        """Drop all messages up to a sequence. The last one of a stream stays."""


class LogNodes(Protocol):
    async def open_stream(self, name: str) -> Stream:
        """Open a stream, and make it if necessary."""

    async def find_stream(self, name: str) -> Stream | None:
        """Open a stream if it is there."""

    async def remove_stream(self, name: str) -> None:
        """Remove a stream with all its messages; a missing one is no error."""

    async def streams(self) -> Sequence[str]:
        """Return the names of all streams."""

    async def value(self, key: str) -> Value | None:
        """Return a value, as the leader knows it; None if it was never set, or removed."""

    async def values(self, prefix: str) -> dict[str, Value]:
        """Return the values of all keys that begin so."""

    async def set_value(self, key: str, data: bytes, revision: int) -> int:
        """Set a value if it has that revision, 0 if it is not there; return the new one.

        Raises Refused or Unanswered.
        """

    async def remove_value(self, key: str) -> None:
        """Remove a value whatever its revision; a missing one is no error."""

    async def save_part(self, key: str, data: bytes) -> None:
        """Keep a part of a base under a key. Raises Unanswered."""

    async def load_part(self, key: str) -> bytes | None:
        """Return a part; None if it is not there."""

    async def parts(self, prefix: str) -> Sequence[str]:
        """Return the keys of all parts that begin so, in order."""

    async def remove_parts(self, prefix: str) -> None:
        """Remove all parts whose keys begin so."""
