"""The versions of a database one after the other, for readers of its changes.

    a round is durable ─► window: the newest versions ─► every reader that has kept up
                          past: from the log          ─► a reader that begins, or was away

A version is made into changes once, and into bytes once for each filter, however many read it. The
window is filled while somebody reads. A version that it lacks comes from the past, which the caller
brings: it rolls an older snapshot forward by the records of the log.

A reader goes from version to version, by their numbers, so it can leave none out and see none
twice, wherever each comes from.
"""

from __future__ import annotations

from collections import deque
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Generator,
    Hashable,
    Mapping,
    Sequence,
)
from contextlib import aclosing, closing
from typing import Any, Final, Protocol, TypeVar

import msgspec
import trio

from qserver.durability.pauses import in_steps
from qserver.engine.messages import Append
from qserver.engine.snapshot_source import SnapshotSource
from qserver.engine.yielding import Stint, yield_to_others
from qserver.limits import FEED_CHANGES_MAX, FEED_VERSIONS_MAX
from qserver.storage.changes import Changes, net_changes, with_statements
from qserver.storage.pieces import at_once
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Definitions, Transaction
from qserver.storage.writes import Writes, count_changes
from qserver.values.relations import Definition

Encoded = TypeVar("Encoded")

FILTERS_KEPT_MAX: Final = 8
"""Filters for which a version is kept as bytes, for readers with the same filter."""

CHANGES_MADE_AT_ONCE: Final = 250
"""Changes of a version that are made and encoded without yielding: about a millisecond."""

RUN_VERSIONS_FIRST: Final = 8
"""Versions of the past that are made together for a reader that begins: it may want no more. Each
further run is twice as long."""

RUN_VERSIONS, RUN_BYTES, RUNS_KEPT_MAX = 500, 256 * 1024, 8
"""How long a run becomes at most, in versions, or until their records have so many bytes; and how
many runs are kept for other readers, if they are no larger."""


def keep(made: dict[Hashable, object], key: Hashable, found: object) -> None:
    """Keep what was made for a filter; there may be many."""
    if len(made) >= FILTERS_KEPT_MAX:
        made.clear()
    made[key] = found


class FedVersion:
    """One version: what has changed since the one before, and what was made of that."""

    __slots__ = (
        "_changes",
        "_definitions",
        "_encoded",
        "_lock",
        "_making",
        "record_bytes",
        "size",
        "time",
        "version",
    )

    def __init__(
        self,
        before: Snapshot,
        snapshot: Snapshot,
        writes: Writes,
        catalog_changes: Mapping[str, Definition | None],
        definitions: Sequence[Definitions] = (),
        record_bytes: int = 0,
    ) -> None:
        """`record_bytes` are those of its record in the log, if it comes from there."""
        self.version = snapshot.version
        self.record_bytes = record_bytes
        self.time = snapshot.time
        self.size = 1 + count_changes(writes) + len(catalog_changes)
        made = Transaction(before)
        made.writes, made.catalog = writes, snapshot.catalog
        made.catalog_changes, made.definitions = catalog_changes, tuple(definitions)
        self._making: Transaction | None = made
        self._definitions = definitions
        self._changes: Changes = []
        self._encoded: dict[Hashable, object] = {}
        self._lock = trio.Lock()

    async def changes(self) -> Changes:
        """Return the changes of rows and definitions; made when somebody first asks."""
        if self._making is not None:
            if self.size <= CHANGES_MADE_AT_ONCE:
                self._note(at_once(self._net_changes(self._making)))
            else:
                async with self._lock:  # one makes them, the others wait
                    if self._making is not None:
                        self._note(await in_steps(self._net_changes(self._making), yield_to_others))
        return self._changes

    @staticmethod
    def _net_changes(made: Transaction) -> Generator[None, None, Changes]:
        return net_changes(made, lambda row: None)

    def _note(self, found: Changes) -> None:
        self._changes = with_statements(found, self._definitions)
        self._making = None  # the snapshots are no longer needed

    async def encoded(
        self, key: Hashable, encode: Callable[[Changes], Generator[None, None, Encoded]]
    ) -> Encoded:
        """Return what the steps of `encode` make of the changes; made once for each key."""
        if key not in self._encoded:
            changes = await self.changes()
            if self.size <= CHANGES_MADE_AT_ONCE:
                keep(self._encoded, key, at_once(encode(changes)))
            else:
                async with self._lock:
                    if key not in self._encoded:
                        made = await in_steps(encode(changes), yield_to_others)
                        keep(self._encoded, key, made)
        return self._encoded[key]  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"version {self.version} of a feed"


class Past(Protocol):
    def after(self, version: int) -> AsyncGenerator[FedVersion, None]:
        """Yield the versions behind this one, in order; raise if they are no longer kept."""


class Run:
    """Versions of the past, one after the other, and what readers have made of them together."""

    __slots__ = ("_lock", "_made", "first", "last", "versions")

    def __init__(self, versions: Sequence[FedVersion]) -> None:
        self.versions = versions
        self.first, self.last = versions[0].version, versions[-1].version
        self._made: dict[Hashable, object] = {}
        self._lock = trio.Lock()

    def behind(self, version: int) -> Sequence[FedVersion]:
        return self.versions[version + 1 - self.first :]

    async def made(
        self, key: Hashable, make: Callable[[Sequence[FedVersion]], Awaitable[Encoded]]
    ) -> Encoded:
        """Return what `make` makes of the versions; made once for each key."""
        if key not in self._made:
            async with self._lock:  # one makes it, the others wait
                if key not in self._made:
                    keep(self._made, key, await make(self.versions))
        return self._made[key]  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"versions {self.first} to {self.last}"


class SharedPast:
    """Makes runs of versions of the past, one at a time, for all readers that need them.

    Readers that come back together, as after a restart, begin at about the same version: the first
    has a run made, and the others find it. Runs go with the last reader of the past. They hold
    changes, not snapshots: those would keep pages that history could forget.
    """

    def __init__(self, past: Past) -> None:
        self._past = past
        self._runs: list[Run] = []
        self._readers = 0
        self._lock = trio.Lock()

    def reader(self) -> PastReader:
        self._readers += 1
        return PastReader(self)

    def leave(self) -> None:
        self._readers -= 1
        if not self._readers:
            self._runs.clear()

    async def after(self, version: int) -> AsyncGenerator[FedVersion, None]:
        """Yield what `past.after` does."""
        with closing(self.reader()) as reader:
            while (run := await reader.run_behind(version)) is not None:
                for fed in run.behind(version):
                    version = fed.version
                    yield fed

    async def run_of(self, version: int, most: int) -> Run | None:
        """Return a run that has this version; None if it is not durable."""
        found = self._find(version)
        if found is None:
            async with self._lock:
                found = self._find(version)
                if found is None:
                    found = await self._make(version, most)
        return found

    def _find(self, version: int) -> Run | None:
        for index, run in enumerate(self._runs):
            if run.first <= version <= run.last:
                self._runs.append(self._runs.pop(index))  # the one unused for longest goes first
                return run
        return None

    async def _make(self, version: int, most: int) -> Run | None:
        versions: list[FedVersion] = []
        size, stint = 0, Stint()
        async with aclosing(self._past.after(version - 1)) as earlier:
            async for fed in earlier:
                await fed.changes()
                versions.append(fed)
                size += fed.record_bytes
                if len(versions) >= most or size >= RUN_BYTES:
                    break
                await stint.part_done()
        if not versions:
            return None
        run = Run(versions)
        if size <= 2 * RUN_BYTES:
            self._runs.append(run)
            del self._runs[:-RUNS_KEPT_MAX]
        return run

    def __repr__(self) -> str:
        return f"{len(self._runs)} runs of versions"


class PastReader:
    """The way of one reader through the past. Whoever has opened it closes it.

    Each run is a turn among all long work (see `yielding.py`). Otherwise a hundred readers that
    catch up would each do something in every pass of the loop, and commits would wait for all.
    """

    __slots__ = ("_most", "_shared")

    def __init__(self, shared: SharedPast) -> None:
        self._shared: SharedPast | None = shared
        self._most = min(RUN_VERSIONS_FIRST, RUN_VERSIONS)

    async def run_behind(self, version: int) -> Run | None:
        """Return a run that has the next version, when it is the reader's turn to look at it.

        None if that version is not durable.
        """
        assert self._shared is not None, "it is open"
        run = await self._shared.run_of(version + 1, self._most)
        self._most = min(2 * self._most, RUN_VERSIONS)
        await yield_to_others()
        return run

    def close(self) -> None:
        shared, self._shared = self._shared, None
        if shared is not None:
            shared.leave()


class FeedStatistics(msgspec.Struct, frozen=True):
    readers: int
    versions: int


class Feed:
    """The window of the newest versions, and those who wait for the next."""

    def __init__(self, snapshots: SnapshotSource) -> None:
        self._snapshots = snapshots
        self._window: deque[FedVersion] = deque()
        self._size = 0
        self._readers = 0
        self._grown = trio.Event()
        self.shared: dict[Hashable, Any] = {}
        """What readers have made of the window together; gone when the last of them is."""

    # --- as an observer ---

    def committed(self, before: Snapshot, append: Append) -> None:
        if not self._readers:
            return
        made = append.writes, append.catalog_changes, append.definitions
        fed = FedVersion(before, append.snapshot, *made)
        if self._window and self._window[-1].version + 1 != fed.version:
            self._clear()  # versions in between came into the log when a generation ended
        self._window.append(fed)
        self._size += fed.size
        while len(self._window) > FEED_VERSIONS_MAX or (
            self._size > FEED_CHANGES_MAX and len(self._window) > 1
        ):
            self._size -= self._window.popleft().size
        self._tell()

    def restarting(self, durable: Snapshot) -> None:
        """Nothing to do: a version that is missed leaves a gap, which the past fills."""

    def changed(self) -> None:
        self._tell()

    def _tell(self) -> None:
        self._grown.set()
        self._grown = trio.Event()

    def _clear(self) -> None:
        self._window.clear()
        self._size = 0

    # --- for readers ---

    def open(self) -> None:
        """Begin to fill the window; a reader calls `close` at its end."""
        self._readers += 1

    def close(self) -> None:
        self._readers -= 1
        if not self._readers:
            self._clear()
            self.shared.clear()

    def newest(self) -> int:
        """Return the newest durable version; 0 while it is unknown."""
        snapshot = self._snapshots.take()
        return 0 if snapshot is None else snapshot.version

    @property
    def oldest(self) -> int:
        """The first version in the window; 0 if it is empty."""
        return self._window[0].version if self._window else 0

    def find(self, version: int) -> FedVersion | None:
        window = self._window
        if not window or not window[0].version <= version <= window[-1].version:
            return None
        return window[version - window[0].version]

    async def wait(self, version: int) -> None:
        """Return when this version is durable, or may be; the caller looks again."""
        if self.newest() < version:
            await self._grown.wait()

    def shared_past(self, past: Past) -> SharedPast:
        found: SharedPast = self.shared.setdefault(SharedPast, SharedPast(past))
        return found

    async def after(self, since: int, past: Past) -> AsyncGenerator[FedVersion, None]:
        """Yield the versions behind `since` without an end: each once, in order, none left out."""
        while True:
            found = self.find(since + 1)
            if found is not None:
                since = found.version
                yield found
            elif self.newest() <= since:
                await self._grown.wait()
            else:
                began = since
                async with aclosing(self.shared_past(past).after(since)) as earlier:
                    async for version in earlier:
                        assert version.version == since + 1, "the past leaves nothing out"
                        since = version.version
                        yield version
                        if self.find(since + 1) is not None:
                            break
                if since == began:  # the database restarts, and does not know what is durable
                    await trio.lowlevel.checkpoint()

    def statistics(self) -> FeedStatistics:
        return FeedStatistics(self._readers, len(self._window))

    def __repr__(self) -> str:
        return f"a feed of {len(self._window)} versions for {self._readers} readers"
