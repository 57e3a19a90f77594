"""`difference` finds exactly what differs, and opens no page that two trees share."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import force_setattr

from qserver.storage import btree
from qserver.storage.btree import EntryChange
from qserver.storage.page import EMPTY, Key, Leaf, Tree
from tests.storage.trees import (
    Changes,
    Model,
    Run,
    all_pages,
    apply_changes,
    batches,
    bound,
    bounds,
    changed_model,
    changes_of,
    check_pages,
    models_of,
    pages_not_in,
    tree_of,
    unhurried,
    within,
)


def brute_force(
    old: Model, new: Model, low: Key | None = None, high: Key | None = None
) -> list[EntryChange]:
    return [
        (key, old.get(key), new.get(key))
        for key in within({**old, **new}, low, high)
        if old.get(key) is not new.get(key)
    ]


@unhurried
@given(model=batches, batch=batches, low=bounds, high=bounds)
@example(model=[(True, 0, 40, 1)], batch=[(False, 3, 40, 1)], low=None, high=None)
@example(model=[(True, 0, 3, 1)], batch=[(True, 9, 40, 3)], low=2, high=90)
@example(model=[], batch=[(True, 0, 40, 1)], low=None, high=7)
@example(model=[(True, 0, 40, 1)], batch=[(True, 0, 40, 3)], low=20, high=10)
def test_the_difference_of_two_versions_is_what_was_changed(
    page_size: int, model: list[Run], batch: list[Run], low: int | None, high: int | None
) -> None:
    old = models_of(model, page_size)
    old_tree = tree_of(old)
    changes = changes_of(batch, page_size, serial=1)
    new, new_tree = changed_model(old, changes), apply_changes(old_tree, changes)
    first, end = bound(low, page_size), bound(high, page_size)
    expected = brute_force(old, new, first, end)
    assert list(btree.difference(old_tree, new_tree, first, end)) == expected
    assert list(btree.difference(new_tree, old_tree, first, end)) == [
        (key, now, was) for key, was, now in expected
    ]


@unhurried
@given(one=batches, other=batches, shares_values=st.booleans(), low=bounds, high=bounds)
def test_the_difference_of_trees_that_share_no_page_is_right(
    page_size: int,
    one: list[Run],
    other: list[Run],
    shares_values: bool,
    low: int | None,
    high: int | None,
) -> None:
    old, new = models_of(one, page_size), models_of(other, page_size)
    if shares_values:
        new = {key: old.get(key, value) for key, value in new.items()}
    first, end = bound(low, page_size), bound(high, page_size)
    found = list(btree.difference(tree_of(old), tree_of(new), first, end))
    assert found == brute_force(old, new, first, end)


@unhurried
@given(steps=st.lists(batches, min_size=2, max_size=4))
def test_the_difference_over_several_changes_is_that_of_the_ends(
    page_size: int, steps: list[list[Run]]
) -> None:
    model: Model = {}
    tree: Tree = EMPTY
    versions = [(model, tree)]
    for serial, batch in enumerate(steps):
        changes = changes_of(batch, page_size, serial)
        model, tree = changed_model(model, changes), apply_changes(tree, changes)
        versions.append((model, tree))
    for old, old_tree in versions:
        assert list(btree.difference(old_tree, tree)) == brute_force(old, model)


def test_trees_of_different_heights_are_compared(page_size: int) -> None:
    large: Model = {(at,): (at,) for at in range(80 * page_size)}
    for size in (0, 1, page_size, 3 * page_size):
        small = {key: large[key] for key in list(large)[:size]}
        grown, shrunk = tree_of(large), tree_of(large)
        shrunk = apply_changes(shrunk, {key: None for key in large if key not in small})
        check_pages(shrunk)
        assert shrunk.height < grown.height
        assert list(btree.difference(grown, shrunk)) == brute_force(large, small)
        assert list(btree.difference(shrunk, grown)) == brute_force(small, large)


def test_a_value_that_stands_under_another_key_is_a_difference() -> None:
    value = ("one object",)
    old, new = {(1,): value, (2,): value}, {(1,): value, (3,): value}
    assert list(btree.difference(tree_of(old), tree_of(new))) == [
        ((2,), value, None),
        ((3,), None, value),
    ]


def test_an_equal_value_that_is_another_object_is_a_difference() -> None:
    one, other = tuple(range(2)), tuple(range(2))
    found = list(btree.difference(tree_of({(1,): one}), tree_of({(1,): other})))
    assert found == [((1,), one, other)]


def close(page: Tree) -> None:
    """Make a page that nobody can look into any more."""
    entries = ("keys_here", "values_here")
    parts = ("children_here", "separators_here")
    for name in entries if isinstance(page, Leaf) else parts:
        force_setattr(page, name, None)


def test_shared_pages_are_not_opened(page_size: int) -> None:
    number = 33 * page_size
    cases: list[Changes] = [
        {(number,): ("replaced",)},
        {(number + 1,): ("inserted",)},
        {(number,): None},
        {(at,): ("many",) for at in range(number, number + 2 * page_size)},
        {(at,): None for at in range(number, number + 2 * page_size)},
        {(at,): ("spread",) for at in range(1, 100 * page_size, 20 * page_size)},
    ]
    for changes in cases:
        old = {(at * 2,): (at,) for at in range(50 * page_size)}
        old_tree = tree_of(old)
        new, new_tree = changed_model(old, changes), apply_changes(old_tree, changes)
        opened = {id(page) for page in pages_not_in(old_tree, new_tree)}
        for page in list(all_pages(old_tree)):
            if id(page) not in opened:
                close(page)
        assert list(btree.difference(old_tree, new_tree)) == brute_force(old, new)
        assert len(opened) < 10 * (old_tree.height + 1)


def test_a_tree_compared_with_itself_is_not_opened_at_all(page_size: int) -> None:
    tree = tree_of({(at,): (at,) for at in range(9 * page_size)})
    close(tree)
    assert list(btree.difference(tree, tree, (2,), (5,))) == []
