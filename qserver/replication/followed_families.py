"""The families that this process follows, each for as long as somebody uses one of its databases.

    follow ─► position, base, what is new in the stream ─► files ─► a task keeps them up to it
    the last user leaves, or this process is to own the family ─► position

A family is followed or owned, never both: its files have one writer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio

from qserver.durability.branch_log import BranchLog
from qserver.durability.port import Log
from qserver.errors import DatabaseMoved, QserverError
from qserver.replication.copies import Copies
from qserver.replication.following import FollowedFamily, FollowedLog, Member


class FollowedFamilies:
    def __init__(
        self,
        copies: Copies,
        begin: Callable[[str], Awaitable[FollowedFamily]],
        is_owned: Callable[[str], bool],
        start_soon: Callable[[Callable[[], Awaitable[None]]], None],
        report: Callable[[str, Exception], None],
    ) -> None:
        """`begin` brings the files of a family up to its stream, if nobody uses them."""
        self._copies = copies
        self._begin = begin
        self._is_owned = is_owned
        self._start_soon = start_soon
        self._report = report
        self._followed: dict[str, _Following] = {}

    @asynccontextmanager
    async def follow(
        self, root: str, name: str, end: Callable[[], None]
    ) -> AsyncIterator[tuple[FollowedFamily, Log]]:
        """Have the file of a database, which follows its stream.

        `end` asks to leave soon: who waits for this call must be cancelled then.

        Raises DatabaseMoved if this process is to own the family, LogFailed, DataCorrupted.
        """
        following = self._followed.get(root) or _Following(root)
        if self._is_owned(root) or following.is_ending:
            raise DatabaseMoved(f"{root} is not followed here now", hint="Try again.")
        assert name not in following.members, "one replica at a time uses a file"
        self._followed[root] = following
        following.members[name] = Member(end)
        try:
            async with following.lock:
                if following.family is None:
                    following.family = await self._begin(root)
                    following.family.members = following.members
                    following.over = trio.Event()
                    self._start_soon(following.keep(self._report))
            async with following.family.holding(name) as log:
                yield following.family, log if isinstance(log, BranchLog) else FollowedLog(log)
        finally:
            with trio.CancelScope(shield=True):
                await self._leave(following, name)

    async def _leave(self, following: _Following, name: str) -> None:
        following.members.pop(name).has_left.set()
        if following.members:
            return
        following.is_ending = True
        following.scope.cancel()
        await following.over.wait()
        if following.family is not None:
            try:
                await following.family.save_position()
            except QserverError as error:  # then more is to be read again
                self._report(f"the position of the family {following.root} is not written", error)
        del self._followed[following.root]
        following.has_ended.set()

    async def end(self, root: str) -> None:
        """Return when a family is not followed any more, and its files are not used."""
        following = self._followed.get(root)
        if following is not None:
            following.end()
            await following.has_ended.wait()

    def look(self, root: str, sequence: int) -> None:
        """The owner of a family has appended up to a message."""
        following = self._followed.get(root)
        if following is not None and following.family is not None:
            following.family.look(sequence)

    def __repr__(self) -> str:
        return f"{len(self._followed)} families that others own"


class _Following:
    def __init__(self, root: str) -> None:
        self.root = root
        self.members: dict[str, Member] = {}
        self.lock = trio.Lock()
        """Held while it begins."""
        self.family: FollowedFamily | None = None
        self.scope = trio.CancelScope()
        self.over = trio.Event()
        self.over.set()
        self.is_ending = False
        self.has_ended = trio.Event()

    def keep(self, report: Callable[[str, Exception], None]) -> Callable[[], Awaitable[None]]:
        """Return the task that follows the stream; if that fails, all users are asked to leave."""

        async def run() -> None:
            assert self.family is not None
            try:
                with self.scope:
                    await self.family.run()
            except QserverError as error:
                report(f"the family {self.root} is followed anew", error)
                self.end()
            finally:
                self.over.set()

        return run

    def end(self) -> None:
        self.is_ending = True
        for member in list(self.members.values()):
            member.end()
