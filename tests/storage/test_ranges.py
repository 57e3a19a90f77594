"""A tree in ranges: whatever is written, cut and joined, it is one tree without gaps."""

from __future__ import annotations

from itertools import pairwise
from typing import TypeAlias

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qserver.limits import RANGE_ENTRIES_MAX, RANGE_ENTRIES_MIN
from qserver.storage.btree import entries_at, get, pages
from qserver.storage.page import EMPTY, Key, Value
from qserver.storage.ranges import (
    NOTHING,
    Range,
    RangedTree,
    Trees,
    by_tree,
    laid_over,
    roots_of_shard,
)
from qserver.storage.writes import changed
from qserver.values.steps import at_once
from tests.storage.databases import ranges_of
from tests.storage.trees import (
    Changes,
    Model,
    all_pages,
    changed_model,
    check_pages,
    entries_of,
    tree_of,
    unhurried,
    within,
)

pytestmark = pytest.mark.usefixtures("tiny_pages")

numbers = st.tuples(st.integers(0, 40))
models = st.sets(numbers, max_size=40).map(lambda found: {key: (*key, "row") for key in found})
puts = st.dictionaries(numbers, st.none() | st.tuples(st.integers()), max_size=12)
wipes = st.tuples(st.integers(0, 40), st.integers(0, 40)).map(
    lambda ends: {(at,): None for at in range(*sorted(ends))}
)
steps = st.lists(puts | wipes, max_size=5)
Bounds: TypeAlias = tuple[Key | None, Key | None]
bounds = st.none() | st.tuples(st.integers(-1, 41))
sizes = st.sampled_from([(1, 0), (3, 1), (4, 2), (10, 5), (10, 0), (50_000, 5_000)])


def whole(model: Model, shard: int = 0) -> RangedTree:
    """The tree in one range."""
    return RangedTree.of({Range(7, None, None, shard): tree_of(model)})


def written(tree: RangedTree, changes: Changes) -> RangedTree:
    """The tree with changes made in each range by itself, as shards do."""
    parts: dict[Range, Changes] = {}
    for key, value in changes.items():
        (each,) = [each for each in tree.ranges if has(each, key)]
        parts.setdefault(each, {})[key] = value
    if not parts:
        return tree
    roots = {each: at_once(changed(tree.root_of(each), part)) for each, part in parts.items()}
    return tree.changed(roots)


def has(each: Range, key: Key) -> bool:
    return (each.low is None or each.low <= key) and (each.high is None or key < each.high)


def check(tree: RangedTree, model: Model, shards: int) -> None:
    """No gaps, in order, each entry in its range, each range on a shard."""
    lows = [each.low for each in tree.ranges]
    highs = [each.high for each in tree.ranges]
    assert lows[0] is None
    assert highs[-1] is None
    assert lows[1:] == highs[:-1] == list(tree.lows) == sorted(set(tree.lows))
    assert len(tree.roots) == len(tree.ranges)
    assert all(each.tree == 7 and 0 <= each.shard < shards for each in tree.ranges)
    entries: list[tuple[Key, Value]] = []
    for each, root in zip(tree.ranges, tree.roots, strict=True):
        check_pages(root)
        assert all(has(each, key) for key, _ in entries_of(root))
        entries += entries_of(root)
    assert entries == sorted(model.items())
    assert len(tree) == len(model)


def check_sizes(tree: RangedTree, most: int, least: int) -> None:
    lengths = [root.length for root in tree.roots]
    assert max(lengths) <= most
    assert all(one + other > least for one, other in pairwise(lengths))


@unhurried
@given(
    model=models,
    work=st.lists(st.tuples(puts | wipes, sizes), max_size=6),
    shards=st.integers(1, 4),
)
def test_ranges_follow_what_is_written_without_gaps_and_in_bounds(
    model: Model, work: list[tuple[Changes, tuple[int, int]]], shards: int
) -> None:
    tree = whole(model)
    for changes, (most, least) in work:
        with ranges_of(most, least):
            tree, model = written(tree, changes), changed_model(model, changes)
            before = tree
            tree = tree.laid_out(shards)
            check(tree, model, shards)
            check_sizes(tree, most, least)
            assert tree.laid_out(shards) is tree, "what is laid out stays"
            fits = all(map(before.fits, before.ranges, before.roots))
            assert (tree is before) is fits, "what fits is not laid out, and nothing else"
            kept = set(before.ranges) & set(tree.ranges)
            for each in kept:
                assert tree.root_of(each) is before.root_of(each)


@unhurried
@given(model=models, work=steps, low=bounds, high=bounds, size=sizes)
@example(model={(at,): (at,) for at in range(9)}, work=[], low=(3,), high=(3,), size=(3, 1))
@example(model={(at,): (at,) for at in range(9)}, work=[], low=(3,), high=(6,), size=(3, 1))
@example(model={(at,): (at,) for at in range(9)}, work=[], low=(7,), high=(2,), size=(3, 1))
def test_what_lies_between_two_keys_is_read_from_the_ranges_that_have_it(
    model: Model, work: list[Changes], low: Key | None, high: Key | None, size: tuple[int, int]
) -> None:
    with ranges_of(*size):
        tree = whole(model).laid_out(3)
        for changes in work:
            tree, model = written(tree, changes).laid_out(3), changed_model(model, changes)
    expected = within(model, low, high)
    roots = tree.roots_between(low, high)
    read = [key for root in roots for keys, _ in pages(root, low, high) for key in keys]
    assert read == expected
    assert len(tree.ranges_between(low, high)) == len(roots)
    reached = [each for each in tree.ranges if tree.root_of(each) in roots]
    assert set(tree.ranges_between(low, high)) <= set(reached)
    shares = list(tree.pieces(low, high))
    assert [root for root, _, _ in shares] == list(roots)
    by_piece = [
        key for root, first, last in shares for keys, _ in pages(root, first, last) for key in keys
    ]
    assert by_piece == expected
    for each, (_, first, last) in zip(tree.ranges_between(low, high), shares, strict=True):
        assert each.clipped(low, high) == (first, last)
    for at in range(-1, 42):
        key = (at,)
        assert get(tree.root_at(key), key) == model.get(key)
        assert bool(entries_at(tree.root_at(key), [key])) == (key in model)


def test_cutting_and_joining_share_pages() -> None:
    model: Model = {(at,): (at,) for at in range(1000)}
    tree = whole(model)
    there = {id(page) for page in all_pages(tree.roots[0])}
    with ranges_of(300, 10):
        cut = tree.laid_out(4)
    new = [page for root in cut.roots for page in all_pages(root) if id(page) not in there]
    assert len(cut.ranges) == 4
    assert len(new) <= 2 * 3 * (tree.roots[0].height + 1), "a page of each height on each side"


def test_pieces_go_to_one_shard_after_the_other_from_where_the_range_was() -> None:
    with ranges_of(3, 1):
        tree = whole({(at,): (at,) for at in range(12)}, shard=2).laid_out(4)
    assert [each.shard for each in tree.ranges] == [2, 3, 0, 1]
    assert [each.low for each in tree.ranges] == [None, (3,), (6,), (9,)]


def test_small_neighbours_become_one_range_where_most_of_it_lies() -> None:
    tree = laid_over(7, ((10,), (20,)), [EMPTY] * 3, 0, 3)
    tree = written(tree, {(1,): (1,), (11,): (11,), (12,): (12,), (21,): (21,)})
    with ranges_of(8, 3):
        tree = tree.laid_out(3)
    assert tree.ranges == (Range(7, None, (20,), 1), Range(7, (20,), None, 2))
    with ranges_of(8, 4):
        tree = tree.laid_out(3)
    assert tree.ranges == (Range(7, None, None, 1),)


def test_a_range_grows_to_its_largest_and_is_cut_with_one_more() -> None:
    """With the real sizes."""
    model: Model = {(at,): (at,) for at in range(RANGE_ENTRIES_MAX)}
    tree = whole(model)
    assert tree.laid_out(4) is tree
    assert tree.fits(tree.ranges[0], tree.roots[0])
    grown = written(tree, {(-1,): (-1,)})
    assert not grown.fits(grown.ranges[0], grown.roots[0])
    assert [len(root) for root in grown.laid_out(4).roots] == [25_000, 25_001]
    assert RANGE_ENTRIES_MIN <= 25_000


def test_clipped_bounds_are_the_narrower_ones() -> None:
    each = Range(7, (10,), (20,), 0)
    assert each.clipped(None, None) == ((10,), (20,))
    assert each.clipped((10,), (20,)) == ((10,), (20,))
    assert each.clipped((9,), (21,)) == ((10,), (20,))
    assert each.clipped((11,), (19,)) == ((11,), (19,))
    assert Range(7, None, None, 0).clipped((1,), None) == ((1,), None)


def test_stored_ranges_are_laid_over_the_shards_from_that_of_the_table() -> None:
    roots = [tree_of({(at,): (at,)}) for at in (1, 12, 23)]
    tree = laid_over(7, ((10,), (20,)), roots, 5, 2)
    assert [each.shard for each in tree.ranges] == [1, 0, 1]
    check(tree, {(1,): (1,), (12,): (12,), (23,): (23,)}, 2)


# --- all trees -----------------------------------------------------------------------------------


def test_a_tree_that_was_never_written_has_nothing_and_no_range() -> None:
    trees = Trees()
    assert trees.tree(7) is NOTHING
    assert NOTHING.ranges == ()
    assert NOTHING.roots_between((1,), (2,)) == (EMPTY,)
    assert NOTHING.root_at((1,)) is EMPTY
    assert len(NOTHING) == 0


def test_a_change_makes_other_trees_that_share_what_was_not_written() -> None:
    old = Trees().changed({1: whole({(1,): ("a",)}), 40: whole({(2,): ("b",)})})
    new = old.changed({1: whole({(1,): ("c",)})})
    assert get(old.tree(1).root_at((1,)), (1,)) == ("a",)
    assert get(new.tree(1).root_at((1,)), (1,)) == ("c",)
    assert new.tree(40) is old.tree(40)
    assert new.blocks[40 >> 4] is old.blocks[40 >> 4]


def test_a_dropped_tree_is_nothing_even_when_it_was_written_as_well() -> None:
    old = Trees().changed({1: whole({(1,): ("a",)}), 2: whole({})})
    new = old.changed({1: whole({(1,): ("c",)})}, dropped=[1, 8, 99])
    assert new.tree(1) is NOTHING
    assert new.tree(2) is old.tree(2)
    assert old.tree(1) is not NOTHING
    assert dict(new.changed({}, dropped=[2]).items()) == {}


@pytest.mark.parametrize("entries_max", [4, 100])
def test_sizes_are_others_when_a_tree_reaches_another_power_of_two(entries_max: int) -> None:
    with ranges_of(entries_max, entries_max // 2):
        made = [whole({(at,): ("a",) for at in range(size)}).laid_out(2) for size in range(34)]
    for before, old in enumerate(made):
        trees = Trees().changed({1: old, 2: made[5]})
        for after, new in enumerate(made):
            same = trees.changed({1: new}).sizes is trees.sizes
            assert same == (before.bit_length() == after.bit_length())
    both = Trees().changed({1: made[1], 2: made[5]})
    assert both.changed({1: made[2], 2: made[5]}).sizes is not both.sizes, "any tree, not the last"


@unhurried
@given(trees=st.dictionaries(st.integers(0, 40), models), shards=st.integers(1, 4))
def test_every_range_is_on_exactly_one_shard(trees: dict[int, Model], shards: int) -> None:
    with ranges_of(4, 2):
        made = Trees().changed(
            {
                number: RangedTree.of({Range(number, None, None, 0): tree_of(model)}).laid_out(
                    shards
                )
                for number, model in trees.items()
            }
        )
    owned = [roots_of_shard(made, shard) for shard in range(shards)]
    for shard, roots in enumerate(owned):
        assert all(each.shard == shard for each in roots)
    everywhere = {each: root for roots in owned for each, root in roots.items()}
    assert len(everywhere) == sum(map(len, owned))
    rebuilt = {number: RangedTree.of(roots) for number, roots in by_tree(everywhere).items()}
    for number, tree in made.items():
        assert rebuilt[number].ranges == tree.ranges
        assert rebuilt[number].roots == tree.roots


def test_ranges_describe_themselves() -> None:
    assert repr(Range(7, (1,), (4,), 2)) == "(1,) <= keys of tree 7 < (4,) on shard 2"
    assert repr(Range(7, None, None, 2)) == "keys of tree 7 on shard 2"
    tree = whole({(1,): ("a",)})
    assert repr(tree) == "1 entries in 1 ranges"
    assert repr(Trees().changed({1: tree, 20: tree})) == "2 entries in 2 trees"
