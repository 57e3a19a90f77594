"""Hands the newest snapshot over to a new branch: it waits for no checkpoint and no replay.

    parent, in memory   pages up to number N        pages that the shared checkpoint does not have
    branch, in memory   the same numbers, unloaded  new pages that share the parent's entries
    branch, on disk     the shared checkpoint       the records after it, borrowed

The log has everything, so a crash loses nothing: the next start replays it. Only the first
time, where both are open in one process, the branch begins with what its parent has in memory. That
takes as long as there are unsaved pages, and copies no row.

A page has one number and one store, and parent and branch save it each for themselves. So each has
a page object of its own; the lists in it never change, and are shared.
"""

from __future__ import annotations

import msgspec
import trio

from qserver.durability.loading import load_newest
from qserver.durability.page_store import LoggedPages
from qserver.durability.pages import page_without_entries
from qserver.durability.pauses import in_steps
from qserver.durability.port import Log
from qserver.durability.recovery import Recovered, recover_from
from qserver.durability.saved_pages import SavedPages
from qserver.storage.page import EMPTY, Branch, Leaf, Tree, open_branch, read_leaf
from qserver.storage.ranges import RangedTree, Trees
from qserver.storage.snapshot import Lease, Snapshot, empty_snapshot
from qserver.values.steps import Steps


class Handover(msgspec.Struct, frozen=True):
    snapshot: Snapshot
    """The version that parent and branch have in common."""
    last_page: int
    """That of the checkpoint which they share; 0 if there is none."""
    log_bytes: int
    """The records after it."""
    copied: int
    """Entries of saved leaves that were copied to unsaved ones, see `LoggedPages.copied`."""


async def take_over(handover: Handover, log: Log, store: LoggedPages) -> Recovered:
    """Return the state with which a branch begins, if its log is as it was made.

    Records that were appended since are replayed. Raises what `recover_from` raises.
    """
    saved, shards = SavedPages(store), handover.snapshot.shards
    base = await load_newest(log, saved, shards) or empty_snapshot(shards, store.new_lease(0))
    assert base.lease is not None
    steps = _branched(handover, store, base.lease)
    snapshot = await in_steps(steps, trio.lowlevel.checkpoint)
    store.copied = handover.copied
    return await recover_from(Recovered(snapshot, saved, handover.log_bytes), log)


def _branched(handover: Handover, store: LoggedPages, lease: Lease) -> Steps[Snapshot]:
    old, trees = handover.snapshot, dict[int, RangedTree]()
    for number, tree in old.trees.items():
        roots = []
        for root in tree.roots:
            roots.append((yield from _copied(root, store, handover.last_page)))
        trees[number] = msgspec.structs.replace(tree, roots=tuple(roots))
    return Snapshot(old.version, old.time, old.catalog, Trees().changed(trees), old.shards, lease)


def _copied(page: Tree, store: LoggedPages, last_page: int) -> Steps[Tree]:
    """Return the page of the branch, with the pages below it that its checkpoint lacks."""
    if not page.length:
        return EMPTY
    if 0 < page.number <= last_page or isinstance(page, Leaf):
        return _copied_alone(page, store, last_page)
    separators, children = open_branch(page)
    copies = []
    if page.height == 1:
        copies = [_copied_alone(child, store, last_page) for child in children]
    else:
        for child in children:
            copies.append((yield from _copied(child, store, last_page)))
    yield
    return Branch(separators, copies, page.length, page.height)


def _copied_alone(page: Tree, store: LoggedPages, last_page: int) -> Tree:
    """Return a page of the branch without those below it."""
    if 0 < page.number <= last_page:
        return page_without_entries(page.number, page.length, page.height, store)
    assert isinstance(page, Leaf)
    keys, values = page.keys_here, page.values_here
    if keys is None:  # the parent has saved it meanwhile, and evicted it
        keys, values = read_leaf(page)
    return Leaf(keys, values, page.length)
