"""Which pages the log holds, and which of them nobody needs: makes checkpoints incremental.

Pages are immutable, so a page needs to be saved only once, and then has a number:

    checkpoint 7     B ──► L1 L2 L3          a page with a number is saved, and with it all below
    checkpoint 9     B' ─► L1 L2' L3         it; so only B' and L2' are written, and B and L2 die

In a snapshot each page has one place. So a page of the last checkpoint is in the next one if a new
branch leads to it, or if the branch over it is there. `Save` goes through the old trees from their
roots, stops at each page that a new branch leads to, and what it met before is dead: branches that
were copied, and what was below them and changed. Nothing else is opened.

Dead pages are named in the record of the checkpoint that they are not in, so that a crash forgets
none of them. They are forgotten once that checkpoint is durable, and no reader of an older snapshot
is left (see `page_store`).

The pages of an attempt that failed die with the next one that succeeds. Until then they do no harm:
their numbers are not used again, and no confirmed checkpoint refers to them.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from qserver.durability.checkpoint import encode_checkpoint
from qserver.durability.memory import MemoryLog
from qserver.durability.page_store import LoggedPages
from qserver.durability.pages import encode_page
from qserver.durability.port import StoredPage
from qserver.errors import DataCorrupted
from qserver.storage.btree import children_of
from qserver.storage.page import Tree
from qserver.storage.snapshot import Snapshot


class Dead(msgspec.Struct):
    """Pages that no checkpoint needs, and snapshots with an older lease than `lease` may."""

    lease: int
    numbers: list[int]
    pages: list[Tree]
    """Those of them that were met."""


class SavedPages:
    """The pages of the newest confirmed checkpoint. Nothing waits in here."""

    def __init__(self, store: LoggedPages | None = None) -> None:
        self.store = LoggedPages(MemoryLog()) if store is None else store
        self.version = 0
        self.count = 0
        """Pages of the checkpoint."""
        self.last_number = 0
        self.dead: list[Dead] = []
        self._roots: list[Tree] = []
        self._old: set[int] = set()
        """Pages of a checkpoint of an older format, none of whose branches stays."""
        self._last_confirmed = 0

    def restore(
        self, version: int, roots: list[Tree], count: int, dead: list[int], last_number: int
    ) -> None:
        """Begin with a loaded checkpoint, and pages that are known to be dead."""
        self.last_number = last_number
        self.count = count
        if dead:
            self.dead.append(Dead(self.store.last_lease, dead, []))
        self._confirm(version, roots)

    def restore_old(self, version: int, numbers: set[int], last_number: int) -> None:
        """Begin with a checkpoint of an older format: the next one saves all branches again."""
        self.restore(version, [], len(numbers), [], last_number)
        self._old = numbers

    def begin(self, snapshot: Snapshot) -> Save:
        """Begin to save a snapshot."""
        return Save(self, snapshot)

    def is_saved(self, page: Tree) -> bool:
        return page.store is self.store

    def next_number(self) -> int:
        self.last_number += 1
        return self.last_number

    def confirm(self, save: Save) -> None:
        """Make a durable snapshot the checkpoint: its new pages may be let go from now on."""
        for page, number in save.number_of.items():
            page.number, page.store = number, self.store
        self.store.cache.keep(list(save.number_of))
        self.count = save.count
        self._old = set()
        if save.died.numbers:
            self.dead.append(save.died)
        self._confirm(save.snapshot.version, save.roots)

    def some_to_forget(self, most: int) -> list[int]:
        """Return up to `most` numbers that nobody needs; then call `forgotten`."""
        if not self.dead or self.store.is_read_before(self.dead[0].lease):
            return []
        return self.dead[0].numbers[-most:]

    def forgotten(self, numbers: list[int]) -> None:
        if not numbers:
            return
        first = self.dead[0]
        del first.numbers[len(first.numbers) - len(numbers) :]
        if not first.numbers:
            self.store.cache.drop(first.pages)
            del self.dead[0]

    def numbers_of_dead(self) -> list[int]:
        return [number for each in self.dead for number in each.numbers]

    def numbers_of_failures(self) -> range:
        """Return the numbers that were given out since the last checkpoint."""
        return range(self._last_confirmed + 1, self.last_number + 1)

    def old_roots(self) -> list[Tree]:
        return self._roots

    def old_numbers(self) -> set[int]:
        return self._old

    def _confirm(self, version: int, roots: list[Tree]) -> None:
        self.version = version
        self._roots = roots
        self._last_confirmed = self.last_number

    def __repr__(self) -> str:
        return f"{self.count} saved pages of version {self.version}"


class Save:
    """One checkpoint in the making: take all `pages`, `sort_out`, then `record`, then confirm."""

    def __init__(self, saved: SavedPages, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.roots = _roots_of_snapshot(snapshot)
        self.number_of: dict[Tree, int] = {}
        """Pages that are new since the last checkpoint."""
        failures = saved.numbers_of_failures()
        self.died = Dead(saved.store.last_lease, list(failures), [])
        self._known = saved.count + len(failures)
        self._saved = saved
        self._kept: set[int] = set()
        """Saved pages to which a new branch leads, or which are roots."""
        self._sorting = self._sort_out()

    def pages(self) -> Iterator[StoredPage]:
        """Yield new pages as bytes, children before their parents. The caller may pause between."""
        for root in self.roots:
            yield from self._new_pages(root)

    def _new_pages(self, page: Tree) -> Iterator[StoredPage]:
        if self._saved.is_saved(page):
            self._kept.add(page.number)
            return
        if page in self.number_of:
            return
        for child in children_of(page):
            yield from self._new_pages(child)
        number = self._saved.next_number()
        self.number_of[page] = number
        yield number, encode_page(page, number, self._number)

    def sort_out(self) -> Iterator[None]:
        """Find the pages that die, once all new ones are saved. The caller may pause between."""
        return self._sorting

    def _sort_out(self) -> Iterator[None]:
        kept, died = self._kept, self.died
        died.numbers += self._saved.old_numbers() - kept
        waiting = [root for root in self._saved.old_roots() if root.number not in kept]
        while waiting:
            page = waiting.pop()
            died.pages.append(page)
            died.numbers.append(page.number)
            try:
                waiting += [child for child in children_of(page) if child.number not in kept]
            except DataCorrupted:
                pass  # what is below it cannot be known, and stays
            yield

    def record(self) -> bytes:
        for _ in self._sorting:
            pass
        saved = self._saved
        roots = {
            number: [self._number(root) if len(root) else 0 for root in tree.roots]
            for number, tree in self.snapshot.trees.items()
        }
        dead = saved.numbers_of_dead() + self.died.numbers
        return encode_checkpoint(self.snapshot, roots, saved.last_number, self.count, dead)

    @property
    def count(self) -> int:
        """How many pages the checkpoint has, once all are sorted out."""
        return self._known + len(self.number_of) - len(self.died.numbers)

    def _number(self, page: Tree) -> int:
        return page.number if self._saved.is_saved(page) else self.number_of[page]

    def __repr__(self) -> str:
        return f"a save of version {self.snapshot.version}, {len(self.number_of)} pages so far"


def _roots_of_snapshot(snapshot: Snapshot) -> list[Tree]:
    """Return all roots that are not empty; the empty tree is no page."""
    return [root for _, tree in snapshot.trees.items() for root in tree.roots if len(root)]
