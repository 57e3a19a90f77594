"""Pages that come and go: the cache of a simulated process, and how to look without touching.

Any saved page may be let go whenever a task waits, not only the oldest when memory is short: a
branch before the pages below it, or one that was read a moment ago. The bound of the cache is small
in some runs, so that pages go for its own reasons, too.

An observer reads from the disk what is not in memory, and leaves no trace of that: what it has
looked at is as near or as far as before.
"""

from __future__ import annotations

from random import Random

import msgspec

from qserver.durability.page_cache import PageCache
from qserver.durability.pages import check_leaf, decode_branch, decode_leaf
from qserver.storage.catalog import Catalog
from qserver.storage.page import Key, Leaf, Tree, Value
from qserver.storage.ranges import Trees
from qserver.storage.snapshot import Snapshot
from simulations.shelf import Shelf


class FickleCache(PageCache):
    @property
    def is_full(self) -> bool:
        """A small one would be full for as long as checkpoints fail."""
        return False

    @is_full.setter
    def is_full(self, value: bool) -> None:
        pass

    def evict_some(self, chance: Random) -> int:
        """Evict some pages, or all; return how many."""
        share = chance.choice((0.2, 0.7, 1.0))
        gone = [each for each in self._line.items() if chance.random() < share]
        for page, size in gone:
            del self._line[page]
            self.evict(page, size)
        return len(gone)


def entries_of(snapshot: Snapshot, tree: int, shelf: Shelf) -> dict[Key, Value]:
    """Return all entries of a tree, and touch nothing."""
    entries: dict[Key, Value] = {}
    for root in snapshot.trees.tree(tree).roots:
        _add_entries(root, shelf, entries)
    return entries


def _add_entries(page: Tree, shelf: Shelf, entries: dict[Key, Value]) -> None:
    if isinstance(page, Leaf):
        keys, values = page.keys_here, page.values_here
        if keys is None or values is None:
            stored = page.packed or _durable(page, shelf)
            check_leaf(page, stored)
            keys, values = decode_leaf(page, stored)
        entries.update(zip(keys, values, strict=True))
        return
    children = page.children_here
    if children is None:
        _, children = decode_branch(page, _durable(page, shelf))
    for child in children:
        _add_entries(child, shelf, entries)


def _durable(page: Tree, shelf: Shelf) -> bytes:
    """Return the bytes of a page that was let go."""
    assert page.number in shelf.pages, f"page {page.number} was let go, and is not durable"
    return shelf.pages[page.number]


class Published(msgspec.Struct, frozen=True, eq=False):
    """What a snapshot said when it was published; its pages need not live on for that."""

    time: float
    catalog: Catalog
    shards: int
    trees: Trees
    """To see whether a tree has changed; nobody reads it."""
    entries: dict[int, dict[Key, Value]]


def published(snapshot: Snapshot, before: Published | None, shelf: Shelf) -> Published:
    entries: dict[int, dict[Key, Value]] = {}
    for number, tree in snapshot.trees.items():
        if before is not None and before.trees.tree(number) is tree:
            entries[number] = before.entries[number]
        else:
            entries[number] = entries_of(snapshot, number, shelf)
    return Published(snapshot.time, snapshot.catalog, snapshot.shards, snapshot.trees, entries)
