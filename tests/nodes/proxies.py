"""TCP proxies that can be cut: what is between two processes, without the rights to drop packets.

    caller ──► proxy ──► callee         silent   nothing passes, connections stay: bytes are kept
                                        reset    connections end, new ones end at once
                                        unheard  what the callee says does not pass

Bytes that were kept pass when the cut ends, as TCP would send them again. `who` tells from the
first bytes of a connection who the caller is, so that one of several can be cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple

import trio

RECEIVE_BYTES: Final = 65_536
NOBODY: Final = -1
_GREETING: Final = Struct(">4sBBI")
"""How a link of nodes begins: its mark, the version, what it is for, the number of the caller."""


Way = tuple[object, object]
"""Who speaks and who hears: a caller and a callee, or the reverse."""


class Address(NamedTuple):
    host: str
    port: int


class Cuts:
    """Which ways are cut now."""

    def __init__(self) -> None:
        self._cut: dict[Way, bool] = {}
        self._changed = trio.Event()

    def cut(self, caller: object, callee: object, *, silent: bool) -> None:
        self._cut[caller, callee] = silent
        self._tell()

    def mute(self, callee: object, caller: object) -> None:
        """Let nothing pass of what a callee says on connections of a caller."""
        self._cut[_Said(callee), caller] = True
        self._tell()

    def mend_all(self) -> None:
        self._cut.clear()
        self._tell()

    def _tell(self) -> None:
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    def is_reset(self, way: Way) -> bool:
        return self._cut.get(way) is False

    async def until_whole(self, *ways: Way) -> None:
        while any(way in self._cut for way in ways):
            await self._changed.wait()

    async def until_reset(self, way: Way) -> None:
        while not self.is_reset(way):
            await self._changed.wait()


class _Said(NamedTuple):
    """What is said by a callee: its own calls are another way."""

    callee: object


class Proxy:
    """Passes connections on to `target`; `caller` is who connects, or is read from the link."""

    def __init__(
        self, cuts: Cuts, listen: Address, target: Address, callee: object, caller: object = None
    ) -> None:
        self._cuts = cuts
        self.listen = listen
        self._target = target
        self._callee = callee
        self._caller = caller

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        listeners = await trio.open_tcp_listeners(self.listen.port, host=self.listen.host)
        task_status.started()
        await trio.serve_listeners(self._serve, listeners)

    async def _serve(self, near: trio.SocketStream) -> None:
        async with near:
            try:
                first = b""
                caller = self._caller
                if caller is None:
                    first = await near.receive_some(RECEIVE_BYTES)
                    caller = caller_of(first)
                await self._pass(near, first, (caller, self._callee))
            except (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
                pass  # one of them has ended

    async def _pass(self, near: trio.SocketStream, first: bytes, way: Way) -> None:
        if self._cuts.is_reset(way):
            return
        await self._cuts.until_whole(way)
        async with await trio.open_tcp_stream(*self._target) as far:
            await far.send_all(first)
            async with trio.open_nursery() as watched:
                watched.start_soon(self._end_when_reset, way, watched.cancel_scope)
                async with trio.open_nursery() as both:
                    both.start_soon(self._copy, near, far, [way], watched.cancel_scope)
                    back = (_Said(way[1]), way[0])
                    both.start_soon(self._copy, far, near, [way, back], watched.cancel_scope)
                watched.cancel_scope.cancel()

    async def _end_when_reset(self, way: Way, scope: trio.CancelScope) -> None:
        await self._cuts.until_reset(way)
        scope.cancel()

    async def _copy(
        self,
        source: trio.SocketStream,
        sink: trio.SocketStream,
        ways: Sequence[Way],
        scope: trio.CancelScope,
    ) -> None:
        """Copy until the source ends; then the sink is told, or if something broke, both end."""
        try:
            while data := await source.receive_some(RECEIVE_BYTES):
                await self._cuts.until_whole(*ways)
                await sink.send_all(data)
            await self._cuts.until_whole(*ways)
            await sink.send_eof()
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            scope.cancel()


def caller_of(first: bytes) -> int:
    if len(first) < _GREETING.size:
        return NOBODY
    number: int = _GREETING.unpack_from(first)[3]
    return number
