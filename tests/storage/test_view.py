"""A view answers as if there were no shards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qserver.storage.btree import Key, Value
from qserver.storage.partition import Writes
from qserver.storage.view import Page, View, empty_view, merged
from qserver.values.keys import NULL_KEY, TOP
from tests.storage.databases import flat, view_with
from tests.storage.trees import unhurried, within

pytestmark = pytest.mark.usefixtures("tiny_pages")

elements = st.integers(0, 40) | st.just(NULL_KEY)
keys = st.tuples(elements, st.integers(0, 3))
models = st.sets(keys, max_size=60).map(lambda members: {key: (key, "row") for key in members})
bounds = st.none() | keys | st.tuples(elements) | st.tuples(elements, st.just(TOP))
partition_counts = st.integers(1, 5)


@unhurried
@given(model=models, shards=partition_counts, low=bounds, high=bounds)
@example(model={}, shards=4, low=None, high=None)
def test_ordered_pages_are_the_sorted_entries_of_the_range(
    model: dict[Key, Value], shards: int, low: Key | None, high: Key | None
) -> None:
    view = view_with(model, shards)
    expected = [(key, model[key]) for key in within(model, low, high)]
    assert flat(view.pages_in_order(1, low, high)) == expected
    assert flat(view.pages_in_order(1, low, high, backward=True)) == expected[::-1]
    assert sorted(flat(view.pages(1, low, high))) == expected
    assert view.count(1) == len(model)


@unhurried
@given(
    model=models,
    shards=partition_counts,
    hashed=st.sampled_from([None, 0]),
    low=bounds,
    high=bounds,
    most=st.integers(0, 70),
)
def test_the_first_entries_of_a_range_are_those_of_the_sorted_range(
    model: dict[Key, Value],
    shards: int,
    hashed: int | None,
    low: Key | None,
    high: Key | None,
    most: int,
) -> None:
    """Few of them or many, and also when all entries are in one partition."""
    view = view_with(model, shards, hashed=hashed)
    expected = [(key, model[key]) for key in within(model, low, high)]
    rows = [value for _, value in expected]
    assert view.first_rows(1, low, high, False, most) == rows[:most]
    assert view.first_rows(1, low, high, True, most) == rows[::-1][:most]
    assert flat(view.pages_in_order(1, low, high, False, most)) == expected
    assert flat(view.pages_in_order(1, low, high, True, most)) == expected[::-1]


@unhurried
@given(model=models, shards=partition_counts, hashed=st.sampled_from([None, 1]), absent=keys)
def test_get_looks_in_the_partition_that_the_hashed_prefix_names(
    model: dict[Key, Value], shards: int, hashed: int | None, absent: Key
) -> None:
    view = view_with(model, shards, hashed=hashed)
    for key, value in model.items():
        assert view.get_entry(1, key, hashed) is value
    assert view.get_entry(1, absent, hashed) is model.get(absent)


def test_entries_with_one_hashed_prefix_share_a_partition() -> None:
    model = {("ada", at): (at,) for at in range(50)}
    view = view_with(model, shards=5, hashed=1)
    assert sorted(len(partition.tree(1)) for partition in view.shards) == [0, 0, 0, 0, 50]
    spread = view_with(model, shards=5)
    assert all(len(partition.tree(1)) for partition in spread.shards)


@unhurried
@given(
    assigned=st.dictionaries(st.tuples(st.integers(0, 99)), st.integers(0, 4)),
    sizes=st.lists(st.integers(1, 7), min_size=5, max_size=5),
    backward=st.booleans(),
)
def test_streams_with_pages_of_any_size_are_merged_in_order(
    assigned: dict[Key, int], sizes: list[int], backward: bool
) -> None:
    streams = []
    for number, size in enumerate(sizes):
        mine = sorted((key for key in assigned if assigned[key] == number), reverse=backward)
        streams.append(_paged(mine, size))
    pages = list(merged(streams, backward))
    assert all(len(keys) == len(values) > 0 for keys, values in pages)
    assert flat(pages) == [(key, (key,)) for key in sorted(assigned, reverse=backward)]


def _paged(keys: list[Key], size: int) -> Iterator[Page]:
    for start in range(0, len(keys), size):
        page = keys[start : start + size]
        yield page, [(key,) for key in page]


def test_a_merge_takes_one_page_of_each_stream_before_it_hands_out_the_first() -> None:
    taken = []

    def stream(number: int) -> Iterator[Page]:
        for page in _paged([(at * 3 + number,) for at in range(40)], 10):
            taken.append(number)
            yield page

    pages = merged([stream(0), stream(1), stream(2)])
    assert next(pages)[0][0] == (0,)
    assert sorted(taken) == [0, 0, 1, 2], "and the next page of the stream that was used up"


def test_an_old_view_is_as_it_was() -> None:
    old = view_with({(at,): (at,) for at in range(30)}, shards=2)
    writes: Writes = {1: {(at,): None for at in range(30)}}
    changed = tuple(partition.changed(writes) for partition in old.shards)
    new = View(2, 0.0, old.catalog, changed)
    assert (old.count(1), new.count(1)) == (30, 0)
    assert old.get_entry(1, (7,)) == (7,)


def test_a_database_begins_empty() -> None:
    view = empty_view(4)
    assert (view.version, len(view.shards), dict(view.catalog.tables)) == (0, 4, {})
    assert view.count(1) == 0
    assert list(view.pages(1)) == list(view.pages_in_order(1, backward=True)) == []


def test_a_view_describes_itself() -> None:
    view = view_with({(1,): (1,)}, shards=3)
    assert repr(view) == "the view of version 1: 2 tables in 3 shards"
