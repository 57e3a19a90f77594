"""The types of ASGI 3, as this server uses them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Protocol, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class Lane(Protocol):
    """A short way past ASGI, for requests that can be answered without any wait.

    It is made once for a head, and taken for every request of the connection that repeats that head
    to the letter: whatever follows from a head need not be found out again.
    """

    def answer(self, body: bytes) -> tuple[bytes, bytes, str] | None:
        """Header lines, body and id of a 200; None: this one goes the ordinary way."""


Lanes: TypeAlias = Callable[[Scope], Lane | None]
"""The lane for requests with such a scope, if there is one."""

VERSIONS = {"version": "3.0", "spec_version": "2.4"}
"""2.4: `send` raises an OSError when the client is gone."""
