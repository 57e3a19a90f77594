"""One memory for everything: who goes when it is short, and who stays."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import TypeAlias

import pytest

from qserver.durability import page_cache
from qserver.durability.page_cache import (
    EVICTED_AT_ONCE_MAX,
    EVICTIONS_BETWEEN_COLLECTIONS,
    PACKED_BYTES_BETWEEN_TRIMS,
    SPARED_AT_ONCE_MAX,
    PageCache,
    size_of_page,
)
from qserver.engine.collector import settle_collector
from qserver.query.memory_pool import MemoryPool
from qserver.storage.columns import Chunk
from qserver.storage.page import Branch, Key, Leaf, LeafEntries, Tree, Value
from qserver.values.vector_families import INTEGER, ColumnVector
from qserver.values.vectors import Vector

Columns: TypeAlias = dict[tuple[int, ColumnVector], Vector | None]


class Kept:
    """Another cache."""

    def __init__(self, size: int) -> None:
        self.bytes = size

    def shrink(self, bytes_left: int) -> None:
        self.bytes = min(self.bytes, bytes_left)


class Store:
    def __init__(self, cache: PageCache) -> None:
        self.cache = cache

    def load(self, pages: Sequence[Tree]) -> None:
        raise AssertionError("nothing is wanted again")

    def find(self, leaf: Leaf, key: Key) -> Value | None:
        raise AssertionError("nothing is packed")

    def read(self, leaf: Leaf) -> LeafEntries:
        raise AssertionError("nothing is packed")

    unpack = read

    def read_stored(self, leaf: Leaf) -> tuple[list[Value], bool]:
        raise AssertionError("nothing is packed")

    def contents(self, leaf: Leaf) -> bytes:
        raise AssertionError("nothing is packed")

    def note_copied(self, leaf: Leaf) -> None:
        raise AssertionError("nothing is copied")

    def load_columns(self, pages: Sequence[Branch], columns: Sequence[ColumnVector]) -> Columns:
        return {}

    def note_filled(self, page: Branch) -> None:
        """Nobody saves columns here."""


def saved_leaves(count: int, store: Store, rows: int = 10) -> list[Leaf]:
    return [
        Leaf(
            [(at * rows + row,) for row in range(rows)],
            [(at * rows + row, 7) for row in range(rows)],
            rows,
            at + 1,
            store,
        )
        for at in range(count)
    ]


SIZE = size_of_page(saved_leaves(1, Store(PageCache()))[0])


def filled(most_in_leaves: int, leaves: int = 100) -> tuple[PageCache, list[Leaf]]:
    cache = PageCache(1 << 40)
    pages = saved_leaves(leaves, Store(cache))
    cache.most = most_in_leaves * SIZE * 16 // 15 + 16
    cache.keep(pages)
    return cache, pages


def count_here(pages: list[Leaf]) -> int:
    return sum(page.is_here for page in pages)


def test_memory_of_packed_leaves_goes_back_to_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    trims: list[int] = []
    cache = PageCache(1 << 40)
    monkeypatch.setattr(page_cache, "trim", lambda: trims.append(cache.evictions))
    leaves = saved_leaves(5, Store(cache))
    for leaf in leaves:
        leaf.packed = b""
        cache.evict(leaf, PACKED_BYTES_BETWEEN_TRIMS // 2)
    assert trims == [3], "more than so many bytes are gone"
    unpacked = saved_leaves(5, Store(cache))
    for leaf in unpacked:
        cache.evict(leaf, PACKED_BYTES_BETWEEN_TRIMS)
    assert trims == [3], "small objects are not malloc's"


def test_other_caches_give_way_to_pages_down_to_their_share() -> None:
    cache, pages = filled(200)
    vectors = Kept(cache.most)
    cache.others.append(vectors)
    cache.make_room()
    assert vectors.bytes == cache.most // 8
    assert count_here(pages) == len(pages)


def test_pages_go_before_another_cache_loses_its_share() -> None:
    cache, pages = filled(100)
    plans = Kept(10 * SIZE)
    cache.others.append(plans)
    cache.make_room()
    assert plans.bytes == 10 * SIZE
    assert count_here(pages) == 90


def test_another_cache_loses_everything_when_no_page_can_go() -> None:
    cache, pages = filled(200)
    plans = Kept(cache.most // 10)
    cache.others.append(plans)
    cache.make_room(cache.most)
    assert count_here(pages) == 0
    assert plans.bytes == 0


def test_pages_make_room_for_what_statements_hold() -> None:
    cache, pages = filled(100)
    pool = MemoryPool(cache.most)
    pool.make_room = cache.make_room
    cache.users.append(pool)
    half = 50 * SIZE
    pool.take(half)
    assert count_here(pages) == 50
    pool.give_back(half)
    cache.make_room()
    assert count_here(pages) == 50, "what is gone comes back when it is wanted"


def test_pages_make_room_for_vectors_that_are_filled() -> None:
    cache = PageCache(1 << 40)
    store = Store(cache)
    others = saved_leaves(100, store)
    below = saved_leaves(50, store, rows=60)
    branch = Branch([leaf.keys[0] for leaf in below[1:]], [*below], 3000, 1, 1000, store)
    cache.keep([*others, *below, branch])
    cache.most = cache.held
    chunk = Chunk(branch, 0, 3000)
    vectors = cache.vectors
    assert list(chunk.prepare((ColumnVector(1, INTEGER),), vectors)) and chunk.is_ready
    assert 0 < vectors.bytes <= cache.most // 8
    assert cache.held + vectors.bytes <= cache.most
    assert count_here(others) < len(others)


def test_one_call_goes_through_a_bounded_part_of_the_line() -> None:
    cache, pages = filled(5000, 5000)
    for page in pages:
        page.touched = True
    cache.make_room(SIZE)
    assert count_here(pages) == len(pages) - 1, "one goes, though all were read lately"
    assert sum(not page.touched for page in pages) == SPARED_AT_ONCE_MAX
    cache.make_room(cache.most)
    assert count_here(pages) == len(pages) - 1 - EVICTED_AT_ONCE_MAX
    while cache.held:
        before = cache.evictions
        cache.make_room(cache.most)
        assert 0 < cache.evictions - before <= EVICTED_AT_ONCE_MAX
    assert count_here(pages) == 0


def test_other_caches_keep_their_share_while_pages_are_still_to_go() -> None:
    cache, _ = filled(5000, 5000)
    plans = Kept(cache.most // 10)
    cache.others.append(plans)
    cache.make_room(cache.most)
    assert plans.bytes == cache.most // 10
    while cache.held:
        cache.make_room(cache.most)
    assert plans.bytes == 0


def test_pages_make_room_for_what_is_not_saved() -> None:
    class Unsaved:
        def save_soon(self) -> None:
            pass

    cache, pages = filled(100)
    cache.note_unsaved(Unsaved(), 40 * SIZE)
    assert count_here(pages) == 60


@pytest.mark.half
def test_pages_that_come_and_go_do_not_pile_up_for_the_collector() -> None:
    leaves, rows = 6000, 10
    cache, old = filled(leaves, leaves)
    settle_collector()
    most = 0
    for at in range(leaves):
        # A page comes, and one of those that were there before goes.
        cache.load(saved_leaves(1, Store(cache), rows))
        if at % 500 == 0:
            most = max(most, len(gc.get_objects(0)))
    assert cache.evictions > leaves - 10
    assert most < 4 * rows * EVICTIONS_BETWEEN_COLLECTIONS < 2 * rows * leaves
    assert count_here(old) < 10
