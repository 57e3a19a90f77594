"""Which node serves the databases of a replicated log: one at a time, by a value that all see.

    cluster    a name that the first start gives the log; files are copies of that log
    owner      the node that may claim streams

Nodes that share the databases write one name, and have leases instead (`control.nodes`).

A node that finds another in the value does not start, unless it is told to take over. Whoever was
the owner sees that in a few seconds, and ends; what it appends meanwhile is refused where the new
one has claimed the stream. What it shows meanwhile may be old: so stop it first, if you can.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import trio

from qserver.errors import LogFailed, LogTaken
from qserver.replication.patience import Result, patiently
from qserver.replication.port import LogNodes, Refused

CLUSTER: Final = "cluster"
OWNER: Final = "owner"
LOOK_SECONDS: Final = 3.0
"""How often an owner looks whether it still is."""
ANSWER_SECONDS: Final = 60.0


class Ownership:
    def __init__(self, nodes: LogNodes, node: str, new_name: Callable[[], str]) -> None:
        """`new_name` returns a name that no other log has."""
        self._nodes = nodes
        self._node = node
        self._new_name = new_name

    async def cluster(self) -> str:
        """Return the name of the log, and give it one if it has none."""
        found = await self._set_if_absent(CLUSTER, self._new_name())
        return found.decode()

    async def take(self, *, by_force: bool) -> None:
        """Become the owner; raise LogTaken if another node is, unless it is to be replaced."""
        while True:
            found = await self._set_if_absent(OWNER, self._node)
            if found == self._node.encode():
                return
            if not by_force:
                raise self._taken(found)
            if await self._replaced(OWNER, found):
                return

    async def check(self) -> None:
        """Raise LogTaken if another node is the owner."""
        found = await self._value(OWNER)
        if found != self._node.encode():
            raise self._taken(found or b"nobody")

    async def watch(self) -> None:
        """Raise LogTaken when another node has become the owner; the log's nodes may be away."""
        while True:
            await trio.sleep(LOOK_SECONDS)
            with suppress(LogFailed):
                await self.check()

    def _taken(self, found: bytes) -> LogTaken:
        return LogTaken(
            f"the databases of this log are served by the node {found.decode()}",
            hint=f"Stop it, and then start this one ({self._node}) with --take-over 1.",
        )

    async def _set_if_absent(self, key: str, text: str) -> bytes:
        """Return the value of a key, which is the text unless it had one."""
        while True:
            found = await self._value(key)
            if found is not None:
                return found
            await self._set(key, text, 0)

    async def _replaced(self, key: str, found: bytes) -> bool:
        """Replace a value by this node's name; False if it is another one meanwhile."""
        value = await self._ask(lambda: self._nodes.value(key))
        if value is not None and value.data == found:
            await self._set(key, self._node, value.revision)
        return await self._value(key) == self._node.encode()

    async def _set(self, key: str, text: str, revision: int) -> None:
        """Try to set a value; whether it was set, only reading tells."""
        with suppress(Refused):
            await self._ask(lambda: self._nodes.set_value(key, text.encode(), revision))

    async def _value(self, key: str) -> bytes | None:
        value = await self._ask(lambda: self._nodes.value(key))
        return None if value is None else value.data

    async def _ask(self, call: Callable[[], Awaitable[Result]]) -> Result:
        return await patiently(call, ANSWER_SECONDS, "who serves the databases")
