"""A snapshot answers as if there were no shards."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qserver.storage.page import Key, Value
from qserver.storage.routing import written
from qserver.storage.snapshot import Snapshot, empty_snapshot
from qserver.storage.writes import Writes
from qserver.values.keys import NULL_KEY, TOP
from qserver.values.steps import at_once
from tests.storage.databases import flat, view_with
from tests.storage.trees import unhurried, within

pytestmark = pytest.mark.usefixtures("tiny_pages", "tiny_ranges")

elements = st.integers(0, 40) | st.just(NULL_KEY)
keys = st.tuples(elements, st.integers(0, 3))
models = st.sets(keys, max_size=60).map(lambda members: {key: (key, "row") for key in members})
bounds = st.none() | keys | st.tuples(elements) | st.tuples(elements, st.just(TOP))
shard_counts = st.integers(1, 5)


@unhurried
@given(model=models, shards=shard_counts, low=bounds, high=bounds)
@example(model={}, shards=4, low=None, high=None)
def test_ordered_pages_are_the_sorted_entries_of_the_range(
    model: dict[Key, Value], shards: int, low: Key | None, high: Key | None
) -> None:
    snapshot = view_with(model, shards)
    expected = [(key, model[key]) for key in within(model, low, high)]
    assert flat(snapshot.pages_in_order(1, low, high)) == expected
    assert flat(snapshot.pages_in_order(1, low, high, backward=True)) == expected[::-1]
    assert flat(snapshot.pages(1, low, high)) == expected
    assert flat(snapshot.pages(1, low, high, backward=True)) == expected[::-1]
    values = [value for run in snapshot.value_runs(1, low, high) for value in run]
    assert values == [value for _, value in expected]
    assert snapshot.count(1) == len(model)


@unhurried
@given(
    model=models,
    shards=shard_counts,
    low=bounds,
    high=bounds,
    most=st.integers(0, 70),
)
def test_the_first_entries_of_a_range_are_those_of_the_sorted_range(
    model: dict[Key, Value],
    shards: int,
    low: Key | None,
    high: Key | None,
    most: int,
) -> None:
    """Few of them or many, and also when they are in several ranges."""
    snapshot = view_with(model, shards)
    expected = [(key, model[key]) for key in within(model, low, high)]
    rows = [value for _, value in expected]
    assert snapshot.first_rows(1, low, high, False, most) == rows[:most]
    assert snapshot.first_rows(1, low, high, True, most) == rows[::-1][:most]
    assert flat(snapshot.pages_in_order(1, low, high, False, most)) == expected
    assert flat(snapshot.pages_in_order(1, low, high, True, most)) == expected[::-1]


@unhurried
@given(model=models, shards=shard_counts, absent=keys)
def test_get_looks_in_the_range_that_has_the_key(
    model: dict[Key, Value], shards: int, absent: Key
) -> None:
    snapshot = view_with(model, shards)
    for key, value in model.items():
        assert snapshot.get_entry(1, key) is value
    assert snapshot.get_entry(1, absent) is model.get(absent)


def test_an_old_snapshot_is_as_it_was() -> None:
    old = view_with({(at,): (at,) for at in range(30)}, shards=2)
    writes: Writes = {1: {(at,): None for at in range(30)}}
    new = Snapshot(2, 0.0, old.catalog, at_once(written(old, old.catalog, writes)), 2)
    assert (old.count(1), new.count(1)) == (30, 0)
    assert old.get_entry(1, (7,)) == (7,)


def test_a_database_begins_empty() -> None:
    snapshot = empty_snapshot(4)
    assert (snapshot.version, snapshot.shards, dict(snapshot.catalog.tables)) == (0, 4, {})
    assert snapshot.count(1) == 0
    assert list(snapshot.pages(1)) == list(snapshot.pages_in_order(1, backward=True)) == []


def test_a_snapshot_describes_itself() -> None:
    snapshot = view_with({(1,): (1,)}, shards=3)
    assert repr(snapshot) == "the snapshot of version 1: 2 tables on 3 shards"
