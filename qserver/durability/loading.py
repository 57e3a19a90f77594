"""Loads the snapshot of a stored checkpoint: its roots, and nothing below them.

The checkpoint's record has the number, length and height of each root, which is all that an
unloaded page has. So opening takes as long for a large database as for a small one. Pages with
numbers greater than the checkpoint's last are left over from a crash, and dead.

Checkpoints of older formats lack lengths and heights, and are loaded whole (`OldPages`): pages in
the order of their numbers, so that each branch finds its children built. Their branches count as
new, so the next checkpoint rewrites them in the present format and drops all old ones. A checkpoint
of format 1 has a tree per shard, with keys spread by hash: the trees are merged into one, which is
cut into ranges.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from itertools import islice
from operator import itemgetter
from typing import Final

import trio

from qserver.durability.checkpoint import (
    FORMAT,
    AnyCheckpoint,
    Checkpoint,
    CheckpointByHash,
    StoredTree,
    bounds_of,
    catalog_of,
    decode_checkpoint,
    last_change_of,
)
from qserver.durability.column_numbers import PENDING
from qserver.durability.kept import (
    KeptCheckpoint,
    decode_numbers,
    decode_outline,
    empty,
    with_empty,
)
from qserver.durability.page_store import LoggedPages
from qserver.durability.pages import (
    StoredChildren,
    decode_page,
    impossible,
    page_without_entries,
)
from qserver.durability.port import NO_PARTS, Log
from qserver.durability.saved_columns import read_pending
from qserver.durability.saved_pages import SavedPages
from qserver.errors import DataCorrupted, LogFailed
from qserver.storage.btree import apply, branch_of, pages
from qserver.storage.catalog import Catalog
from qserver.storage.page import EMPTY, Key, Leaf, PageStore, Tree, Value
from qserver.storage.ranges import RangedTree, Trees, laid_over
from qserver.storage.snapshot import Lease, Snapshot
from qserver.storage.writes import CHANGES_AT_ONCE, Moment

PAGES_READ_AT_ONCE: Final = 256
PAGES_BEFORE_YIELDING: Final = 8


async def load_newest(log: Log, saved: SavedPages, shards: int) -> Snapshot | None:
    """Load the newest checkpoint into `saved`, and return its snapshot; None if there is none."""
    stored = await log.load_checkpoint()
    last_number = await log.last_page()
    records = await log.read(0, 1)
    if stored is None:
        if last_number and not records:
            raise DataCorrupted(
                "there are pages, but neither a checkpoint nor a log that they would belong to",
                hint="Restore a backup, and keep the damaged data until you have.",
            )
        saved.restore([empty()], [], list(range(1, last_number + 1)), last_number, 0)
        _note_pending(log, saved)
        return None
    checkpoint = decode_checkpoint(*stored)
    last_number = max(last_number, checkpoint.last_page)
    log_start = records[0][0] - 1 if records else checkpoint.version
    parts = await log.load_parts(checkpoint.version) or NO_PARTS
    dead = [] if isinstance(checkpoint, CheckpointByHash) else checkpoint.dead
    saved.restore(
        await _kept(log, checkpoint, log_start),
        decode_numbers(checkpoint.version, parts.gone or b""),
        [
            *dead,
            *decode_numbers(checkpoint.version, parts.dead or b""),
            *range(checkpoint.last_page + 1, last_number + 1),
        ],
        last_number,
        log_start,
    )
    _note_pending(log, saved)
    if isinstance(checkpoint, Checkpoint) and checkpoint.format == FORMAT:
        snapshot = snapshot_of(checkpoint, saved.store, shards)
        trees = [tree for _, tree in snapshot.trees.items()]
        roots = [root for tree in trees for root in tree.roots if len(root)]
        saved.restore_pages(roots, checkpoint.pages)
        return snapshot
    old = OldPages(saved.store)
    await old.read(log)
    catalog = catalog_of(checkpoint)
    merged_trees = await old.trees(checkpoint, catalog, shards)
    saved.restore_old(old.numbers())
    return Snapshot(
        checkpoint.version,
        checkpoint.time,
        catalog,
        Trees().changed(merged_trees),
        shards,
        saved.store.new_lease(checkpoint.version),
    )


def _note_pending(log: Log, saved: SavedPages) -> None:
    """Find out which pages lack columns that an earlier process would have made.

    A note that cannot be read may be there: the next checkpoint ends it, and the columns that it
    is about are made when scans want them.
    """
    saved.columns_to = saved.last_number
    try:
        note = log.load([PENDING]).get(PENDING)
        saved.is_pending = note is not None
        if note is not None:
            saved.columns_to = read_pending(note)
    except (DataCorrupted, LogFailed):
        saved.is_pending = True


async def _kept(log: Log, newest: AnyCheckpoint, log_start: int) -> list[KeptCheckpoint]:
    """Return the outlines of all checkpoints of a log."""
    kept = []
    for version, outline in await log.load_outlines():
        if outline:
            kept.append(decode_outline(version, outline))
        else:  # a release before kept checkpoints has written it: there is no other
            kept.append(KeptCheckpoint(version, newest.time, newest.last_page, 0))
    return with_empty(kept) if log_start == 0 else kept


def snapshot_of(
    checkpoint: Checkpoint, store: LoggedPages, shards: int, lease: Lease | None = None
) -> Snapshot:
    """Return the snapshot of a checkpoint, with roots alone."""
    catalog = catalog_of(checkpoint)
    trees = {
        number: _laid_over(
            catalog,
            number,
            bounds_of(number, tree),
            _roots(tree, store),
            shards,
            last_change_of(tree, checkpoint),
        )
        for number, tree in checkpoint.trees.items()
    }
    lease = lease or store.new_lease(checkpoint.version)
    trees_by_number = Trees().changed(trees)
    return Snapshot(checkpoint.version, checkpoint.time, catalog, trees_by_number, shards, lease)


def _roots(tree: StoredTree, store: PageStore) -> list[Tree]:
    return [
        page_without_entries(number, length, height, store) if number else EMPTY
        for number, length, height in zip(tree.roots, tree.lengths, tree.heights, strict=True)
    ]


class OldPages:
    """All pages of a checkpoint of an older format."""

    def __init__(self, store: PageStore) -> None:
        self._store = store
        self._pages: dict[int, Tree] = {}
        self._incomplete: dict[int, int] = {}
        """Branches that lack a page below them, with its number. They may count for nothing."""

    async def read(self, log: Log) -> None:
        after = 0
        while pages := await log.load_pages(after, PAGES_READ_AT_ONCE):
            for count, (number, data) in enumerate(pages, start=1):
                self._add(number, data)
                if count % PAGES_BEFORE_YIELDING == 0:
                    await trio.lowlevel.checkpoint()
            after = pages[-1][0]

    def _add(self, number: int, data: bytes) -> None:
        found = decode_page(number, data)
        if not isinstance(found, StoredChildren):
            keys, values = found
            self._pages[number] = Leaf(keys, values, len(keys), number, self._store)
            return
        missing = [child for child in found.numbers if child not in self._pages]
        if missing:
            self._incomplete[number] = missing[0]
            return
        children = [self._pages[child] for child in found.numbers]
        if any(child.height != children[0].height for child in children):
            raise impossible(number)
        self._pages[number] = branch_of(found.separators, children)

    def numbers(self) -> set[int]:
        return {*self._pages, *self._incomplete}

    async def trees(
        self, checkpoint: AnyCheckpoint, catalog: Catalog, shards: int
    ) -> dict[int, RangedTree]:
        """Return the trees; raise DataCorrupted if a page is missing."""
        trees: dict[int, RangedTree] = {}
        at = checkpoint.version, checkpoint.time
        if isinstance(checkpoint, CheckpointByHash):
            for number in sorted({tree for roots in checkpoint.roots for tree in roots}):
                root = await merged(
                    [self._root(number, roots.get(number, 0)) for roots in checkpoint.roots]
                )
                whole = _laid_over(catalog, number, (), [root], shards, at)
                trees[number] = whole.laid_out(shards)
        else:
            for number, stored in checkpoint.trees.items():
                loaded = [self._root(number, root) for root in stored.roots]
                bounds = bounds_of(number, stored)
                trees[number] = _laid_over(catalog, number, bounds, loaded, shards, at)
        return trees

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
    catalog: Catalog,
    number: int,
    bounds: tuple[Key, ...],
    roots: list[Tree],
    shards: int,
    last_change: Moment,
) -> RangedTree:
    first = catalog.table_of_tree(number)
    return laid_over(number, bounds, roots, first, shards, last_change)


async def merged(trees: list[Tree]) -> Tree:
    """Merge trees with distinct, interleaved keys into one."""
    tree: Tree = EMPTY
    entries = merge(*map(_entries, trees), key=itemgetter(0))
    while piece := list(islice(entries, CHANGES_AT_ONCE)):
        tree = apply(tree, [key for key, _ in piece], [value for _, value in piece])
        await trio.lowlevel.checkpoint()
    return tree


def _entries(tree: Tree) -> Iterator[tuple[Key, Value]]:
    for keys, values in pages(tree):
        yield from zip(keys, values, strict=True)
