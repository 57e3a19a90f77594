"""The table of pages that the log holds, with their numbers: makes checkpoints incremental.

Pages are immutable, so a page needs to be saved only once, and is recognized by identity:

    checkpoint 7     B ──► L1 L2 L3          a page that is in the table is saved, and with it
    checkpoint 9     B' ─► L1 L2' L3         all below it; so only B' and L2' are written

The table holds the pages themselves, not their addresses, so no other page can take the place of
one that it knows. For each it counts the references, from saved branches and from the roots of the
checkpoint. A page without references is forgotten, once the next checkpoint is durable and not
before.

The next attempt that succeeds forgets the pages of an unfinished one. Until then they do no harm:
their numbers are not used again, and no confirmed checkpoint refers to them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain

from qserver.durability.checkpoint import encode_checkpoint
from qserver.durability.pages import encode_page
from qserver.durability.port import StoredPage
from qserver.storage.btree import Tree, children_of
from qserver.storage.snapshot import Snapshot


class SavedPages:
    """The pages of the newest confirmed checkpoint. Nothing waits in here."""

    def __init__(self) -> None:
        self.version = 0
        self.to_forget: list[int] = []
        """Numbers in the log that no checkpoint needs."""
        self._unused: list[Tree] = []
        """Pages without references; the pages below them have not been released yet."""
        self._number_of: dict[Tree, int] = {}
        self._references: Counter[Tree] = Counter()
        self._roots: list[Tree] = []
        self.last_number = 0
        self._last_confirmed = 0

    @property
    def count(self) -> int:
        return len(self._number_of)

    def restore(
        self,
        version: int,
        roots: list[Tree],
        number_of: dict[Tree, int],
        incomplete: list[int],
        last_number: int,
    ) -> None:
        """Begin with a loaded checkpoint, and with all pages that were found with it.

        Some pages may count for nothing, and some of those may lack the pages below them.
        """
        self._number_of = number_of
        self.to_forget = incomplete
        self.last_number = last_number
        self._references.update(chain.from_iterable(map(children_of, number_of)))
        self._references.update(roots)
        self._unused = [page for page in number_of if page not in self._references]
        self._confirm(version, roots)

    def begin(self, snapshot: Snapshot) -> Save:
        """Begin to save a snapshot. The pages of an earlier unconfirmed attempt are forgotten."""
        self._sort_out(len(self._number_of))
        self.to_forget += range(self._last_confirmed + 1, self.last_number + 1)
        self._last_confirmed = self.last_number
        return Save(self, snapshot)

    def is_saved(self, page: Tree) -> bool:
        return page in self._number_of

    def number(self, page: Tree) -> int:
        return self._number_of[page]

    def next_number(self) -> int:
        self.last_number += 1
        return self.last_number

    def confirm(self, save: Save) -> None:
        """Make a durable snapshot the checkpoint, and release the roots of the one before."""
        roots = _roots_of_snapshot(save.snapshot)
        self._number_of |= save.number_of
        self._references.update(save.children)
        self._references.update(roots)
        for root in self._roots:
            self._release(root)
        self._confirm(save.snapshot.version, roots)

    def some_to_forget(self, most: int) -> list[int]:
        """Return up to `most` numbers to forget, found a few at a time; then call `forgotten`."""
        self._sort_out(most - len(self.to_forget))
        return self.to_forget[-most:]

    def forgotten(self, numbers: list[int]) -> None:
        del self.to_forget[len(self.to_forget) - len(numbers) :]

    def _confirm(self, version: int, roots: list[Tree]) -> None:
        self.version = version
        self._roots = roots
        self._last_confirmed = self.last_number

    def _release(self, page: Tree) -> None:
        """Drop one reference; without any, the page is unused."""
        left = self._references[page] - 1
        if left:
            self._references[page] = left
        else:
            del self._references[page]
            self._unused.append(page)

    def _sort_out(self, most: int) -> None:
        """Take unused pages out of the table, at most `most`."""
        unused = self._unused
        while unused and most > 0:
            page = unused.pop()
            self.to_forget.append(self._number_of.pop(page))
            for child in children_of(page):
                self._release(child)
            most -= 1

    def __repr__(self) -> str:
        return f"{self.count} saved pages of version {self.version}"


class Save:
    """One checkpoint in the making: take all `pages`, then the `record`, then confirm it."""

    def __init__(self, saved: SavedPages, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.number_of: dict[Tree, int] = {}
        """Pages that are new since the last checkpoint."""
        self.children: list[Tree] = []
        """The pages that they refer to, gathered on the way, so that `confirm` is quick."""
        self._saved = saved

    def pages(self) -> Iterator[StoredPage]:
        """Yield new pages as bytes, children before their parents. The caller may pause between."""
        for root in _roots_of_snapshot(self.snapshot):
            yield from self._new_pages(root)

    def _new_pages(self, page: Tree) -> Iterator[StoredPage]:
        if self._saved.is_saved(page) or page in self.number_of:
            return
        children = children_of(page)
        for child in children:
            yield from self._new_pages(child)
        number = self._saved.next_number()
        self.number_of[page] = number
        self.children += children
        below = {child: self._number(child) for child in children}
        yield number, encode_page(page, number, below)

    def record(self) -> bytes:
        roots = {
            number: [self._number(root) if len(root) else 0 for root in tree.roots]
            for number, tree in self.snapshot.trees.items()
        }
        return encode_checkpoint(self.snapshot, roots, self._saved.last_number)

    def _number(self, page: Tree) -> int:
        number = self.number_of.get(page)
        return self._saved.number(page) if number is None else number

    def __repr__(self) -> str:
        return f"a save of version {self.snapshot.version}, {len(self.number_of)} pages so far"


def _roots_of_snapshot(snapshot: Snapshot) -> list[Tree]:
    """Return all roots that are not empty; the empty tree is no page."""
    return [root for _, tree in snapshot.trees.items() for root in tree.roots if len(root)]
