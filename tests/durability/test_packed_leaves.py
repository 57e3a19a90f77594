"""A leaf is loaded as it is stored, and unpacked where that pays."""

from __future__ import annotations

from bisect import bisect_right

import pytest

from qserver.durability.memory import MemoryLog
from qserver.durability.page_cache import LOOKS_PACKED, PageCache
from qserver.durability.page_store import LoggedPages
from qserver.durability.pages import LEAF
from qserver.durability.recovery import recover
from qserver.durability.saved_pages import SavedPages
from qserver.durability.seal import sealed
from qserver.errors import DataCorrupted
from qserver.storage import btree
from qserver.storage.page import Leaf, Tree
from tests.durability.histories import History, run_step, save

ROWS = 5000
ENTRY = 500


class Loaded:
    """A tree of ROWS rows, and three indexes, in a memory for so many entries unpacked."""

    def __init__(self, log: MemoryLog, cache: PageCache, root: Tree) -> None:
        self.log, self.cache, self.root = log, cache, root

    def leaf(self, number: int) -> Leaf:
        page = self.root
        while page.height:
            separators, children = page.separators, page.children  # type: ignore[union-attr]
            page = children[bisect_right(separators, (number,))]
        assert isinstance(page, Leaf)
        return page

    def get(self, number: int) -> bool:
        value = btree.get(self.root, (number,))
        assert value is None or value[:2] == (number, f"word {number}")
        return value is not None

    def scan(self) -> int:
        return sum(len(run) for run in btree.value_runs(self.root))


async def loaded(rows_in_memory: int) -> Loaded:
    log, history = MemoryLog(), History(1)
    rows = [(2 * number, f"word {2 * number}") for number in range(ROWS)]
    run_step(history, ("t", rows, "nothing"))
    await history.append_to(log)
    saved = SavedPages(LoggedPages(log))
    await save(log, saved, history.snapshot)
    cache = PageCache(rows_in_memory * ENTRY)
    cache.entry_bytes = ENTRY
    recovered = await recover(log, 1, LoggedPages(log, cache))
    table = recovered.snapshot.catalog.tables["t"]
    (root,) = recovered.snapshot.trees.tree(table.id).roots
    return Loaded(log, cache, root)


async def test_a_point_read_leaves_its_leaf_packed_until_it_is_read_often() -> None:
    tree = await loaded(2 * ROWS)
    for _ in range(LOOKS_PACKED):
        assert tree.get(100)
        assert not tree.get(101)
        assert tree.leaf(100).packed is not None or tree.leaf(100).keys_here is not None
    assert tree.leaf(100).keys_here is not None
    assert tree.leaf(100).packed is None
    assert tree.get(100)
    assert not tree.get(101)


async def test_a_scan_unpacks_what_has_room() -> None:
    tree = await loaded(8 * ROWS)
    assert tree.scan() == ROWS
    assert all(tree.leaf(number).packed is None for number in range(0, 2 * ROWS, 100))


async def test_a_scan_without_room_for_all_leaves_it_packed() -> None:
    tree = await loaded(ROWS // 2)
    assert tree.scan() == ROWS
    assert tree.leaf(2 * ROWS - 2).packed is not None
    packed = tree.cache.statistics().cached
    assert packed > ROWS // 48, "all of them have room"
    loads = tree.cache.loads
    assert tree.scan() == ROWS
    assert tree.cache.loads == loads


async def test_where_memory_is_short_a_quarter_of_it_is_unpacked_at_most() -> None:
    tree = await loaded(ROWS // 2)
    for _ in range(3):
        for number in range(0, 2 * ROWS, 2):
            assert tree.get(number)
    most = tree.cache.most
    assert most // 8 < tree.cache._unpacked <= most // 4 + 64 * ENTRY


async def test_pages_that_come_and_go_keep_what_was_read_often_in_reach() -> None:
    tree = await loaded(ROWS // 20)
    for number in range(0, 2 * ROWS, 10):
        assert tree.get(number)
        for _ in range(3):
            assert tree.get(500)
    assert tree.leaf(500).keys_here is not None
    assert tree.cache.held <= tree.cache.most


@pytest.mark.parametrize("body", [b"", LEAF, LEAF + b"\x92", LEAF + b"\x92\x91\x91\x01\x90", b"B"])
async def test_what_is_no_leaf_is_refused_when_it_is_read(body: bytes) -> None:
    tree = await loaded(2 * ROWS)
    leaf = tree.leaf(0)
    tree.log._pages[leaf.number] = sealed(body, leaf.number)
    with pytest.raises(DataCorrupted, match=f"page {leaf.number}"):
        tree.get(0)
    with pytest.raises(DataCorrupted, match=f"page {leaf.number}"):
        tree.scan()


async def test_a_leaf_that_cannot_be_decoded_is_reported_by_whoever_needs_it() -> None:
    tree = await loaded(2 * ROWS)
    leaf = tree.leaf(0)
    store = leaf.store
    assert isinstance(store, LoggedPages)
    stored = tree.log._pages[leaf.number]
    tree.log._pages[leaf.number] = sealed(stored[4:-20], leaf.number)
    for read in (lambda: tree.get(0), tree.scan):
        store.trouble = None
        with pytest.raises(DataCorrupted):
            read()
        assert store.trouble is not None
