"""Vectors of pages: filled once, bounded, and dead with their page."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qserver.storage import btree, columns
from qserver.storage.btree import apply
from qserver.storage.columns import Chunk, chunks
from qserver.storage.page import EMPTY, Branch, Tree, Value
from qserver.storage.vector_cache import VectorCache
from qserver.values.vector_families import INTEGER, ColumnVector

FIRST = ColumnVector(0, INTEGER)
SECOND = ColumnVector(1, INTEGER)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, size in (("MAX", 4), ("BUILT", 3), ("MIN", 2)):
        monkeypatch.setattr(btree, f"PAGE_ENTRIES_{name}", size)
    monkeypatch.setattr(columns, "VECTOR_ROWS_MIN", 3)
    yield


def tree_of(count: int) -> Tree:
    keys = [(number,) for number in range(count)]
    rows: list[Value] = [(number, number % 5) for number in range(count)]
    return apply(EMPTY, keys, rows)


def chunks_of(tree: Tree) -> list[Chunk]:
    return [part for part in chunks(tree) if isinstance(part, Chunk)]


def values(part: Chunk | list[Value]) -> list[Value]:
    return rows_of(part) if isinstance(part, Chunk) else part


def rows_of(chunk: Chunk, places: list[int] | None = None) -> list[Value]:
    return [row for run in chunk.runs(places) for row in run]


@pytest.fixture
def cache() -> VectorCache:
    return VectorCache(1 << 20)


def is_prepared(
    chunk: Chunk, cache: VectorCache, *wanted: ColumnVector, is_eager: bool = True
) -> bool:
    for _ in chunk.prepare(wanted, cache, is_eager):
        pass
    return chunk.is_ready


def prepared(chunk: Chunk, cache: VectorCache, wanted: ColumnVector) -> Any:
    """The vector of a column, filled if it must be; None if there is none."""
    return chunk.column(wanted) if is_prepared(chunk, cache, wanted) else None


@pytest.mark.parametrize("count", [0, 1, 3, 4, 17, 100])
def test_chunks_and_runs_are_all_values_in_order(count: int) -> None:
    tree = tree_of(count)
    for low, high in (
        (None, None),
        ((2,), None),
        (None, (count - 2,)),
        ((7,), (9,)),
        ((3,), (60,)),
    ):
        found = [value for part in chunks(tree, low, high) for value in values(part)]
        assert found == [value for run in btree.value_runs(tree, low, high) for value in run]


def test_a_part_of_a_page_has_that_part_of_its_vectors(cache: VectorCache) -> None:
    tree = tree_of(100)
    for part in chunks(tree, (5,), (71,)):
        if isinstance(part, Chunk):
            vector = prepared(part, cache, SECOND)
            assert vector is not None
            assert vector.values.tolist() == [row[1] for row in rows_of(part)]


def test_a_vector_is_filled_once_and_kept_by_its_page(cache: VectorCache) -> None:
    tree = tree_of(40)
    first = chunks_of(tree)
    assert all(prepared(chunk, cache, FIRST) is not None and chunk.filled for chunk in first)
    again = chunks_of(tree)
    for chunk, other in zip(first, again, strict=True):
        assert prepared(other, cache, FIRST) is prepared(chunk, cache, FIRST)
        assert not other.filled


def test_a_changed_page_has_no_vectors_and_the_others_keep_theirs(cache: VectorCache) -> None:
    old = tree_of(60)
    for chunk in chunks_of(old):
        prepared(chunk, cache, FIRST)
    new = apply(old, [(0,)], [(1000, 1)])
    assert prepared(chunks_of(new)[0], cache, FIRST).values.tolist()[0] == 1000
    assert prepared(chunks_of(old)[0], cache, FIRST).values.tolist()[0] == 0
    last = chunks_of(new)[-1]
    assert prepared(last, cache, FIRST) is prepared(chunks_of(old)[-1], cache, FIRST)
    assert not last.filled


@pytest.mark.long
def test_vectors_die_with_their_pages(cache: VectorCache) -> None:
    tree = tree_of(60)
    for chunk in chunks_of(tree):
        prepared(chunk, cache, FIRST)
    assert cache.bytes > 0
    del tree, chunk
    gc.collect()
    assert cache.bytes == cache.columns == 0


def test_the_least_recently_used_columns_go_when_there_are_too_many(cache: VectorCache) -> None:
    tree = tree_of(300)
    first, second, *others = chunks_of(tree)
    prepared(first, cache, FIRST)
    prepared(second, cache, FIRST)
    size = cache.bytes // 2
    cache.bytes_max = 3 * size + size // 2
    for chunk in others:
        prepared(first, cache, FIRST)
        prepared(chunk, cache, FIRST)
        assert cache.bytes <= cache.bytes_max
    again, away, *_ = chunks_of(tree)
    prepared(again, cache, FIRST)
    prepared(away, cache, FIRST)
    assert not again.filled and away.filled
    assert cache.columns == 3


def test_a_column_that_does_not_fit_is_looked_at_once(cache: VectorCache) -> None:
    keys = [(number,) for number in range(9)]
    tree = apply(EMPTY, keys, [(2**70,) for _ in keys])
    (chunk,) = chunks_of(tree)
    assert prepared(chunk, cache, FIRST) is None and chunk.filled == 9
    (again,) = chunks_of(tree)
    assert prepared(again, cache, FIRST) is None and again.filled == 0


def test_a_column_that_does_not_pay_at_once_is_filled_when_wanted_again(cache: VectorCache) -> None:
    tree = tree_of(9)
    (chunk,) = chunks_of(tree)
    assert not is_prepared(chunk, cache, FIRST, SECOND, is_eager=False) and not chunk.filled
    (again,) = chunks_of(tree)
    assert is_prepared(again, cache, FIRST, SECOND, is_eager=False) and again.filled == 18


def test_without_a_budget_there_are_no_vectors(cache: VectorCache) -> None:
    tree = tree_of(9)
    (chunk,) = chunks_of(tree)
    assert prepared(chunk, cache, FIRST) is not None
    cache.bytes_max = 0
    assert prepared(chunk, cache, FIRST) is None


def test_a_page_is_the_same_with_and_without_vectors(cache: VectorCache) -> None:
    tree = tree_of(60)
    assert isinstance(tree, Branch)
    before = repr(tree), len(tree), list(btree.pages(tree))
    for chunk in chunks_of(tree):
        prepared(chunk, cache, FIRST)
    assert (repr(tree), len(tree), list(btree.pages(tree))) == before
    assert list(btree.difference(tree, apply(tree, [(3,)], [(3, 3)]))) != []


@pytest.mark.parametrize("few", [1, 4, 100])
@given(data=st.data())
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_rows_at_places_are_those_rows(
    few: int, monkeypatch: pytest.MonkeyPatch, cache: VectorCache, data: st.DataObject
) -> None:
    monkeypatch.setattr(columns, "FEW", few)
    tree = tree_of(data.draw(st.integers(5, 60)))
    low = data.draw(st.none() | st.integers(0, 9).map(lambda at: (at,)))
    for chunk in [part for part in chunks(tree, low) if isinstance(part, Chunk)]:
        if data.draw(st.booleans()):
            is_prepared(chunk, cache, FIRST)
        places = sorted(data.draw(st.sets(st.integers(0, chunk.length - 1), min_size=1)))
        rows = rows_of(chunk)
        assert len(rows) == chunk.length
        assert rows_of(chunk, places) == [rows[at] for at in places]


@pytest.mark.long
def test_two_scans_that_take_turns_fill_a_column_once(cache: VectorCache) -> None:
    tree = tree_of(12)
    (one,), (other,) = chunks_of(tree), chunks_of(tree)
    first, second = one.prepare((FIRST,), cache), other.prepare((FIRST,), cache)
    next(first)
    next(second)
    assert [*first, *second] and one.is_ready and other.is_ready
    assert one.column(FIRST) is other.column(FIRST)
    assert cache.columns == 1
    del tree, one, other, first, second
    gc.collect()
    assert cache.bytes == 0
