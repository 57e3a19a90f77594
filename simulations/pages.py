"""The page cache of a simulated process, and how to read pages without touching it.

Any saved page may be evicted whenever a task waits, not only the oldest when memory is short: a
branch before the pages below it, or a page that was just read. Some runs have a small cache, which
evicts for its own reasons too.

An observer reads evicted pages from the disk and leaves the cache as it was.
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
        """Never: a small cache would stay full while checkpoints fail."""
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

    def evict_all(self) -> None:
        for page, size in list(self._line.items()):
            del self._line[page]
            self.evict(page, size)


def entries_of(snapshot: Snapshot, tree: int, shelf: Shelf) -> dict[Key, Value]:
    """Return all entries of a tree, without touching the cache."""
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
    """Return the bytes of an evicted page."""
    assert page.number in shelf.pages, f"page {page.number} was let go, and is not durable"
    return shelf.pages[page.number]


class Published(msgspec.Struct, frozen=True, eq=False):
    """The contents of a snapshot when it was published, independent of its pages."""

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
