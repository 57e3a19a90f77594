"""A partition is a value: changing it makes another, and trees that were not written are shared."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from qserver.storage.btree import EMPTY, get
from qserver.storage.partition import Partition, Writes, merge_writes
from tests.storage.trees import check_pages, entries_of, unhurried

keys = st.tuples(st.integers(0, 20))
changes = st.dictionaries(keys, st.none() | st.tuples(st.integers()))
writes = st.dictionaries(st.integers(1, 3), changes)


def contents(partition: Partition) -> dict[int, object]:
    return {tree: entries_of(partition.tree(tree)) for tree in range(1, 4)}


def test_a_tree_that_was_never_written_is_empty() -> None:
    assert Partition().tree(7) is EMPTY


def test_a_change_makes_another_partition_that_shares_the_other_trees() -> None:
    old = Partition().changed({1: {(1,): ("a",)}, 2: {(1,): ("b",)}})
    new = old.changed({1: {(1,): ("c",), (2,): ("d",)}})
    assert entries_of(old.tree(1)) == [((1,), ("a",))]
    assert entries_of(new.tree(1)) == [((1,), ("c",)), ((2,), ("d",))]
    assert new.tree(2) is old.tree(2)


def test_writes_need_no_order() -> None:
    scattered = {(at * 37 % 101,): (at,) for at in range(101)}
    tree = Partition().changed({1: dict(scattered)}).tree(1)
    check_pages(tree)
    assert entries_of(tree) == sorted(scattered.items())


def test_a_dropped_tree_is_empty_even_when_it_was_written_as_well() -> None:
    old = Partition().changed({1: {(1,): ("a",)}, 2: {(1,): ("b",)}})
    new = old.changed({1: {(2,): ("c",)}}, dropped=[1, 8])
    assert new.tree(1) is EMPTY
    assert new.tree(2) is old.tree(2)
    assert get(old.tree(1), (1,)) == ("a",)


@unhurried
@given(rounds=st.lists(writes, max_size=4))
def test_merged_writes_do_what_the_writes_did_one_after_the_other(rounds: list[Writes]) -> None:
    before = Partition().changed({1: {(at,): ("old",) for at in range(0, 20, 2)}})
    stepwise, merged = before, Writes()
    for made in rounds:
        stepwise = stepwise.changed(made)
        merge_writes(merged, made)
    assert contents(before.changed(merged)) == contents(stepwise)


def test_merging_leaves_the_later_writes_alone() -> None:
    into: Writes = {}
    first: Writes = {1: {(1,): ("a",)}}
    merge_writes(into, first)
    merge_writes(into, {1: {(1,): None, (2,): ("b",)}})
    assert into == {1: {(1,): None, (2,): ("b",)}}
    assert first == {1: {(1,): ("a",)}}


def test_a_partition_describes_itself() -> None:
    partition = Partition().changed({1: {(1,): ("a",), (2,): ("b",)}, 5: {(1,): ("c",)}})
    assert repr(partition) == "a partition with 3 entries in 2 trees"
