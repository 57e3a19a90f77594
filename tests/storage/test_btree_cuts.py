"""Cutting a tree and joining two: the same entries, sound pages, and nearly all of them shared."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qserver.storage.btree import cut_keys, first_entries, join, key_at, last_entries, split
from qserver.storage.page import EMPTY
from tests.storage.trees import (
    Run,
    all_pages,
    apply_changes,
    batches,
    bound,
    bounds,
    changed_model,
    changes_of,
    check_pages,
    entries_of,
    models_of,
    one_key,
    pages_not_in,
    tree_of,
    unhurried,
    within,
)

pytestmark = pytest.mark.usefixtures("page_size")


@unhurried
@given(batch=batches, later=batches, at=one_key)
def test_a_tree_is_split_into_what_is_below_a_key_and_the_rest(
    page_size: int, batch: list[Run], later: list[Run], at: int
) -> None:
    changes = changes_of(later, page_size, serial=1)
    model = changed_model(models_of(batch, page_size), changes)
    tree = apply_changes(tree_of(models_of(batch, page_size)), changes)
    key = (at * (page_size // 4),)
    left, right = split(tree, key)
    for half in (left, right):
        check_pages(half)
        assert half is EMPTY or half.length
    assert entries_of(left) == [(each, model[each]) for each in within(model, None, key)]
    assert entries_of(right) == [(each, model[each]) for each in within(model, key, None)]
    heights = tree.height + 1
    assert len(pages_not_in(left, tree)) <= heights
    assert len(pages_not_in(right, tree)) <= heights


@unhurried
@given(batch=batches, at=one_key)
def test_two_trees_are_joined_to_what_both_hold(page_size: int, batch: list[Run], at: int) -> None:
    model = models_of(batch, page_size)
    key = (at * (page_size // 4),)
    left = tree_of({each: model[each] for each in within(model, None, key)})
    right = tree_of({each: model[each] for each in within(model, key, None)})
    tree = join(left, right)
    check_pages(tree)
    assert entries_of(tree) == sorted(model.items())
    again = join(*split(tree, key))
    check_pages(again)
    assert entries_of(again) == sorted(model.items())


def test_a_joined_tree_shares_all_but_the_last_pages_of_the_left(page_size: int) -> None:
    left = tree_of({(at,): (at,) for at in range(page_size * 9)})
    right = tree_of({(at,): (at,) for at in range(10_000, 10_000 + page_size)})
    tree = join(left, right)
    kept = len(list(all_pages(left))) - len(pages_not_in(left, tree))
    assert kept >= 8


@unhurried
@given(batch=batches, most=st.integers(1, 50))
@example(batch=[(True, 0, 40, 1)], most=1)
def test_a_tree_is_cut_into_even_pieces_that_are_small_enough(
    page_size: int, batch: list[Run], most: int
) -> None:
    keys = sorted(models_of(batch, page_size))
    tree = tree_of({key: key for key in keys})
    assert [key_at(tree, at) for at in range(len(keys))] == keys
    cuts = cut_keys(tree, most)
    assert len(cuts) == max(0, -(-len(keys) // most) - 1), "as few pieces as will do"
    sizes, rest = [], tree
    for key in cuts:
        left, rest = split(rest, key)
        sizes.append(left.length)
    sizes.append(rest.length)
    assert sum(sizes) == len(keys)
    assert max(sizes) <= most
    assert max(sizes) - min(sizes) <= 1


@unhurried
@given(batch=batches, low=bounds, high=bounds, most=st.integers(0, 90))
@example(batch=[(True, 0, 40, 1)], low=None, high=None, most=64)
@example(batch=[(True, 0, 40, 1)], low=5, high=5, most=3)
@example(batch=[(True, 0, 40, 1)], low=9, high=5, most=3)
def test_the_first_and_the_last_entries_of_a_range(
    page_size: int, batch: list[Run], low: int | None, high: int | None, most: int
) -> None:
    model = models_of(batch, page_size)
    tree = tree_of(model)
    first, last = bound(low, page_size), bound(high, page_size)
    expected = within(model, first, last)
    for found, wanted in (
        (first_entries(tree, first, last, most), expected[:most]),
        (last_entries(tree, first, last, most), expected[::-1][:most]),
    ):
        assert found == (wanted, [model[key] for key in wanted])
