"""The types of ASGI 3, as this server uses them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from enum import Enum
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class LaneAnswer(msgspec.Struct, frozen=True):
    """Of a request that took a lane: all of it."""

    status: int
    lines: bytes
    """Of the head, each with its end."""
    body: bytes
    request_id: str


class Waits(Enum):
    LATER = "later"


LaneLater: TypeAlias = Callable[[LaneAnswer | None], None]
"""Takes the answer that a lane gives later; None: the request goes the ordinary way after all."""


class Lane(Protocol):
    """A short way past ASGI, for requests that can be answered, or begun, without any wait.

    It is made once for a head, and taken for every request of the connection that repeats that head
    to the letter: whatever follows from a head need not be found out again.
    """

    def answer(self, body: bytes, later: LaneLater) -> LaneAnswer | Literal[Waits.LATER] | None:
        """The answer; or LATER, which promises one call of `later`, after this one has returned.

        None: this one goes the ordinary way.
        """


Lanes: TypeAlias = Callable[[Scope], Lane | None]
"""The lane for requests with such a scope, if there is one."""

VERSIONS = {"version": "3.0", "spec_version": "2.4"}
"""2.4: `send` raises an OSError when the client is gone."""
