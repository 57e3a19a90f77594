"""The page cache of a process: bounds the memory of all databases together.

    saved pages in memory         oldest first; pages that were not read lately are evicted first
    unsaved pages                 cannot be evicted until a checkpoint has saved them
    memory of statements          counts too (`users`), and has bounds of its own
    other caches                  can be rebuilt (`others`): shrink first, to a share, and to
                                  nothing when no page is left to evict

Eviction is the clock algorithm. A page that is loaded or saved goes to the end of the line. When
room is needed, the first page in line goes, unless its bit `touched` was set since it came there;
then it goes to the end once more. Scans do not set the bit, so a large scan does not evict what
point queries need. A branch is evicted after all pages below it, so that those stay reachable. One
call examines a bounded part of the line, however many pages there are; the next call continues.

A leaf is loaded packed; unpacked it is five times as large. If all pages of all databases fit
unpacked, they stay so. Otherwise only leaves that were read often since the last check are
unpacked, in at most a quarter of the memory: finding a row in a packed leaf costs a few
microseconds more, a load from the disk costs many. Python rarely returns memory of small objects to
the system, so unpacking more at first would not pay.

Sizes are estimates from a few entries of each page.
"""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Sequence
from sys import getsizeof
from typing import Any, Final, Protocol

import msgspec

from qserver.durability.heap import trim
from qserver.limits import CACHE_BYTES_DEFAULT, PAGE_ENTRIES_BUILT
from qserver.storage.page import Branch, Leaf, Tree
from qserver.storage.vector_cache import VectorCache

STEPS_OF_LOAD: Final = 64
"""What a load counts as work of the statement that needs it: about as many rows take as long."""

NEWEST_SHARE: Final = 0.05
"""The weight of the newest page in the moving average of the size of entries."""

SHARE_OF_HOLES: Final = 4
"""1 / 2**4 of the memory is left free: for holes between what is used, and errors of estimates."""

SHARE_OF_OTHERS: Final = 3
"""Another cache keeps 1 / 2**3 of the memory while pages can go in its place."""

SHARE_OF_VECTORS: Final = 2
"""Column vectors take up to 1 / 2**2 of it while nothing else wants it."""

LOOKS_PACKED: Final = 8
"""So often a leaf is read packed before it is unpacked: then that has cost as much as unpacking."""

LOOKS_OF_A_SCAN: Final = 6
"""What a scan counts: it unpacks the leaf anyway. So the second one in a short time keeps it so."""

SHARE_OF_UNPACKED: Final = 2
"""1 / 2**2 of the memory may be unpacked leaves, if not all of them have room."""

EVICTED_AT_ONCE_MAX: Final = 512
"""The pages that one call evicts at most: a few milliseconds if all are unpacked."""

SPARED_AT_ONCE_MAX: Final = 128
"""One call spares so many pages that were read lately; then the first in line goes, read or not."""

EVICTIONS_BETWEEN_COLLECTIONS: Final = 1000
"""Python collects the youngest objects when it has made more of them than it has freed. Where pages
come and others go, that is never the case, until there are a million and it takes 300 ms. So the
cache asks for it: those of so many pages take about 10 ms. Packed leaves do not count: they are
nothing that Python collects."""

PACKED_BYTES_BETWEEN_TRIMS: Final = 8 << 20
"""So many bytes of packed leaves are evicted before their memory is returned to the system."""

PAGE_BYTES: Final = 400
"""A page without its entries, and its place in the line."""


class Worker(Protocol):
    """The statement that is running."""

    work: int


class Unsaved(Protocol):
    """A database that may have unsaved pages."""

    def save_soon(self) -> None:
        """Start saving them, without pauses."""


class Histories(Protocol):
    """A database that may cache snapshots of older versions."""

    @property
    def held(self) -> int:
        """Their bytes in memory."""

    def yield_memory(self) -> None:
        """Drop those that nobody reads."""


class User(Protocol):
    """A holder of memory that the cache cannot evict."""

    @property
    def held(self) -> int:
        """Bytes in memory."""


class OtherCache(Protocol):
    """A cache of what can be rebuilt: vectors of columns, plans."""

    @property
    def bytes(self) -> int: ...

    def shrink(self, bytes_left: int) -> None:
        """Drop the least recently used entries until at most so many bytes are left."""


class CacheStatistics(msgspec.Struct, frozen=True):
    bytes_max: int
    bytes_cached: int
    """Bytes of saved pages that are in memory."""
    bytes_unsaved: int
    """Bytes of pages that no checkpoint has saved yet."""
    bytes_statements: int
    """Bytes that statements and unread answers hold."""
    bytes_vectors: int
    bytes_others: int
    """Bytes of what can be made again: vectors of columns, plans."""
    cached: int
    loads: int
    evictions: int


class PageCache:
    """Nothing waits in here, and one thread uses it."""

    def __init__(self, most: int = CACHE_BYTES_DEFAULT) -> None:
        self.most = most
        self.held = 0
        self.loads = self.evictions = 0
        self.worker: Worker | None = None
        """The statement whose work a load is."""
        self.entry_bytes = 200.0
        """What an entry takes, by the pages of late."""
        self.unsaved = 0
        """Bytes of unsaved pages: past an eighth of the memory they have to be saved now."""
        self.is_full = False
        """Whether they take a quarter, so that whatever makes more has to wait."""
        self.histories: set[Histories] = set()
        """Those that hold older versions in memory: what they hold is not for pages."""
        self.users: list[User] = []
        self.vectors = VectorCache(most >> SHARE_OF_VECTORS, self.make_room)
        self.others: list[OtherCache] = [self.vectors]
        self._unsaved: dict[Unsaved, int] = {}
        self._line: OrderedDict[Tree, int] = OrderedDict()
        self._saved: dict[object, int] = {}
        """How many pages each database has in all, here or not."""
        self._all_saved = 0
        self._unpacked = 0
        """Bytes of the unpacked leaves in the line."""
        self._collectable = 0
        """Pages that were let go and were not packed."""
        self._packed_gone = 0
        """Bytes of the packed leaves that were let go since the last `trim`."""

    # --- unsaved pages ---

    def note_unsaved(self, whose: Unsaved, size: int) -> None:
        """Record the bytes of a database's unsaved pages; make the database with most save them."""
        most, all_unsaved = self.most, self._unsaved
        unsaved = self.unsaved = self.unsaved + size - all_unsaved.get(whose, 0)
        all_unsaved[whose] = size
        self.is_full = unsaved > most >> 2
        if unsaved > most >> 3:
            self.yield_histories()
            self.save_some()
        if self.unsaved + self.held > most:
            self.make_room()

    def may_double(self, size: int) -> bool:
        """Return whether so many more unsaved bytes would not have to be saved at once."""
        return self.unsaved + size <= self.most >> 3

    @property
    def history_bytes(self) -> int:
        return sum(each.held for each in self.histories)

    def yield_histories(self) -> None:
        for each in list(self.histories):
            each.yield_memory()

    def save_some(self) -> None:
        """Make the database with most unsaved pages save them."""
        max(self._unsaved, key=self._unsaved.__getitem__).save_soon()

    # --- saved pages ---

    def keep(self, pages: Sequence[Tree]) -> None:
        """Add saved pages that are in memory, and evict others for them."""
        self.drop(pages)
        sizes = list(map(size_of_page, pages))
        wanted = sum(sizes)
        self.make_room(wanted)
        self._line.update(zip(pages, sizes, strict=True))
        self.held += wanted
        unpacked = [size for page, size in zip(pages, sizes, strict=True) if _is_unpacked(page)]
        self._unpacked += sum(unpacked)
        if unpacked and _is_unpacked(pages[0]):
            self._note_entries(pages[0], sizes[0])

    def _note_entries(self, leaf: Tree, size: int) -> None:
        self.entry_bytes += NEWEST_SHARE * (size / leaf.length - self.entry_bytes)

    def load(self, pages: Sequence[Tree]) -> None:
        """Count loaded pages, and add them."""
        self.loads += len(pages)
        self.charge(STEPS_OF_LOAD * len(pages))
        self.keep(pages)

    def charge(self, steps: int) -> None:
        """Charge steps (loads, unpacked entries) to the running statement."""
        if self.worker is not None:
            self.worker.work += steps

    def note_saved(self, whose: object, pages: int) -> None:
        """Record how many pages a database has in all."""
        self._all_saved += pages - self._saved.get(whose, 0)
        self._saved[whose] = pages

    def may_unpack(self, leaf: Leaf) -> bool:
        """Return whether a packed leaf is to be unpacked and stay so."""
        page = PAGE_ENTRIES_BUILT * self.entry_bytes
        room = self._room() - self._kept_by_others()
        if self._all_saved * page <= room and self.held + page <= room:
            return True
        return leaf.looks > LOOKS_PACKED and self._unpacked < self.most >> SHARE_OF_UNPACKED

    def note_unpacked(self, leaf: Leaf) -> None:
        """Count a leaf anew that was unpacked, and evict others for it."""
        line = self._line
        if leaf in line:
            size = size_of_page(leaf)
            self.held += size - line[leaf]
            self._unpacked += size
            line[leaf] = size
            line.move_to_end(leaf)
            self._note_entries(leaf, size)
            self.make_room()

    def _room(self) -> int:
        """Return the bytes left for pages and other caches."""
        room = self.most - (self.most >> SHARE_OF_HOLES) - self.unsaved
        for user in self.users:
            room -= user.held
        for each in self.histories:
            room -= each.held
        return room

    def _kept_by_others(self) -> int:
        kept = 0
        for other in self.others:
            kept += other.bytes
        return kept

    def make_room(self, wanted: int = 0) -> None:
        """Evict pages until so many bytes fit, none is left, or the call has examined enough."""
        room = self._room() - wanted
        kept = self._kept_by_others()
        if self.held + kept <= room:
            return
        if kept > len(self.others) * (share := self.most >> SHARE_OF_OTHERS):
            for other in self.others:
                other.shrink(share)
            kept = self._kept_by_others()
        self._evict_until(room - kept)
        if not self._line and kept > room:
            for other in self.others:
                other.shrink(0)

    def _evict_until(self, room: int) -> None:
        line = self._line
        spared = gone = 0
        while line and self.held > room and gone < EVICTED_AT_ONCE_MAX:
            page, size = line.popitem(last=False)
            if spared < SPARED_AT_ONCE_MAX and (page.touched or _is_over_others(page)):
                spared += 1
                page.touched = False
                if type(page) is Leaf:
                    page.looks = 0
                line[page] = size
            else:
                gone += 1
                self.evict(page, size)

    def evict(self, page: Tree, size: int) -> None:
        """Evict a page that was taken out of the line."""
        self.held -= size
        self.evictions += 1
        if type(page) is Leaf and page.packed is not None:
            page.evict()
            self._packed_gone += size
            if self._packed_gone > PACKED_BYTES_BETWEEN_TRIMS:
                self._packed_gone = 0
                trim()
            return
        if _is_unpacked(page):
            self._unpacked -= size
        page.evict()
        self._collectable += 1
        if not self._collectable % EVICTIONS_BETWEEN_COLLECTIONS:
            gc.collect(0)

    def drop(self, pages: Sequence[Tree]) -> None:
        """Remove pages that nobody needs."""
        for page in pages:
            size = self._line.pop(page, 0)
            self.held -= size
            if _is_unpacked(page):
                self._unpacked -= size

    def forget_unsaved(self, whose: Unsaved) -> None:
        self.unsaved -= self._unsaved.pop(whose, 0)
        self.is_full = self.unsaved > self.most >> 2

    def close(self, store: object) -> None:
        """Remove all pages of a closed database."""
        self._all_saved -= self._saved.pop(store, 0)
        self.drop([page for page in self._line if page.store is store])

    def statistics(self) -> CacheStatistics:
        return CacheStatistics(
            self.most,
            self.held,
            self.unsaved,
            sum([each.held for each in self.users]),
            self.vectors.bytes,
            sum([each.bytes for each in self.others]),
            len(self._line),
            self.loads,
            self.evictions,
        )

    def __repr__(self) -> str:
        return f"{len(self._line)} pages of {self.held} bytes, {self.most} at most"


def _is_unpacked(page: Tree) -> bool:
    return type(page) is Leaf and page.keys_here is not None


def _is_over_others(page: Tree) -> bool:
    return type(page) is Branch and any(
        child.is_here or (type(child) is Branch and child.columns)
        for child in page.children_here or ()
    )


def size_of_page(page: Tree) -> int:
    """Estimate the bytes of a page in memory; loads nothing."""
    if isinstance(page, Leaf):
        if page.packed is not None:
            return PAGE_BYTES + len(page.packed)
        keys, values = page.keys_here, page.values_here
        assert keys is not None and values is not None
        some = (0, len(keys) // 2)
        entry = sum([_size_of(keys[at]) + _size_of(values[at]) for at in some]) // len(some)
        return PAGE_BYTES + len(keys) * (16 + entry)
    separators, children = page.separators_here, page.children_here
    assert separators is not None and children is not None
    entry = _size_of(separators[0]) if separators else 0
    return PAGE_BYTES + len(children) * (200 + entry)


def _size_of(row: tuple[Any, ...]) -> int:
    return getsizeof(row) + sum(map(getsizeof, row))
