"""The page store of one database: loads pages from its log, and decides when they may be forgotten.

A page that no kept checkpoint has may still be needed by a reader of an older snapshot, whether it
is in memory or not. So each snapshot holds a lease on the versions whose pages it may load. A
checkpoint starts a new lease for all later snapshots:

    versions 71 … 89            versions 90 …                a page that was made after version 50
                       ^ the checkpoint of version 90        and died before version 90 is forgotten
                                                             when no lease in between is alive

A snapshot that was rebuilt from a checkpoint and records has its own lease. Nobody releases a
lease: it dies with its last snapshot.

A store outlives the generations of its database, as readers may. It reports a corrupt page and
raises to the reader; the next reader tries to load the page again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from qserver.durability.column_numbers import can_be_saved, column_number
from qserver.durability.leases import Leases
from qserver.durability.page_cache import LOOKS_OF_A_SCAN, LOOKS_PACKED, STEPS_OF_LOAD, PageCache
from qserver.durability.pages import (
    ENTRIES_AT,
    check_leaf,
    decode_branch,
    decode_leaf,
    decode_stored_leaf,
    find_in_leaf,
)
from qserver.durability.saved_columns import UnknownColumn, decode_column
from qserver.errors import DataCorrupted, LogFailed, PageUnreadable
from qserver.storage.page import Branch, BranchEntries, Key, Leaf, LeafEntries, Tree, Value
from qserver.storage.snapshot import Lease
from qserver.values.vector_families import ColumnVector

if TYPE_CHECKING:
    from qserver.values.vectors import Vector

STEPS_OF_COLUMN: Final = 24
"""What loading a column counts as work of the statement."""

FILLED_MAX: Final = 4096
"""So many pages with new vectors wait for the next checkpoint."""

Decoded = TypeVar("Decoded")


def _ignore(*_: object) -> None:
    """The default callback: does nothing."""


class PageSource(Protocol):
    """The part of a log that readers need."""

    @property
    def borrowed(self) -> Leases:
        """See `Log.borrowed`."""

    def load(self, numbers: Sequence[int]) -> dict[int, bytes]:
        """See `Log.load`."""


class ClosedLog:
    """Stands in for the log in snapshots that outlive their database."""

    def __init__(self, borrowed: Leases) -> None:
        self.borrowed = borrowed

    def load(self, numbers: Sequence[int]) -> dict[int, bytes]:
        raise LogFailed("the database was closed meanwhile", hint="Send the request again.")

    def __repr__(self) -> str:
        return "a log that was closed"


class LoggedPages:
    """Implements the store of `storage.page`."""

    def __init__(
        self,
        log: PageSource,
        cache: PageCache | None = None,
        report: Callable[[str, Exception], None] = _ignore,
    ) -> None:
        self._log: PageSource = log
        self.cache = PageCache() if cache is None else cache
        self.trouble: DataCorrupted | PageUnreadable | None = None
        """Why the last load failed, until one succeeds; damage stays until the process ends."""
        self.copied = 0
        """Entries of saved leaves that were copied to unsaved ones."""
        self.loads = 0
        """Pages loaded, of this database."""
        self.trim: Callable[[int], None] = _ignore
        """Told before which version there is no history any more."""
        self.ahead = 0
        """The last page that this process has saved ahead of a checkpoint."""
        self.filled: dict[int, Branch] = {}
        """Pages with vectors that may not be saved, by number."""
        self._column_trouble: Exception | None = None
        """Why a saved column could not be read, the first time."""
        self._report = report
        self._leases = Leases()

    # --- entries ---

    def load(self, pages: Sequence[Tree]) -> None:
        try:
            found = self._log.load([page.number for page in pages])
            entries = [_checked(page, found.get(page.number)) for page in pages]
        except DataCorrupted as error:
            self._note(error)
            raise
        except LogFailed as error:
            unreadable = PageUnreadable(str(error), detail=error.detail, hint=error.hint)
            self._note(unreadable)
            raise unreadable from error
        if isinstance(self.trouble, LogFailed):
            self.trouble = None
        for page, loaded in zip(pages, entries, strict=True):
            if isinstance(loaded, bytes):
                assert isinstance(page, Leaf)
                page.packed = loaded
            else:
                assert isinstance(page, Branch)
                page.separators_here, page.children_here = loaded
        self.loads += len(pages)
        self.cache.load(pages)

    def find(self, leaf: Leaf, key: Key) -> Value | None:
        packed = self._packed(leaf)
        leaf.touched = True
        leaf.looks += 1
        if leaf.looks > LOOKS_PACKED and self.cache.may_unpack(leaf):
            keys, values = self.unpack(leaf)
            at = bisect_left(keys, key)
            return values[at] if at < len(keys) and keys[at] == key else None
        try:
            return find_in_leaf(packed, key)
        except DataCorrupted as error:
            self._note(error)
            raise

    def read(self, leaf: Leaf) -> LeafEntries:
        packed = self._packed(leaf)
        leaf.looks += LOOKS_OF_A_SCAN
        if self.cache.may_unpack(leaf):
            return self.unpack(leaf)
        return self._decoded(decode_leaf, leaf, packed)

    def read_stored(self, leaf: Leaf) -> tuple[list[Value], bool]:
        packed = self._packed(leaf)
        leaf.looks += LOOKS_OF_A_SCAN
        if self.cache.may_unpack(leaf):
            return self.unpack(leaf)[1], False
        return self._decoded(decode_stored_leaf, leaf, packed), True

    def unpack(self, leaf: Leaf) -> LeafEntries:
        entries = self._decoded(decode_leaf, leaf, self._packed(leaf))
        leaf.keys_here, leaf.values_here = entries
        leaf.packed = None
        self.cache.note_unpacked(leaf)
        return entries

    def contents(self, leaf: Leaf) -> bytes:
        return self._packed(leaf)[ENTRIES_AT:]

    def _packed(self, leaf: Leaf) -> bytes:
        if leaf.packed is None:
            self.load([leaf])
            assert leaf.packed is not None
        return leaf.packed

    def _decoded(
        self, decode: Callable[[Leaf, bytes], Decoded], leaf: Leaf, packed: bytes
    ) -> Decoded:
        self.cache.charge(leaf.length)
        try:
            return decode(leaf, packed)
        except DataCorrupted as error:
            self._note(error)
            raise

    def _note(self, error: DataCorrupted | PageUnreadable) -> None:
        self.note_trouble(error)

    def note_trouble(self, error: DataCorrupted | PageUnreadable) -> None:
        """Report a page that cannot be read."""
        if self.trouble is None:
            self._report("a page cannot be read", error)
        if not isinstance(self.trouble, DataCorrupted):
            self.trouble = error

    # --- columns ---

    def load_columns(
        self, pages: Sequence[Branch], columns: Sequence[ColumnVector]
    ) -> dict[tuple[int, ColumnVector], Vector | None]:
        wanted = {
            column_number(page.number, column): (page, column)
            for page in pages
            for column in columns
            if can_be_saved(page.number, column)
        }
        found: dict[tuple[int, ColumnVector], Vector | None] = {}
        try:
            loaded = self._log.load(list(wanted))
        except (DataCorrupted, LogFailed) as error:
            self._note_column(error)
            return found
        for number, data in loaded.items():
            page, column = wanted[number]
            try:
                found[page.number, column] = decode_column(page.number, page.length, column, data)
            except DataCorrupted as error:
                self._note_column(error)
            except UnknownColumn:
                pass
        self.cache.charge(STEPS_OF_LOAD + STEPS_OF_COLUMN * len(found))
        return found

    def _note_column(self, error: Exception) -> None:
        """Report that a column has to be made of the leaves again."""
        if self._column_trouble is None:
            self._column_trouble = error
            self._report("a saved column cannot be read", error)

    def note_filled(self, page: Branch) -> None:
        if len(self.filled) < FILLED_MAX:
            self.filled[page.number] = page

    def note_copied(self, leaf: Leaf) -> None:
        self.copied += leaf.length

    # --- leases ---

    def new_lease(self, first: int, last: int | None = None) -> Lease:
        """Start a lease for snapshots that need pages of these versions."""
        lease = Lease(first, last)
        self._leases.add(lease)
        return lease

    def is_read_between(self, after: int, before: int) -> bool:
        """Return whether a live snapshot, here or in a branch, may need such pages."""
        return self._leases.are_between(after, before) or self._log.borrowed.are_between(
            after, before
        )

    def newest_lease(self) -> int:
        """Return where the latest lease begins that is alive; 0 without one."""
        return self._leases.newest()

    def move_to(self, log: PageSource, report: Callable[[str, Exception], None]) -> LoggedPages:
        """From now on load pages from another log, which has the same ones; return this."""
        self._log, self._report = log, report
        return self

    def close(self) -> None:
        """Drop all pages from the cache, and release the database and its log.

        Pages reference their store, and the cyclic collector does not track pages: a reference back
        to them from here, such as an error with the frames of its traceback, would keep them for
        ever.
        """
        self.cache.close(self)
        self.trim = self._report = _ignore
        self.trouble = self._column_trouble = None
        self.filled = {}
        self._log = ClosedLog(self._log.borrowed)

    def __repr__(self) -> str:
        return f"the pages of {self._log!r}"


def _checked(page: Tree, data: bytes | None) -> bytes | BranchEntries:
    """Return the contents of a loaded page; raise DataCorrupted if they are not its own."""
    if data is None:
        raise DataCorrupted(
            f"page {page.number} is missing",
            hint="Restore a backup, and keep the damaged data until you have.",
        )
    if isinstance(page, Branch):
        return decode_branch(page, data)
    check_leaf(page, data)
    return data
