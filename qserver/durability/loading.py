"""Loads the snapshot of a stored checkpoint, without inserting a single row again.

Pages are read in the order of their numbers. A child has a smaller number than its parent, so each
branch finds its children built, and every page is decoded once.

The log may hold pages that no checkpoint needs: those of an attempt that a crash ended, or some
that were about to be forgotten. Nothing refers to them, which shows when all is read. One of them
may lack children that are forgotten already; that matters only if the checkpoint needs it.

A checkpoint of format 1 has a tree for each shard, over which keys were spread by hash: they are
merged into one, which is cut into ranges. Its pages stay until the next checkpoint, which has none
of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from itertools import islice
from operator import itemgetter
from typing import Final

import trio

from qserver.durability.checkpoint import (
    AnyCheckpoint,
    CheckpointByHash,
    bounds_of,
    catalog_of,
    decode_checkpoint,
    roots_of,
)
from qserver.durability.pages import decode_page, join_branch
from qserver.durability.port import Log, StoredPage
from qserver.durability.saved_pages import SavedPages
from qserver.errors import DataCorrupted
from qserver.storage.btree import EMPTY, Key, Leaf, Tree, Value, apply, pages
from qserver.storage.catalog import Catalog
from qserver.storage.ranges import RangedTree, Trees, laid_over
from qserver.storage.snapshot import Snapshot
from qserver.storage.writes import CHANGES_AT_ONCE

PAGES_READ_AT_ONCE: Final = 256
PAGES_BEFORE_YIELDING: Final = 8


async def load_newest(log: Log, saved: SavedPages, shards: int) -> Snapshot | None:
    """Return the newest checkpoint's snapshot, and its pages in `saved`; None if there is none."""
    stored = await log.load_checkpoint()
    loading = Loading()
    while pages := await log.load_pages(loading.last_number, PAGES_READ_AT_ONCE):
        for count, page in enumerate(pages, start=1):
            loading.add(page)
            if count % PAGES_BEFORE_YIELDING == 0:
                await trio.lowlevel.checkpoint()
    if stored is None:
        if loading.last_number and not await log.read(0, 1):
            raise DataCorrupted(
                "there are pages, but neither a checkpoint nor a log that they would belong to",
                hint="Restore a backup, and keep the damaged data until you have.",
            )
        saved.to_forget = loading.numbers()
        saved.last_number = loading.last_number
        return None
    return await loading.finish(decode_checkpoint(*stored), saved, shards)


class Loading:
    def __init__(self) -> None:
        self.last_number = 0
        self._pages: dict[int, Tree] = {}
        self._incomplete: dict[int, int] = {}
        """Branches that lack a page below them, with its number."""

    def add(self, stored: StoredPage) -> None:
        number, data = stored
        page = decode_page(number, data)
        self.last_number = number
        if isinstance(page, Leaf):
            self._pages[number] = page
            return
        separators, numbers = page
        missing = [child for child in numbers if child not in self._pages]
        if missing:
            self._incomplete[number] = missing[0]
        else:
            children = [self._pages[child] for child in numbers]
            self._pages[number] = join_branch(number, separators, children)

    def numbers(self) -> list[int]:
        return [*self._pages, *self._incomplete]

    async def finish(self, checkpoint: AnyCheckpoint, saved: SavedPages, shards: int) -> Snapshot:
        """Return the snapshot once all pages are read; raise DataCorrupted if one is missing."""
        catalog = catalog_of(checkpoint)
        trees: dict[int, RangedTree] = {}
        if isinstance(checkpoint, CheckpointByHash):
            for number in sorted({tree for roots in checkpoint.roots for tree in roots}):
                root = await merged(
                    [self._root(number, roots.get(number, 0)) for roots in checkpoint.roots]
                )
                whole = _laid_over(catalog, number, (), [root], shards)
                trees[number] = whole.laid_out(shards)
        else:
            for number, stored in checkpoint.trees.items():
                loaded = [self._root(number, root) for root in stored.roots]
                bounds = bounds_of(number, stored)
                trees[number] = _laid_over(catalog, number, bounds, loaded, shards)
        saved.restore(
            checkpoint.version,
            [self._pages[number] for number in sorted(roots_of(checkpoint))],
            {page: number for number, page in self._pages.items()},
            list(self._incomplete),
            max(self.last_number, checkpoint.last_page),
        )
        return Snapshot(
            checkpoint.version, checkpoint.time, catalog, Trees().changed(trees), shards
        )

    def _root(self, tree: int, number: int) -> Tree:
        if number == 0:
            return EMPTY
        while number in self._incomplete:
            number = self._incomplete[number]
        page = self._pages.get(number)
        if page is None:
            raise DataCorrupted(
                f"page {number} of tree {tree} is missing",
                hint="Restore a backup, and keep the damaged data until you have.",
            )
        return page


def _laid_over(
    catalog: Catalog, number: int, bounds: tuple[Key, ...], roots: list[Tree], shards: int
) -> RangedTree:
    return laid_over(number, bounds, roots, catalog.table_of_tree(number), shards)


async def merged(trees: list[Tree]) -> Tree:
    """Merge trees, whose keys are distinct and lie anywhere between each other, into one."""
    tree: Tree = EMPTY
    entries = merge(*map(_entries, trees), key=itemgetter(0))
    while piece := list(islice(entries, CHANGES_AT_ONCE)):
        tree = apply(tree, [key for key, _ in piece], [value for _, value in piece])
        await trio.lowlevel.checkpoint()
    return tree


def _entries(tree: Tree) -> Iterator[tuple[Key, Value]]:
    for keys, values in pages(tree):
        yield from zip(keys, values, strict=True)
