"""A family that another node owns: its files here are brought up to its stream, without a claim.

    hint: the owner has appended ─► read on ─► files ─► the databases that run on them
    this node is to own the family ─► all of them end ─► position ─► `family` reads the rest, claims

So whoever follows a family has what the owner's files have, and can take it over with a few more
messages. What is in the stream is durable and never changes; who only reads needs no right to it.

The files have one writer: this object, until it has ended. A database that runs on one of them
makes its own checkpoints there, and pins of its own; a branch is made of its parent's pages, so the
parent pins for it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, TypeVar

import msgspec
import trio

from qserver.durability.log_over import LogOver
from qserver.durability.port import Log
from qserver.errors import DatabaseMoved, DataCorrupted, LogFailed
from qserver.replication.copies import CatchUp, Copies, Running
from qserver.replication.patience import patiently
from qserver.replication.port import Stream
from qserver.replication.position import Position, save_position
from qserver.replication.reader import Reader

LOOK_SECONDS: Final = 15.0
"""Without a hint the stream is looked at so often: the owner may not reach this node."""
LAG_SECONDS: Final = 0.02
"""Before a node of the log is asked again that does not have what the owner has appended."""
POSITION_BYTES: Final = 4 << 20
"""After so many bytes of messages the position is written."""

Result = TypeVar("Result")


class FollowedLog(LogOver):
    """The file of a database that is followed. Only `FollowedFamily` appends to it."""

    def append(self, records: object) -> Awaitable[None]:
        raise AssertionError("a follower writes no records")

    async def last_page(self) -> int:
        return max(0, await self.own.last_page())  # the position is a page, too, and none of a tree


class Member:
    """Somebody who uses the file of one database."""

    def __init__(self, end: Callable[[], None]) -> None:
        self.end = end
        """Asks its user to leave soon."""
        self.has_left = trio.Event()


class FollowedFamily:
    """Start `run` in a nursery. It ends by an error when it has to begin anew."""

    def __init__(
        self, root: str, stream: Stream, copies: Copies, position: Position, seconds: float
    ) -> None:
        """`seconds`: how long the nodes of the log may be away."""
        self.root = root
        self.members: dict[str, Member] = {}
        self._running: dict[str, Running] = {}
        self._stream = stream
        self._copies = copies
        self._seconds = seconds
        self._done = position
        self._missing: set[str] = set()
        self._catch_up = CatchUp(copies, dict(position.versions), (), self._missing)
        self._catch_up.running = self._running
        self._catch_up.end_use = self._end_use
        self._reader = Reader(stream, position)
        self._logged = position.logged
        self._is_whole = True
        """Whether the files have all of the messages up to the position, and no part of others."""
        self._saved_at = 0
        """The bytes that were read when the position was written."""
        self._lock = trio.Lock()
        """Held while something is read and written."""
        self._wanted = position.sequence
        self._news = trio.Event()

    @property
    def missing(self) -> set[str]:
        """Databases that are in the stream, and whose files cannot be made here."""
        return self._missing

    @property
    def position(self) -> Position:
        versions, logged = dict(self._catch_up.versions), self._logged + self._reader.size
        return msgspec.structs.replace(self._done, versions=versions, logged=logged)

    def look(self, sequence: int = 0) -> None:
        """The owner has appended up to a message."""
        self._wanted = max(self._wanted, sequence)
        self._news.set()

    async def run(self) -> None:
        """Follow the stream for ever.

        Raises LogFailed if its nodes are away for long, DataCorrupted if it does not fit the files,
        or has lost what they lack: a base may have that.
        """
        while True:
            with trio.move_on_after(LOOK_SECONDS):
                await self._news.wait()
            self._news = trio.Event()
            await self.read_on()
            while self._reader.sequence < self._wanted:
                await trio.sleep(LAG_SECONDS)
                await self.read_on()

    async def check(self) -> None:
        """Raise DataCorrupted if the stream does not fit the position."""
        await self._ask(self._reader.check_last)

    async def read_on(self) -> None:
        """Bring the files up to the end of what can be read."""
        async with self._lock:
            if not self._is_whole:  # what was read and not written is not read again
                raise LogFailed(f"the family {self.root} was cut short, and is followed anew")
            reader = self._reader
            while (wholes := await self._ask(reader.read_on)) is not None:
                self._is_whole = False
                await self._catch_up.apply(wholes)
                if self._missing:
                    names = ", ".join(sorted(self._missing))
                    raise DataCorrupted(
                        f"the files of {names} are missing, and cannot be made here"
                    )
                if wholes:
                    last = wholes[-1]
                    self._done = Position(last.sequence, last.checksum, last.entry.claim)
                self._is_whole = True
                if reader.size - self._saved_at >= POSITION_BYTES:
                    await self._save_position()
            if reader.sequence < self._wanted:
                await self._check_not_purged()

    async def _check_not_purged(self) -> None:
        if (await self._ask(self._stream.bounds)).first > self._reader.sequence + 1:
            raise LogFailed(f"the stream {self.root} was purged; a base has what is missing here")

    @asynccontextmanager
    async def holding(self, name: str) -> AsyncIterator[Log]:
        """Hold the file of a database, whole; raise DatabaseMoved if it is not there yet."""
        async with AsyncExitStack() as stack:
            if name != self.root and not await self._copies.files.has_file(name):
                await self.read_on()  # it may be a new branch
            async with self._lock:  # nobody makes or removes it now
                if name != self.root and not await self._copies.is_whole(name):
                    raise DatabaseMoved(f"{name} cannot be followed yet", hint="Try again.")
                hold = self._copies.hold_whole(name, may_make=name == self.root)
                log = await stack.enter_async_context(hold)
            yield log

    async def begin(self, name: str, start: Callable[[], Awaitable[Running]]) -> None:
        """Let a database begin with what its file has; from then on it gets what the file gets."""
        async with self._lock:
            self._running[name] = await start()

    def ended(self, name: str) -> None:
        """A database does not run any more."""
        self._running.pop(name, None)

    async def _end_use(self, name: str) -> None:
        """Wait until nobody uses the file of a database that is to be removed."""
        member = self.members.get(name)
        if member is not None:
            member.end()
            await member.has_left.wait()

    async def save_position(self) -> None:
        async with self._lock:
            await self._save_position()

    async def _save_position(self) -> None:
        """Write down how far the files are, after those that are open were synced."""
        if not self._is_whole:
            return  # it was cut short: what is written is older, and true
        position = self.position
        await self._copies.sync_open((self.root, *position.versions))  # also those of ancestors
        if await self._copies.files.has_file(self.root):
            async with self._copies.hold(self.root) as own:
                await save_position(own, position)
        self._saved_at = self._reader.size

    async def _ask(self, call: Callable[[], Awaitable[Result]]) -> Result:
        return await patiently(call, self._seconds, f"stream {self.root}")

    def __repr__(self) -> str:
        return f"the family {self.root}, followed up to message {self._done.sequence}"
