"""The logs of all databases on a replicated log: implements the control plane's port.

    open ─► the family joins: position, base, what is new in the stream, claim ─► the file
    close ─► the file ─► the last member of a family writes its position
    follow ─► the same without a claim, while another process owns the family

A family is joined as a whole, and left when none of its databases is open. Then another process may
claim it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Final, NamedTuple

import trio

from qserver.durability.kept import KeptCheckpoint
from qserver.durability.open_logs import OpenLogs
from qserver.durability.port import Log
from qserver.errors import DataCorrupted, LogFailed, LogTaken, QserverError
from qserver.replication.bases import Bases
from qserver.replication.copies import Copies, LocalFiles, end_of
from qserver.replication.family import APPEND_SECONDS, Family, State
from qserver.replication.followed_families import FollowedFamilies
from qserver.replication.following import FollowedFamily
from qserver.replication.messages import Branch, Removed
from qserver.replication.patience import Result, patiently
from qserver.replication.port import LogNodes, Stream
from qserver.replication.position import BEGINNING, Position, load_position
from qserver.replication.replicated_log import ReplicatedLog

Report = Callable[[str, Exception], None]

JOINS_MAX: Final = 5
"""How often a family is joined anew, because a base was made while its stream was read."""


class StreamStatistics(NamedTuple):
    root: str
    messages: int
    """The sequence of the last one."""
    logged: int
    """Bytes since the last base."""
    base: int
    """The message at which that was made; 0 if there is none."""


class ReplicatedLogs:
    """Start `run` in a nursery; before and after it, nothing can be opened."""

    def __init__(
        self,
        files: LocalFiles,
        nodes: LogNodes,
        new_claim: Callable[[], str],
        report: Report,
        *,
        append_seconds: float = APPEND_SECONDS,
    ) -> None:
        self.root_of: Callable[[str], Awaitable[str]] = _alone
        """Returns the name of the database whose family a database belongs to."""
        self.check_owner: Callable[[str], Awaitable[Callable[[], bool]]] = _owned
        """Returns when this node may claim a family, with what says whether it still may.

        Raises if it may not."""
        self.copies = Copies(files)
        self._nodes = nodes
        self._new_claim = new_claim
        self._report = report
        self._append_seconds = append_seconds
        self._nursery: trio.Nursery | None = None
        self._families: dict[str, _Joined] = {}
        self._logs = OpenLogs(self._open_one, self._close_one)
        self._bases = Bases(nodes, self.copies, new_claim, append_seconds)
        self._making: dict[str, _Making] = {}
        """The families of which bases are made, or wait for that."""
        self._one_base = trio.Lock()
        """Held while a base is made: one at a time."""
        self.followed = FollowedFamilies(
            self.copies,
            self._begin_following,
            self._families.__contains__,
            self._start_soon,
            report,
        )
        self.replaced: Callable[[str], None] = _ignored
        """Called when the files of a family were replaced by a base."""
        self.appended: Callable[[str, int], None] = _ignored
        """Called when stream and files of a family that is owned here have a message."""

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            task_status.started()
            try:
                await trio.sleep_forever()
            finally:
                self._nursery = None

    def open(self, name: str) -> AbstractAsyncContextManager[Log]:
        return self._logs.open(name)

    async def branch(
        self, name: str, parent: str, parent_log: Log, kept: KeptCheckpoint, version: int
    ) -> None:
        """Make the log of a branch: first its message, then its file."""
        async with self._joined(parent) as family:
            message = Branch(name, parent, version)
            await family.publish(message)
            await self.copies.begin(message, parent_log, kept)

    async def remove(self, name: str) -> None:
        """Remove a log that is not open; with the root of a family, all that there is of it."""
        assert not self._logs.is_open(name), f"the log {name} is open"
        root = await self.root_of(name)
        await self.followed.end(root)
        if name != root:
            async with self._joined(root) as family:
                await family.publish(Removed(name))
        else:
            if root in self._making:
                making = self._making[root]
                making.scope.cancel()
                await making.done.wait()
            await self._ask(lambda: self._nodes.remove_stream(root), root)
            await self._bases.remove(root)
        await self.copies.remove_file(name)

    def statistics(self) -> list[StreamStatistics]:
        """Return those of the streams that this process writes."""
        return [
            StreamStatistics(
                root, family.position.sequence, family.logged, self._bases.newest.get(root, 0)
            )
            for root, joined in self._families.items()
            if (family := joined.family) is not None
        ]

    def families(self) -> list[str]:
        """Return the roots of families that are joined, or are being joined."""
        return list(self._families)

    def members(self, root: str) -> list[str]:
        """Return which databases of a family are open."""
        joined = self._families.get(root)
        return [] if joined is None or joined.family is None else list(joined.family.members)

    def is_taken(self, root: str) -> bool:
        """Return whether another process has claimed a family that is open here."""
        joined = self._families.get(root)
        return joined is not None and joined.family is not None and joined.family.is_taken

    def stop_base(self, root: str) -> None:
        """Give up the base of a family that is being made: another node will make one."""
        if root in self._making:
            self._making[root].scope.cancel()

    @asynccontextmanager
    async def follow(
        self, name: str, end: Callable[[], None]
    ) -> AsyncIterator[tuple[FollowedFamily, Log]]:
        """Have the file of a database that another process owns, see `FollowedFamilies.follow`."""
        async with self.followed.follow(await self.root_of(name), name, end) as found:
            yield found

    async def _begin_following(self, root: str) -> FollowedFamily:
        position = await self._position(root)
        stream = await self._ask(lambda: self._nodes.find_stream(root), root)
        if stream is None:
            raise LogFailed(f"the log has no stream of {root}")
        found = await self._load_if_needed(root, stream, position)
        family = FollowedFamily(root, stream, self.copies, found, self._append_seconds)
        await family.check()
        try:
            await family.read_on()
        except DataCorrupted:
            if not family.missing:
                raise
            based = await self._bases.load_missing(root, stream, family.position, family.missing)
            if based is None:
                raise
            family = FollowedFamily(root, stream, self.copies, based, self._append_seconds)
            await family.read_on()
        return family

    # --- bases ---

    async def make_base(self, name: str) -> None:
        """Make a base of a database's family, unless one is being made."""
        root = await self.root_of(name)
        if root in self._making:
            return
        making = self._making[root] = _Making(trio.CancelScope(), trio.Event())
        try:
            with making.scope:
                async with self._one_base, self._joined(root) as family:
                    replaced = await self._bases.make(family)
                    family.logged -= replaced
        finally:
            del self._making[root]
            making.done.set()

    def _consider_base(self, family: Family) -> None:
        """Have a base made if it is due. If that fails, the next position is the next occasion."""
        if self._nursery is None or family.root in self._making:
            return
        if self._bases.is_due(family.logged, family.versions):
            self._nursery.start_soon(self._make_base_or_report, family.root)

    async def _make_base_or_report(self, root: str) -> None:
        try:
            await self.make_base(root)
        except QserverError as error:
            self._report(f"the base of the family {root} is not made", error)

    # --- members ---

    async def _open_one(self, name: str, may_make: bool) -> ReplicatedLog:
        root = await self.root_of(name)
        async with AsyncExitStack() as stack:
            family = await stack.enter_async_context(self._joined(root))
            if name != root and name not in family.versions:
                await family.doubt()  # a later owner may have made it
            is_new = may_make and name == root and name not in family.versions
            own = await stack.enter_async_context(self.copies.hold(name, may_make=is_new))
            known = family.versions.get(name, 0)
            end = await end_of(own, known)
            if end != known:
                raise DataCorrupted(
                    f"the file of {name} ends with version {end}, and the log with {known}",
                    hint="The log lost what it had acknowledged, or the file was written by a"
                    " server without the log. Nothing is shown. See qserver cluster rescue.",
                )
            family.members[name] = own
            log = ReplicatedLog(name, own, family)
            log.held = stack.pop_all()
            return log
        raise AssertionError("the stack does not swallow errors")

    async def _close_one(self, name: str, log: ReplicatedLog) -> None:
        """Close a file; the position first, if it is the last one of its family."""
        family = log.family
        if len(family.members) == 1 and family.state is State.OWNED:
            try:
                await family.save_position()
            except QserverError as error:  # then a start has more to read again
                self._report(f"the position of the family {family.root} is not written", error)
        del family.members[name]
        await log.held.aclose()

    # --- families ---

    @asynccontextmanager
    async def _joined(self, name: str) -> AsyncIterator[Family]:
        """Be a member of a database's family: it is ours, and its files have all of its stream."""
        root = await self.root_of(name)
        joined = self._families.setdefault(root, _Joined())
        joined.users += 1
        try:
            async with joined.lock:
                for _ in range(JOINS_MAX):
                    family = await self._settled(root, joined)
                    if family is not None:
                        break
                else:
                    raise LogFailed(f"bases of {root} are made faster than they are read")
            yield family
        finally:
            joined.users -= 1
            if not joined.users and self._families.get(root) is joined:
                del self._families[root]

    async def _settled(self, root: str, joined: _Joined) -> Family | None:
        """Return the family with all of its stream; None if it is to begin again, with a base."""
        family = joined.family = joined.family or await self._join(root)
        try:
            await family.settle()
        except DataCorrupted:
            again = joined.family = await self._join_by_base(family)
            if again is None:
                raise
            await again.settle()
            return again
        except LogFailed:
            if family.state is State.OPENING:  # it may have to begin with a base
                joined.family = None
                if family.is_overtaken:
                    return None
            raise
        except LogTaken:
            if not family.members:  # nobody runs on it: who waits asks anew
                joined.family = None
            raise
        return family

    async def _join(self, root: str) -> Family:
        may_claim = await self.check_owner(root)
        await self.followed.end(root)
        position = await self._position(root)
        stream = await self._ask(lambda: self._nodes.find_stream(root), root)
        if stream is None:
            if position.sequence or await self._bases.manifest(root) is not None:
                raise DataCorrupted(
                    f"the log has no stream of {root}, whose file or base is a copy of one",
                    hint="The log's nodes lost it, or are those of another cluster.",
                )
            stream = await self._ask(lambda: self._nodes.open_stream(root), root)
        else:
            position = await self._load_if_needed(root, stream, position)
        return self._family(root, stream, position, may_claim)

    async def _load_if_needed(self, root: str, stream: Stream, local: Position) -> Position:
        position = await self._bases.load_if_needed(root, stream, local)
        if position is not local:
            self.replaced(root)
        return position

    async def _join_by_base(self, failed: Family) -> Family | None:
        """Join anew if a base has the files that cannot be made here; None if there is none."""
        if not failed.missing or failed.members:
            return None
        root, stream = failed.root, failed.stream
        position = await self._bases.load_missing(root, stream, failed.position, failed.missing)
        if position is None:
            return None
        self.replaced(root)
        return self._family(root, stream, position, failed.may_claim)

    def _family(
        self, root: str, stream: Stream, position: Position, may_claim: Callable[[], bool]
    ) -> Family:
        family = Family(
            root,
            stream,
            self.copies,
            position,
            self._new_claim,
            self._start_soon,
            append_seconds=self._append_seconds,
        )
        family.may_claim = may_claim
        family.saved = lambda: self._consider_base(family)
        family.appended = lambda sequence: self.appended(root, sequence)
        return family

    async def _ask(self, call: Callable[[], Awaitable[Result]], root: str) -> Result:
        return await patiently(call, self._append_seconds, f"stream {root}")

    async def _position(self, root: str) -> Position:
        if not await self.copies.files.has_file(root):
            return BEGINNING
        async with self.copies.hold(root) as own:
            return load_position(own)

    def _start_soon(self, work: Callable[[], Awaitable[None]]) -> None:
        if self._nursery is None:
            raise LogFailed("the service is starting or stopping", hint="Try again.")
        self._nursery.start_soon(work)

    def __repr__(self) -> str:
        return f"{len(self._families)} families on a replicated log; {self._logs!r}"


def _ignored(*_: object) -> None:
    """Nobody wants to know."""


async def _owned(root: str) -> Callable[[], bool]:
    """No other node may claim it."""
    return _for_ever


def _for_ever() -> bool:
    return True


async def _alone(name: str) -> str:
    """Every database is a family by itself."""
    return name


class _Making(NamedTuple):
    scope: trio.CancelScope
    done: trio.Event


class _Joined:
    def __init__(self) -> None:
        self.users = 0
        self.lock = trio.Lock()
        """Held while the family is joined."""
        self.family: Family | None = None
