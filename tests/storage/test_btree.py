"""The B+tree does what a dict with sorted keys does, and no tree is ever changed."""

from __future__ import annotations

from itertools import chain
from operator import lt

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qserver.storage import btree
from qserver.storage.page import EMPTY, Branch, Key, Leaf, Tree
from qserver.values.keys import NULL_KEY, TOP, Descending
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
    delete,
    entries_of,
    models_of,
    one_key,
    page_limit,
    pages_not_in,
    put,
    tree_of,
    unhurried,
    within,
)

SIZES = (0, 1, 2, 3, 4, 5, 12, 13, 47, 48, 49, 64, 65, 96, 97, 48 * 64, 48 * 64 + 1, 5000)


def numbers(count: int, step: int = 1) -> Tree:
    """A tree of `count` entries at multiples of `step`."""
    return tree_of({(at * step,): (at,) for at in range(count)})


@pytest.mark.parametrize("size", SIZES)
def test_a_built_tree_holds_what_it_was_given(page_size: int, size: int) -> None:
    tree = numbers(size)
    check_pages(tree)
    assert entries_of(tree) == [((at,), (at,)) for at in range(size)]
    assert len(tree) == size


@unhurried
@given(before=batches, after=st.lists(batches, max_size=3))
@example(before=[(True, 0, 40, 1)], after=[[(False, 0, 40, 1)]])
@example(before=[(True, 0, 40, 1)], after=[[(False, 0, 20, 1)], [(True, 0, 1, 1)]])
@example(before=[(True, 0, 40, 1)], after=[[(False, 10, 1, 1), (False, 1, 40, 1)]])
@example(before=[(True, 0, 40, 2)], after=[[(True, 0, 40, 2), (True, 5, 30, 1)]])
def test_batches_change_a_tree_as_they_change_a_dict(
    page_size: int, before: list[Run], after: list[list[Run]]
) -> None:
    model = models_of(before, page_size)
    tree = tree_of(model)
    for serial, batch in enumerate(after, 1):
        changes = changes_of(batch, page_size, serial)
        tree, model = apply_changes(tree, changes), changed_model(model, changes)
        check_pages(tree)
        assert entries_of(tree) == sorted(model.items())
        assert len(tree) == len(model)
        for key in changes:
            assert btree.get(tree, key) is model.get(key)


@unhurried
@given(before=batches, changes=st.lists(st.tuples(st.booleans(), one_key), max_size=40))
def test_single_puts_and_deletes_change_a_tree_as_they_change_a_dict(
    page_size: int, before: list[Run], changes: list[tuple[bool, int]]
) -> None:
    model = models_of(before, page_size)
    tree = tree_of(model)
    for is_put, number in changes:
        if is_put:
            tree = put(tree, (number,), (number, "new"))
            model[number,] = (number, "new")
        else:
            tree = delete(tree, (number,))
            model.pop((number,), None)
        check_pages(tree)
    assert entries_of(tree) == sorted(model.items())


@pytest.mark.parametrize("order", ["ascending", "descending", "inside out"])
def test_keys_put_one_by_one_are_all_found_and_then_deleted_one_by_one(
    page_size: int, order: str
) -> None:
    count = 12 * page_size
    keys: list[Key] = [(at,) for at in range(count)]
    if order == "descending":
        keys.reverse()
    elif order == "inside out":
        half = count // 2
        keys = list(chain.from_iterable(zip(keys[half:], reversed(keys[:half]), strict=True)))
    tree: Tree = EMPTY
    for at, key in enumerate(keys, 1):
        tree = put(tree, key, key)
        assert len(tree) == at
    check_pages(tree)
    assert all(btree.get(tree, key) is key for key in keys)
    for at, key in enumerate(keys, 1):
        tree = delete(tree, key)
        assert len(tree) == count - at
        assert btree.get(tree, key) is None
        if at % 16 == 0:
            check_pages(tree)
    assert tree is EMPTY


@unhurried
@given(model=batches, low=bounds, high=bounds)
@example(model=[(True, 0, 40, 1)], low=20, high=10)
@example(model=[(True, 0, 40, 1)], low=12, high=12)
def test_pages_hold_exactly_the_range_in_either_direction(
    page_size: int, model: list[Run], low: int | None, high: int | None
) -> None:
    entries = models_of(model, page_size)
    tree = tree_of(entries)
    first, end = bound(low, page_size), bound(high, page_size)
    expected = within(entries, first, end)
    forward = list(btree.pages(tree, first, end))
    backward = list(btree.pages_backward(tree, first, end))
    assert all(keys for keys, _ in chain(forward, backward)), "no page is empty"
    assert [key for keys, _ in forward for key in keys] == expected
    assert [key for keys, _ in backward for key in keys] == expected[::-1]
    for keys, values in chain(forward, backward):
        assert values == [entries[key] for key in keys]


@unhurried
@given(model=batches, batch=batches)
def test_a_change_leaves_every_page_of_the_old_tree_as_it_was(
    page_size: int, model: list[Run], batch: list[Run]
) -> None:
    tree = apply_changes(tree_of(models_of(model, page_size)), changes_of(model[::-1], page_size))
    then = [_copied(page) for page in all_pages(tree)]
    changed = apply_changes(tree, changes_of(batch, page_size, serial=2))
    apply_changes(changed, dict.fromkeys(changes_of(model, page_size)))
    assert [_copied(page) for page in all_pages(tree)] == then


def _copied(page: Tree) -> tuple[object, ...]:
    if isinstance(page, Leaf):
        return id(page), page.keys.copy(), page.values.copy(), page.length
    return id(page), page.separators.copy(), [*map(id, page.children)], page.length, page.height


def test_a_put_copies_one_page_of_each_height(page_size: int) -> None:
    tree = numbers(50 * page_size, step=2)
    assert tree.height >= 2
    for number in (0, 1, 33 * page_size, 33 * page_size + 1, 100 * page_size):
        changed = put(tree, (number,), (0,))
        assert len(pages_not_in(changed, tree)) == tree.height + 1


def test_a_put_that_splits_copies_at_most_two_pages_of_each_height(page_size: int) -> None:
    tree = numbers(20 * page_size, step=1000)
    for at in range(20 * page_size):
        changed = put(tree, (5 * 1000 + at + 1,), (0,))
        assert len(pages_not_in(changed, tree)) <= 2 * (tree.height + 1) + 1
        tree = changed
    check_pages(tree)


def test_a_batch_copies_each_page_that_it_touches_once(page_size: int) -> None:
    tree = numbers(50 * page_size)
    assert isinstance(tree, Branch)
    leaves = [page for page in all_pages(tree) if isinstance(page, Leaf)]
    touched = leaves[::3]
    changed = apply_changes(
        tree, {key: (0,) for leaf in touched for key in (leaf.keys[0], leaf.keys[-1])}
    )
    old_pages = pages_not_in(tree, changed)
    assert len(pages_not_in(changed, tree)) == len(old_pages)
    assert [id(page) for page in old_pages if isinstance(page, Leaf)] == [*map(id, touched)]


def test_replacing_a_value_shares_the_lists_of_keys(page_size: int) -> None:
    tree = numbers(50 * page_size)
    changed = put(tree, (7,), (0,))
    for one, other in zip(pages_not_in(tree, changed), pages_not_in(changed, tree), strict=True):
        if isinstance(one, Leaf):
            assert isinstance(other, Leaf)
            assert other.keys is one.keys
        else:
            assert isinstance(other, Branch)
            assert other.separators is one.separators


def test_ascending_keys_leave_dense_pages(page_size: int) -> None:
    tree: Tree = EMPTY
    for at in range(40 * page_size):
        tree = put(tree, (at,), (at,))
    *leaves, _last = (page for page in all_pages(tree) if isinstance(page, Leaf))
    assert all(len(leaf) >= page_limit("BUILT") for leaf in leaves)


def test_a_tree_that_loses_most_entries_loses_most_pages(page_size: int) -> None:
    tree = numbers(50 * page_size)
    pages_before = len(list(all_pages(tree)))
    kept = 3 * page_size
    for at in range(50 * page_size):
        if at % kept:
            tree = delete(tree, (at,))
    check_pages(tree)
    assert len(tree) == -(-50 * page_size // kept)
    assert len(list(all_pages(tree))) < pages_before / 8


def test_deleting_what_is_absent_changes_no_entry(page_size: int) -> None:
    tree = numbers(10 * page_size, step=2)
    changed = apply_changes(tree, {(at,): None for at in range(-1, 20 * page_size + 2, 2)})
    check_pages(changed)
    assert entries_of(changed) == entries_of(tree)
    assert delete(EMPTY, (1,)) is EMPTY


def test_deleting_everything_leaves_the_empty_tree(page_size: int) -> None:
    tree = numbers(20 * page_size)
    assert apply_changes(tree, {(at,): None for at in range(20 * page_size)}) is EMPTY
    assert list(btree.pages(EMPTY)) == list(btree.pages_backward(EMPTY)) == []
    assert btree.get(EMPTY, (1,)) is None
    assert len(EMPTY) == 0


def test_an_empty_batch_changes_nothing(page_size: int) -> None:
    for size in (0, 3, 10 * page_size):
        tree = numbers(size)
        changed = btree.apply(tree, [], [])
        check_pages(changed)
        assert entries_of(changed) == entries_of(tree)


elements = st.integers(0, 6) | st.just(NULL_KEY)
mixed_keys = st.tuples(elements) | st.tuples(elements, elements.map(Descending))


@unhurried
@given(keys=st.lists(mixed_keys), low=mixed_keys, prefix=elements)
def test_keys_of_any_elements_and_lengths_keep_their_order(
    page_size: int, keys: list[Key], low: Key, prefix: object
) -> None:
    model = {key: (at,) for at, key in enumerate(keys)}
    tree = apply_changes(EMPTY, dict(model))
    check_pages(tree)
    found = [key for keys, _ in btree.pages(tree) for key in keys]
    assert all(map(lt, found, found[1:]))
    assert set(found) == set(model)
    ranged = [key for keys, _ in btree.pages(tree, low, (*low, TOP)) for key in keys]
    assert ranged == [key for key in found if key[: len(low)] == low]
    ranged = [key for keys, _ in btree.pages(tree, (prefix,), (prefix, TOP)) for key in keys]
    assert ranged == [key for key in found if key[0] == prefix]
