"""A long log behind a checkpoint is replayed in a memory that is smaller than what it makes."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from qserver.durability.memory import MemoryLog
from qserver.durability.page_cache import PageCache
from qserver.durability.page_store import LoggedPages
from qserver.durability.port import StoredPage
from qserver.durability.recovery import SHARE_OF_REPLAY, Recovered, recover, recover_from
from qserver.durability.saved_pages import SavedPages
from qserver.errors import LogFailed
from qserver.storage.btree import children_of
from qserver.storage.page import Leaf, Tree
from qserver.storage.snapshot import Lease, Snapshot
from tests.durability.histories import History, entries_of, run_step, same, save

ROWS = 2000
CHANGES = 250
MEMORY = 1 << 20


class WatchedLog(MemoryLog):
    """Counts the pages that are saved, and fails after some of them."""

    def __init__(self) -> None:
        super().__init__()
        self.saved = 0
        self.fails_after: int | None = None
        self.is_fenced = True

    async def fence(self, version: int) -> bool:
        self.is_fenced = await super().fence(version)
        return self.is_fenced

    async def save_pages(self, pages: Sequence[StoredPage]) -> None:
        assert self.is_fenced, "the log is ours before anything is written"
        if self.fails_after is not None and self.saved + len(pages) > self.fails_after:
            raise LogFailed("the disk is full")
        await super().save_pages(pages)
        self.saved += len(pages)


async def a_log() -> tuple[WatchedLog, Snapshot]:
    """Return a log with a checkpoint of ROWS rows, and changes of some of them behind it."""
    log, history, chance = WatchedLog(), History(1), Random(7)
    run_step(history, ("t", [(number, f"word {number}") for number in range(ROWS)], "nothing"))
    await history.append_to(log)
    await save(log, SavedPages(LoggedPages(log)), history.snapshot, pages_at_once=64)
    for _ in range(CHANGES):
        rows = [(chance.randrange(2 * ROWS), "changed") for _ in range(5)]
        gone = "rows" if chance.random() < 0.2 else "nothing"
        run_step(history, ("t", rows, gone))
        await history.append_to(log)
    log.saved, log.is_fenced = 0, False
    return log, history.snapshot


def unsaved_entries(recovered: Recovered) -> int:
    """Return how many entries are in leaves that cannot be let go."""
    trees = [tree for _, tree in recovered.snapshot.trees.items()]
    waiting: list[Tree] = [root for tree in trees for root in tree.roots]
    entries = 0
    while waiting:
        page = waiting.pop()
        if not page.number:
            entries += page.length if isinstance(page, Leaf) else 0
            waiting += children_of(page)
    return entries


async def recovered_in(log: MemoryLog, memory: int, *, may_save: bool = True) -> Recovered:
    cache = PageCache(memory)
    return await recover(log, 1, LoggedPages(log, cache), may_save=may_save)


def with_lease(snapshot: Snapshot, lease: Lease) -> Snapshot:
    return Snapshot(
        snapshot.version,
        snapshot.time,
        snapshot.catalog,
        snapshot.trees,
        snapshot.shards,
        lease,
    )


async def check_that_the_rest_is_forgotten(
    log: MemoryLog, saved: SavedPages, snapshot: Snapshot
) -> None:
    """Take a checkpoint, as the checkpointer does, with a lease of its own."""
    leased = with_lease(snapshot, saved.store.new_lease(snapshot.version))
    await save(log, saved, leased, pages_at_once=64)
    assert snapshot.lease is not None
    snapshot.lease.last = -1  # nobody reads it any more
    while some := saved.some_to_forget(64):
        await log.forget(leased.version, some)
        saved.forgotten(some)
    there = {number for number, _ in await log.load_pages(0, 1 << 30)}
    assert saved.count == len(there)


async def test_what_a_long_log_makes_is_saved_as_far_as_memory_needs_it() -> None:
    log, newest = await a_log()
    roomy = await recovered_in(log, 1 << 30)
    assert log.saved == 0 and roomy.ahead_bytes == 0
    assert unsaved_entries(roomy) > 4 * ROWS, "nearly every leaf has a change"
    narrow = await recovered_in(log, MEMORY)
    assert log.saved > 0
    assert same(narrow.snapshot, newest) and same(roomy.snapshot, newest)
    store = narrow.saved.store
    unsaved = unsaved_entries(narrow) * store.cache.entry_bytes
    assert unsaved <= 2 * (MEMORY >> SHARE_OF_REPLAY)
    assert store.cache.held <= MEMORY
    assert narrow.log_bytes == roomy.log_bytes >= narrow.ahead_bytes > 0


async def test_memory_stays_within_its_bound_at_every_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, _ = await a_log()
    most = 0.0
    begin = SavedPages.begin

    def watched(saved: SavedPages, snapshot: Snapshot) -> object:
        nonlocal most
        most = max(most, unsaved_entries(Recovered(snapshot, saved, 0)))
        return begin(saved, snapshot)

    monkeypatch.setattr(SavedPages, "begin", watched)
    narrow = await recovered_in(log, MEMORY)
    entry = narrow.saved.store.cache.entry_bytes
    assert 0 < most * entry <= 3 * (MEMORY >> SHARE_OF_REPLAY)


async def test_the_next_checkpoint_names_what_was_saved_ahead_and_forgets_the_rest() -> None:
    log, newest = await a_log()
    narrow = await recovered_in(log, MEMORY)
    saved, snapshot = narrow.saved, narrow.snapshot
    del narrow
    await check_that_the_rest_is_forgotten(log, saved, snapshot)
    del snapshot
    again = await recovered_in(log, MEMORY)
    assert same(again.snapshot, newest)
    assert again.log_bytes == 0


@pytest.mark.half
@pytest.mark.parametrize("kept", [0, 200])
async def test_a_crash_in_the_middle_leaves_pages_that_are_forgotten(kept: int) -> None:
    log, newest = await a_log()
    log.fails_after = kept
    first = await recovered_in(log, MEMORY)  # it goes on in memory, and the process dies
    assert same(first.snapshot, newest)
    assert log.saved <= kept
    log.fails_after = None
    narrow = await recovered_in(log, MEMORY)
    assert same(narrow.snapshot, newest)
    saved, snapshot = narrow.saved, narrow.snapshot
    del narrow
    await check_that_the_rest_is_forgotten(log, saved, snapshot)


@pytest.mark.long
@pytest.mark.parametrize("renewed", [False, True], ids=["first lease", "a later lease"])
async def test_a_reader_keeps_pages_that_were_saved_ahead_when_the_log_is_read_anew(
    renewed: bool,
) -> None:
    log, newest = await a_log()
    cache = PageCache(MEMORY)
    store = LoggedPages(log, cache)
    first = await recover(log, 1, store, may_save=True)
    reader = first.snapshot
    if renewed:  # as a checkpoint does when it begins, even if it fails then
        reader = with_lease(reader, store.new_lease(reader.version))
    del first
    second = await recover(log, 1, store, may_save=True)
    saved, history = second.saved, History(1)
    history.snapshot = second.snapshot
    del second
    run_step(history, ("t", [(1, "again")], "nothing"))
    await history.append_to(log)
    later = with_lease(history.snapshot, store.new_lease(history.snapshot.version))
    del history
    await save(log, saved, later, pages_at_once=64)
    cache.most = 0
    while cache.held:
        cache.make_room()
    assert entries_of(reader) == entries_of(newest)


@pytest.mark.half
async def test_more_log_behind_what_is_known_is_saved_ahead_too() -> None:
    log, newest = await a_log()
    roomy = await recovered_in(log, 1 << 30)
    roomy.saved.store.cache.most = MEMORY
    history = History(1)
    history.snapshot = roomy.snapshot
    for number in range(0, ROWS, 3):
        run_step(history, ("t", [(number, "again")], "nothing"))
    await history.append_to(log)
    log.is_fenced = False
    narrow = await recover_from(roomy, log, may_save=True)
    assert log.saved > 0
    assert same(narrow.snapshot, history.snapshot)
    assert not same(narrow.snapshot, newest)


async def test_who_only_looks_writes_nothing() -> None:
    log, newest = await a_log()
    looked = await recovered_in(log, MEMORY, may_save=False)
    assert log.saved == 0
    assert same(looked.snapshot, newest)
