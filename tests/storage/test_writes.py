"""Writes: changes of a tree make another, many of them in pieces, and later ones win."""

from __future__ import annotations

from itertools import chain
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from qserver.storage.page import EMPTY
from qserver.storage.writes import (
    CHANGES_AT_ONCE,
    KEYS_AT_ONCE,
    RUNS_AT_ONCE,
    TreeWrites,
    Writes,
    _merged,
    changed,
    count_changes,
    merge_writes,
    sorted_keys,
)
from qserver.values.steps import at_once
from tests.steps import taken
from tests.storage.trees import check_pages, entries_of, tree_of, unhurried

keys = st.tuples(st.integers(0, 20))
changes = st.dictionaries(keys, st.none() | st.tuples(st.integers()))
writes = st.dictionaries(st.integers(1, 3), changes)


def test_writes_need_no_order() -> None:
    scattered: TreeWrites = {(at * 37 % 101,): (at,) for at in range(101)}
    pauses, tree = taken(changed(EMPTY, scattered))
    assert not pauses, "they are few"
    check_pages(tree)
    assert entries_of(tree) == sorted(scattered.items())


def test_many_changes_are_made_in_pieces_and_let_others_run() -> None:
    chance = Random(3)
    keys = [(number,) for number in range(4 * CHANGES_AT_ONCE)]
    chance.shuffle(keys)
    before = tree_of({key: (*key, "old") for key in keys[::2]})
    for order in (keys, sorted(keys)):
        writes: TreeWrites = {
            key: None if at % 5 == 0 else (*key, "new") for at, key in enumerate(order)
        }
        pauses, tree = taken(changed(before, writes))
        check_pages(tree)
        assert entries_of(tree) == sorted((key, row) for key, row in writes.items() if row)
        assert pauses > 4


@unhurried
@given(
    size=st.integers(0, 2 * RUNS_AT_ONCE * KEYS_AT_ONCE),
    shape=st.sampled_from(["shuffled", "falling", "rising", "two rise", "nearly in order"]),
    chance=st.randoms(use_true_random=False),
)
def test_keys_are_sorted_in_pieces(size: int, shape: str, chance: Random) -> None:
    numbers = list(range(size))
    match shape:
        case "shuffled":
            chance.shuffle(numbers)
        case "falling":
            numbers.reverse()
        case "two rise":
            numbers = numbers[::2] + numbers[1::2]
        case "nearly in order":
            numbers.sort(key=lambda number: number + 2000 * chance.random())
    pauses, found = taken(sorted_keys({(number, "a"): None for number in numbers}))
    assert list(found) == [(number, "a") for number in range(size)]
    assert pauses >= size // KEYS_AT_ONCE


@given(st.lists(st.lists(st.integers(), min_size=1, max_size=2000), max_size=RUNS_AT_ONCE))
def test_a_piece_of_merged_runs_is_never_long(runs: list[list[int]]) -> None:
    in_order = [sorted((number,) for number in run) for run in runs]
    pieces = list(_merged(in_order))
    assert list(chain(*pieces)) == sorted(chain(*in_order))
    assert all(0 < len(piece) <= KEYS_AT_ONCE for piece in pieces)


@unhurried
@given(rounds=st.lists(writes, max_size=4))
def test_merged_writes_do_what_the_writes_did_one_after_the_other(rounds: list[Writes]) -> None:
    before = {tree: tree_of({(at,): ("old",) for at in range(0, 20, 2)}) for tree in (1, 2, 3)}
    stepwise, merged = before.copy(), Writes()
    for made in rounds:
        for tree, changes in made.items():
            stepwise[tree] = at_once(changed(stepwise[tree], changes))
        at_once(merge_writes(merged, made))
    assert count_changes(merged) == len(
        {(tree, key) for made in rounds for tree in made for key in made[tree]}
    )
    for tree, root in before.items():
        assert entries_of(at_once(changed(root, merged.get(tree, {})))) == entries_of(
            stepwise[tree]
        )


def test_merging_leaves_the_later_writes_alone() -> None:
    into: Writes = {}
    first: Writes = {1: {(1,): ("a",)}}
    at_once(merge_writes(into, first))
    at_once(merge_writes(into, {1: {(1,): None, (2,): ("b",)}}))
    assert into == {1: {(1,): None, (2,): ("b",)}}
    assert first == {1: {(1,): ("a",)}}
