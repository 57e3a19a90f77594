"""The barrier: a change of `control` that is answered holds in every process.

    change is durable here ─► sent to all ─► each says: applied ─► answered

So a revoked key fails on the next request to any process, a new database is found by all, and the
owner removes files only after no process can look their database up.

All processes count, also one that is away: it may still serve with what it knows, or begin with
that. A process that does not say anything for long is named in the error; the change stands. Which
processes there are may change: a node whose lease has ended answers nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import trio

from qserver.errors import ChangeUnconfirmed
from qserver.limits import BARRIER_SECONDS_MAX

UNKNOWN = -1


class Barrier:
    def __init__(self, others: Callable[[], Iterable[int]]) -> None:
        """`others` returns all processes that count now, but this one."""
        self._others = others
        self._applied: dict[int, int] = {}
        self._following: dict[int, object] = {}
        self._changed = trio.Event()
        self.seconds = BARRIER_SECONDS_MAX

    def applied(self, process: int, version: int) -> None:
        """Note the version up to which a process has applied all changes."""
        self._applied[process] = version
        self.look_again()

    def begin(self, process: int) -> object:
        """Note that a process begins to follow; return what `left` needs."""
        self._applied[process] = UNKNOWN
        following = self._following[process] = object()
        return following

    def left(self, process: int, following: object) -> None:
        """Note that nothing is known of a process any more: nobody is answered without it."""
        if self._following.get(process) is following:  # it has not begun anew
            self._applied[process] = UNKNOWN

    def behind(self, version: int) -> list[int]:
        applied = self._applied
        return [each for each in self._others() if applied.get(each, UNKNOWN) < version]

    async def wait(self, version: int, seconds: float | None = None) -> None:
        """Return when all processes have applied a version; raise if one does not in time."""
        with trio.move_on_after(self.seconds if seconds is None else seconds):
            while self.behind(version):
                await self._changed.wait()
        if behind := self.behind(version):
            raise ChangeUnconfirmed(
                f"the change was made, but process {behind[0]} has not confirmed it",
                hint="Look whether it is as you want it, and send it again if not.",
            )

    def look_again(self) -> None:
        """Something has changed that somebody may wait for."""
        self._changed.set()
        self._changed = trio.Event()

    def __repr__(self) -> str:
        return f"a barrier for {len(list(self._others()))} processes"
