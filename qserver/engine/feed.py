"""The change feed: gives readers the versions of a database, in order, each exactly once.

    a round is durable ─► window: the newest versions ─► readers that keep up
                          log: older versions, rebuilt ─► readers that start or lag (catch-up)

The feed computes the changes of a version once, and encodes them once per filter, for all readers.
It fills the window only while it has readers. A version that the window lacks comes from the
caller's `CatchUp`, which replays records of the log onto an older snapshot. The window is bounded
in versions, changes and bytes. A long version is encoded by each reader for itself, in parts.

A reader asks for versions by number, so it skips none and repeats none, whichever source they come
from.
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
from itertools import chain, islice
from typing import Any, Final, Protocol, TypeVar
from weakref import WeakValueDictionary

import msgspec
import trio

from qserver.durability.pauses import in_steps
from qserver.durability.records import Definitions
from qserver.engine.messages import Append
from qserver.engine.snapshot_source import SnapshotSource
from qserver.engine.yielding import TimeSlice, yield_to_others
from qserver.limits import FEED_CHANGES_MAX, FEED_VERSIONS_MAX
from qserver.storage.catalog import CatalogChanges
from qserver.storage.changes import Change, Changes, net_changes
from qserver.storage.page import Value
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from qserver.storage.writes import TreeWrites, Writes, count_changes
from qserver.values.identifiers import name_of_key
from qserver.values.relations import Definition
from qserver.values.sizes import size_of
from qserver.values.steps import at_once

Encoded = TypeVar("Encoded")

FILTERS_KEPT_MAX: Final = 8
"""Filters for which a version, or a run of versions, keeps its encoding."""

CHANGES_MADE_AT_ONCE: Final = 250
"""Changes of a version that are made and encoded without yielding: about a millisecond."""

WINDOW_BYTES_MAX: Final = 8 * 1024 * 1024
"""Bytes of rows in the window, about."""

VERSION_BYTES_LONG: Final = 1024 * 1024
"""A version with more bytes of rows, or of events, is long."""

ROWS_MEASURED: Final = 1000
"""Rows of a tree that are measured, at even distances; all others count like them."""

ROW_BYTES: Final = 100
"""What a row counts besides its long values."""

RUN_VERSIONS_FIRST: Final = 8
"""Versions in the first run that is rebuilt for a reader; each further run is twice as long."""

RUN_VERSIONS, RUN_BYTES, RUNS_KEPT_MAX = 500, 256 * 1024, 8
"""The longest run, in versions and in bytes of records; and how many runs are kept, of twice these
bytes each at most."""


class StatedChange(Change, frozen=True, kw_only=True):
    """A change of schema, with the statement that made it."""

    statement: str


class FeedVersion:
    """One version: its changes since the previous one, and their encodings."""

    __slots__ = (
        "_changes",
        "_definitions",
        "_encoded",
        "_making",
        "bytes",
        "is_long",
        "lock",
        "measured",
        "readers",
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
        """`record_bytes`: the size of its log record, if it was read from the log."""
        self.version = snapshot.version
        self.record_bytes = record_bytes
        self.time = snapshot.time
        self.size = 1 + count_changes(writes) + len(catalog_changes)
        self.bytes = sum(map(_bytes_of, writes.values()))
        """Bytes of its rows: first an estimate, of those after the change."""
        self.is_long = self.bytes > VERSION_BYTES_LONG
        """Whether its events are too long to be kept for other readers."""
        self.measured: Callable[[FeedVersion, int], None] | None = None
        """Called with the bytes that it has more than estimated."""
        self.readers = 0
        """Those that send it in parts."""
        made = Transaction(before)
        made.writes, made.catalog = writes, snapshot.catalog
        if catalog_changes:
            made.catalog_changes = _catalog_changes(catalog_changes, definitions)
            made.changes_rows = any(each.beside_rows for each in definitions)
        self._making: Transaction | None = made
        self._definitions = definitions
        self._changes: Changes = []
        self._encoded: dict[Hashable, object] = {}
        self.lock = trio.Lock()
        """Of the one that makes its changes, or encodes them for itself and others."""

    async def changes(self) -> Changes:
        """Return the changes of rows and definitions; computed on first use."""
        if self._making is not None:
            if self.size <= CHANGES_MADE_AT_ONCE:
                self._note(at_once(self._net_changes(self._making)))
            else:
                async with self.lock:  # one makes them, the others wait
                    if self._making is not None:
                        self._note(await in_steps(self._net_changes(self._making), yield_to_others))
        return self._changes

    def _net_changes(self, made: Transaction) -> Generator[None, None, Changes]:
        size = 0

        def hold(row: Value) -> None:
            nonlocal size
            size += ROW_BYTES + sum(map(size_of, row))

        found = yield from net_changes(made, hold)
        more = size - self.bytes
        if more > 0:
            self.bytes = size
            self.is_long = size > VERSION_BYTES_LONG
            if self.measured is not None:
                self.measured(self, more)
        return found

    def _note(self, found: Changes) -> None:
        self._changes = with_statements(found, self._definitions)
        self._making = None  # the snapshots are no longer needed

    async def encoded(
        self, key: Hashable | None, encode: Callable[[Changes], Generator[None, None, Encoded]]
    ) -> Encoded:
        """Return the result of the steps of `encode`; cached per key, if that is not None."""
        if key is None:
            changes = await self.changes()
            if self.size <= CHANGES_MADE_AT_ONCE:
                return at_once(encode(changes))
            return await in_steps(encode(changes), yield_to_others)
        if key not in self._encoded:
            changes = await self.changes()
            if self.size <= CHANGES_MADE_AT_ONCE:
                _keep(self._encoded, key, at_once(encode(changes)))
            else:
                async with self.lock:
                    if key not in self._encoded:
                        made = await in_steps(encode(changes), yield_to_others)
                        _keep(self._encoded, key, made)
        return self._encoded[key]  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"version {self.version} of a feed"


class CatchUp(Protocol):
    def after(self, version: int) -> AsyncGenerator[FeedVersion, None]:
        """Yield the versions after this one, in order; raise if the log no longer has them."""


class Run:
    """Rebuilt versions in a row, and what readers have made of them."""

    __slots__ = (
        "__weakref__",
        "_lock",
        "_made",
        "bytes",
        "first",
        "is_long",
        "last",
        "readers",
        "versions",
    )

    def __init__(self, versions: Sequence[FeedVersion]) -> None:
        self.versions = versions
        self.first, self.last = versions[0].version, versions[-1].version
        self.bytes = sum(max(each.record_bytes, each.bytes) for each in versions)
        """Bytes of the rows."""
        self.is_long = any(each.is_long for each in versions)
        self.readers = 0
        """Those that have it, if it is long."""
        self._made: dict[Hashable, object] = {}
        self._lock = trio.Lock()

    def after(self, version: int) -> Sequence[FeedVersion]:
        return self.versions[version + 1 - self.first :]

    async def made(
        self, key: Hashable, make: Callable[[Sequence[FeedVersion]], Awaitable[Encoded]]
    ) -> Encoded:
        """Return the result of `make` for the versions; cached per key."""
        if key not in self._made:
            async with self._lock:  # one makes it, the others wait
                if key not in self._made:
                    _keep(self._made, key, await make(self.versions))
        return self._made[key]  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"versions {self.first} to {self.last}"


class SharedCatchUp:
    """Rebuilds older versions in runs, and shares each run among all readers that lag.

    Readers that reconnect together, as after a restart, need about the same versions: the first
    reader rebuilds a run, the others reuse it. The last lagging reader drops all runs. A run
    computes its changes at once: a version without them holds its snapshot, and so pages that
    history could forget.
    """

    def __init__(self, catch_up: CatchUp) -> None:
        self._catch_up = catch_up
        self._runs: list[Run] = []
        self._long: WeakValueDictionary[int, Run] = WeakValueDictionary()
        """Runs with a long version, each as long as a reader has it."""
        self._readers = 0
        self._lock = trio.Lock()

    def open(self) -> LaggingReader:
        """Register a reader, which must be closed."""
        self._readers += 1
        return LaggingReader(self)

    def close(self) -> None:
        self._readers -= 1
        if not self._readers:
            self._runs.clear()

    async def after(self, version: int) -> AsyncGenerator[FeedVersion, None]:
        """Yield the same versions as `CatchUp.after`."""
        with closing(self.open()) as reader:
            while (run := await reader.run_after(version)) is not None:
                for fed in run.after(version):
                    version = fed.version
                    yield fed

    async def run_of(self, version: int, most: int) -> Run | None:
        """Return a run with this version; None if the version is not durable."""
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
        long = (run for run in self._long.values() if run.first <= version <= run.last)
        return next(long, None)

    async def _make(self, version: int, most: int) -> Run | None:
        versions: list[FeedVersion] = []
        size, time_slice = 0, TimeSlice()
        async with aclosing(self._catch_up.after(version - 1)) as rebuilt:
            async for fed in rebuilt:
                await fed.changes()
                versions.append(fed)
                size += max(fed.record_bytes, fed.bytes)
                if len(versions) >= most or size >= RUN_BYTES:
                    break
                await time_slice.yield_if_used_up()
        if not versions:
            return None
        run = Run(versions)
        if run.is_long:
            self._long[run.first] = run
        else:
            self._runs.append(run)
            self._trim()
        return run

    def _trim(self) -> None:
        size = sum(run.bytes for run in self._runs)
        while len(self._runs) > RUNS_KEPT_MAX or (
            len(self._runs) > 1 and size > RUNS_KEPT_MAX * 2 * RUN_BYTES
        ):
            size -= self._runs.pop(0).bytes

    def __repr__(self) -> str:
        return f"{len(self._runs)} runs of versions"


class LaggingReader:
    """One reader that catches up.

    It waits for its turn among all long work before each run (see `yielding.py`). Otherwise each of
    a hundred readers would do something in every pass of the loop, and commits would wait for all.
    """

    __slots__ = ("_most", "_shared")

    def __init__(self, shared: SharedCatchUp) -> None:
        self._shared: SharedCatchUp | None = shared
        self._most = min(RUN_VERSIONS_FIRST, RUN_VERSIONS)

    async def run_after(self, version: int) -> Run | None:
        """Return a run with the next version; None if that is not durable."""
        assert self._shared is not None, "it is open"
        run = await self._shared.run_of(version + 1, self._most)
        self._most = min(2 * self._most, RUN_VERSIONS)
        await yield_to_others()
        return run

    def close(self) -> None:
        shared, self._shared = self._shared, None
        if shared is not None:
            shared.close()


def _bytes_of(changes: TreeWrites) -> int:
    step = 1 + len(changes) // ROWS_MEASURED
    rows = [row for row in islice(changes.values(), 0, None, step) if row is not None]
    return len(changes) * ROW_BYTES + step * sum(map(size_of, chain.from_iterable(rows)))


def _keep(made: dict[Hashable, object], key: Hashable, found: object) -> None:
    if len(made) >= FILTERS_KEPT_MAX:
        made.clear()
    made[key] = found


class FeedStatistics(msgspec.Struct, frozen=True):
    readers: int
    versions: int


class Feed:
    """The window of the newest versions, and the readers that wait for the next."""

    def __init__(self, snapshots: SnapshotSource) -> None:
        self._snapshots = snapshots
        self._window: deque[FeedVersion] = deque()
        self._size = self._bytes = 0
        self._readers = 0
        self._grown = trio.Event()
        self.shared: dict[Hashable, Any] = {}
        """Values that readers share, dropped with the last reader."""

    # --- as an observer ---

    def committed(self, before: Snapshot, append: Append) -> None:
        if not self._readers:
            return
        made = append.writes, append.catalog_changes, append.definitions
        fed = FeedVersion(before, append.snapshot, *made)
        if self._window and self._window[-1].version + 1 != fed.version:
            self._clear()  # versions in between came into the log when a generation ended
        self._window.append(fed)
        fed.measured = self._measured
        self._size += fed.size
        self._bytes += fed.bytes
        self._trim()
        self._tell()

    def _measured(self, fed: FeedVersion, more: int) -> None:
        if self.find(fed.version) is fed:
            self._bytes += more
            self._trim()

    def _trim(self) -> None:
        while len(self._window) > 1 and (
            len(self._window) > FEED_VERSIONS_MAX
            or self._size > FEED_CHANGES_MAX
            or self._bytes > WINDOW_BYTES_MAX
        ):
            oldest = self._window.popleft()
            self._size -= oldest.size
            self._bytes -= oldest.bytes

    def restarting(self, durable: Snapshot) -> None:
        """Nothing to do: catch-up fills the gap that a missed version leaves."""

    def changed(self) -> None:
        self._tell()

    def _tell(self) -> None:
        self._grown.set()
        self._grown = trio.Event()

    def _clear(self) -> None:
        self._window.clear()
        self._size = self._bytes = 0

    # --- for readers ---

    def open(self) -> None:
        """Register a reader, which must call `close`; the first one starts the window."""
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

    def find(self, version: int) -> FeedVersion | None:
        window = self._window
        if not window or not window[0].version <= version <= window[-1].version:
            return None
        return window[version - window[0].version]

    async def wait(self, version: int) -> None:
        """Wait until this version may be durable; the caller checks again."""
        if self.newest() < version:
            await self._grown.wait()

    def shared_catch_up(self, catch_up: CatchUp) -> SharedCatchUp:
        shared: SharedCatchUp = self.shared.setdefault(SharedCatchUp, SharedCatchUp(catch_up))
        return shared

    async def after(self, since: int, catch_up: CatchUp) -> AsyncGenerator[FeedVersion, None]:
        """Yield all versions after `since`, without end and without a gap."""
        while True:
            found = self.find(since + 1)
            if found is not None:
                since = found.version
                yield found
            elif self.newest() <= since:
                await self._grown.wait()
            else:
                began = since
                async with aclosing(self.shared_catch_up(catch_up).after(since)) as earlier:
                    async for version in earlier:
                        assert version.version == since + 1, "catching up leaves nothing out"
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


def _catalog_changes(
    changes: Mapping[str, Definition | None], definitions: Sequence[Definitions]
) -> CatalogChanges:
    rewritten: dict[int, int] = {}
    for each in definitions:
        rewritten |= each.rewritten or {}
    known = all(each.rewritten is not None for each in definitions)
    return CatalogChanges(changes, rewritten=rewritten, all_rewritten_known=known)


def with_statements(changes: Changes, definitions: Sequence[Definitions]) -> Changes:
    """Attach to each change of schema the statements that made it, in order.

    A statement that changes several definitions appears for each of them. One whose changes were
    undone in the same transaction does not appear.
    """
    schemas = {each.table: each for each in changes if each.op == "schema"}
    if not schemas or not definitions:
        return changes
    stated = [
        StatedChange(name_of_key(key), statement=each.statement)
        for each in definitions
        for key in each.names
        if name_of_key(key) in schemas
    ]
    known = {each.table for each in stated}
    unknown: Changes = [each for name, each in schemas.items() if name not in known]
    return [*stated, *unknown, *changes[len(schemas) :]]
