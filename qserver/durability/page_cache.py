"""The one memory of a process: pages of all databases, and no more than there is room for.

    saved pages that are here     oldest first; what was not read lately is let go first
    unsaved pages                 cannot be let go: they take room from the others until a
                                  checkpoint has saved them
    what statements hold          takes room, too (`users`), and has bounds of its own
    what other caches keep        can be made again (`others`): goes first, down to a share, and
                                  wholly when no page is left that could go

A page that is loaded or saved goes to the end of the line. When room is needed, the first in line
that was not read since it came there lets go of its entries; the others go to the end once more
(the clock algorithm, with the bit `touched`). Scans do not set the bit, so a large scan does not
drive out what point queries need. A branch goes after all pages below it, so that those stay in
reach.

Sizes are estimates from a few entries of each page.
"""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Sequence
from sys import getsizeof
from typing import Any, Final, Protocol

import msgspec

from qserver.limits import CACHE_BYTES_DEFAULT
from qserver.storage.page import Branch, Leaf, Tree

STEPS_OF_LOAD: Final = 64
"""What a load counts as work of the statement that needs it: about as many rows take as long."""

NEWEST_SHARE: Final = 0.05
"""The weight of the newest page in the moving average of the size of entries."""

SHARE_OF_HOLES: Final = 4
"""1 / 2**4 of the memory is left free: for holes between what is used, and errors of estimates."""

SHARE_OF_OTHERS: Final = 3
"""Another cache keeps 1 / 2**3 of the memory while pages can go in its place."""

EVICTIONS_BETWEEN_COLLECTIONS: Final = 1000
"""Python collects the youngest objects when it has made more of them than it has freed. Where pages
come and others go, that is never the case, until there are a million and it takes 300 ms. So the
cache asks for it: those of so many pages take about 10 ms."""

PAGE_BYTES: Final = 400
"""A page without its entries, and its place in the line."""


class Worker(Protocol):
    """The statement that is running."""

    work: int


class Unsaved(Protocol):
    """A database that may have unsaved pages."""

    def save_soon(self) -> None:
        """Save them, soon and quickly."""


class Histories(Protocol):
    """A database that may keep snapshots of older versions."""

    @property
    def held(self) -> int:
        """The bytes that they take."""

    def yield_memory(self) -> None:
        """Let go of those that nobody reads."""


class User(Protocol):
    """Whoever takes memory that only he can give back."""

    @property
    def held(self) -> int:
        """Bytes."""


class OtherCache(Protocol):
    """What can be made again: vectors of columns, plans."""

    @property
    def bytes(self) -> int: ...

    def shrink(self, bytes_left: int) -> None:
        """Drop what was used least recently, until no more than so many bytes are left."""


class CacheStatistics(msgspec.Struct, frozen=True):
    bytes_max: int
    bytes_cached: int
    """Bytes of saved pages that are in memory."""
    bytes_unsaved: int
    """Bytes of pages that no checkpoint has saved yet."""
    bytes_statements: int
    """Bytes that statements and unread answers hold."""
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
        self.others: list[OtherCache] = []
        self._unsaved: dict[Unsaved, int] = {}
        self._line: OrderedDict[Tree, int] = OrderedDict()

    # --- unsaved pages ---

    def note_unsaved(self, whose: Unsaved, size: int) -> None:
        """Note the bytes of unsaved pages that a database has; let the one with most save them."""
        self.unsaved += size - self._unsaved.get(whose, 0)
        self._unsaved[whose] = size
        self.is_full = self.unsaved > self.most >> 2
        if self.unsaved > self.most >> 3:
            self.yield_histories()
            self.save_some()

    @property
    def history_bytes(self) -> int:
        return sum(each.held for each in self.histories)

    def yield_histories(self) -> None:
        for each in list(self.histories):
            each.yield_memory()

    def save_some(self) -> None:
        """Let the database that has most unsaved pages save them."""
        max(self._unsaved, key=self._unsaved.__getitem__).save_soon()

    # --- saved pages ---

    def keep(self, pages: Sequence[Tree]) -> None:
        """Take care of saved pages that are here; others make room for them."""
        self.drop(pages)
        sizes = list(map(size_of_page, pages))
        self.make_room(sum(sizes))
        self._line.update(zip(pages, sizes, strict=True))
        self.held += sum(sizes)
        if pages and isinstance(pages[0], Leaf):
            self.entry_bytes += NEWEST_SHARE * (sizes[0] / pages[0].length - self.entry_bytes)

    def load(self, pages: Sequence[Tree]) -> None:
        """Count pages that were loaded, and keep them."""
        self.loads += len(pages)
        if self.worker is not None:
            self.worker.work += STEPS_OF_LOAD * len(pages)
        self.keep(pages)

    def make_room(self, wanted: int = 0) -> None:
        """Let go of pages until so many bytes fit in, or none is left."""
        room = self.most - (self.most >> SHARE_OF_HOLES) - self.unsaved - wanted
        room -= sum([each.held for each in self.users])
        room -= self.history_bytes
        kept = sum([each.bytes for each in self.others])
        if self.held + kept <= room:
            return
        if kept > len(self.others) * (share := self.most >> SHARE_OF_OTHERS):
            for other in self.others:
                other.shrink(share)
            kept = sum([each.bytes for each in self.others])
        self._let_go_until(room - kept)
        if self.held + kept > room:
            for other in self.others:
                other.shrink(0)

    def _let_go_until(self, room: int) -> None:
        line = self._line
        tries = 2 * len(line)
        while line and self.held > room and tries > 0:
            tries -= 1
            page, size = line.popitem(last=False)
            if page.touched or _is_over_others(page):
                page.touched = False
                line[page] = size
            else:
                self.let_go(page, size)

    def let_go(self, page: Tree, size: int) -> None:
        page.let_go()
        self.held -= size
        self.evictions += 1
        if not self.evictions % EVICTIONS_BETWEEN_COLLECTIONS:
            gc.collect(0)

    def drop(self, pages: Sequence[Tree]) -> None:
        """Stop caring for pages that nobody needs."""
        for page in pages:
            self.held -= self._line.pop(page, 0)

    def forget_unsaved(self, whose: Unsaved) -> None:
        self.unsaved -= self._unsaved.pop(whose, 0)
        self.is_full = self.unsaved > self.most >> 2

    def close(self, store: object) -> None:
        """Stop caring for all pages of a database that is closed."""
        self.drop([page for page in self._line if page.store is store])

    def statistics(self) -> CacheStatistics:
        return CacheStatistics(
            self.most,
            self.held,
            self.unsaved,
            sum([each.held for each in self.users]),
            sum([each.bytes for each in self.others]),
            len(self._line),
            self.loads,
            self.evictions,
        )

    def __repr__(self) -> str:
        return f"{len(self._line)} pages of {self.held} bytes, {self.most} at most"


def _is_over_others(page: Tree) -> bool:
    return type(page) is Branch and any(child.is_here for child in page.children_here or ())


def size_of_page(page: Tree) -> int:
    """Estimate the bytes that a page takes in memory. It has to be here: nothing loads in here."""
    if isinstance(page, Leaf):
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
