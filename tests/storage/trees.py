"""What the tests of trees share: the invariants, ways to look inside, and batches of changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TypeAlias

from hypothesis import settings
from hypothesis import strategies as st

from qserver.storage import btree
from qserver.storage.page import EMPTY, Branch, Key, Leaf, Tree, Value
from tests.sampling import examples

Model: TypeAlias = dict[Key, Value]
Changes: TypeAlias = dict[Key, Value | None]

unhurried = settings(deadline=None, max_examples=examples(60))
"""A busy machine is no failure, and most tests run with two sizes of pages."""


def leaf_of(keys: list[Key], values: list[Value]) -> Leaf:
    return Leaf(keys, values, len(keys))


def check_pages(tree: Tree) -> None:
    """Every invariant that the docstring of `btree` names."""
    _check(tree, None, None, is_root=True)


def _check(page: Tree, low: Key | None, high: Key | None, is_root: bool) -> None:
    if isinstance(page, Leaf):
        size, ascending = len(page.keys), page.keys
        assert len(page.values) == page.length == size
    else:
        size, ascending = len(page.children), page.separators
        assert len(page.separators) == size - 1
        assert {child.height for child in page.children} == {page.height - 1}
        assert page.length == sum(len(child) for child in page.children)
        assert not is_root or size >= 2, "a root with one child is no root"
        bounds = [low, *page.separators, high]
        for child, (left, right) in zip(page.children, pairwise(bounds), strict=True):
            _check(child, left, right, is_root=False)
    assert all(one < other for one, other in pairwise(ascending))
    assert all(low is None or low <= key for key in ascending)
    assert all(high is None or key < high for key in ascending)
    assert size <= page_limit("MAX")
    assert is_root or size >= 1


def page_limit(name: str) -> int:
    """PAGE_ENTRIES_MAX and so on, as they are for the running test."""
    limit = vars(btree)[f"PAGE_ENTRIES_{name}"]
    assert isinstance(limit, int)
    return limit


def all_pages(tree: Tree) -> Iterator[Tree]:
    yield tree
    if isinstance(tree, Branch):
        for child in tree.children:
            yield from all_pages(child)


def pages_not_in(tree: Tree, other: Tree) -> list[Tree]:
    """The pages of the first tree that the second does not share."""
    shared = {id(page) for page in all_pages(other)}
    return [page for page in all_pages(tree) if id(page) not in shared]


def entries_of(tree: Tree) -> list[tuple[Key, Value]]:
    return [entry for keys, values in btree.pages(tree) for entry in zip(keys, values, strict=True)]


def tree_of(model: Mapping[Key, Value]) -> Tree:
    keys = sorted(model)
    return build(keys, [model[key] for key in keys])


def build(keys: list[Key], values: list[Value]) -> Tree:
    """A tree of entries that are given in ascending order of distinct keys."""
    return btree.apply(EMPTY, keys, values)


def put(tree: Tree, key: Key, value: Value) -> Tree:
    """The tree with one entry added or replaced."""
    return btree.apply(tree, [key], [value])


def delete(tree: Tree, key: Key) -> Tree:
    """The tree without `key`."""
    return btree.apply(tree, [key], [None])


def apply_changes(tree: Tree, changes: Changes) -> Tree:
    keys = sorted(changes)
    return btree.apply(tree, keys, [changes[key] for key in keys])


def changed_model(model: Model, changes: Changes) -> Model:
    merged = {**model, **changes}
    return {key: value for key, value in merged.items() if value is not None}


def within(model: Mapping[Key, Value], low: Key | None, high: Key | None) -> list[Key]:
    """The keys of a range, in order, the slow way."""
    return sorted(
        key for key in model if (low is None or low <= key) and (high is None or key < high)
    )


# --- batches: a few runs of keys, each to be put or to be deleted --------------------------------

Run: TypeAlias = tuple[bool, int, int, int]
"""Put or delete, first number, how many, the distance between two."""

_runs = st.tuples(st.booleans(), st.integers(0, 150), st.integers(0, 40), st.integers(1, 6))
batches = st.lists(_runs, max_size=4)
"""Lists of runs: contiguous, spread, overlapping; the later win."""

one_key = st.integers(0, 300)


def changes_of(batch: list[Run], page_size: int, serial: int = 0) -> Changes:
    """The batch's changes, made larger with the pages; no two values are one object."""
    scale = page_size // 4
    changes: Changes = {}
    for is_put, first, count, step in batch:
        for at in range(count * scale):
            number = first * scale + at * step
            changes[number,] = (serial, number) if is_put else None
    return changes


def models_of(batch: list[Run], page_size: int, serial: int = 0) -> Model:
    """The batch's entries, when there was nothing before."""
    return changed_model({}, changes_of(batch, page_size, serial))


bounds = st.none() | st.integers(-5, 320)


def bound(number: int | None, page_size: int) -> Key | None:
    return None if number is None else (number * (page_size // 4),)
