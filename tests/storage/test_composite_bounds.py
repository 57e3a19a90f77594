"""Trees of composite keys, at every bound that their own separators suggest.

A key of two or three columns goes into trees of three and more levels. Bounds that matter lie at
separators: the separator, everything with it as a prefix (`(*separator, TOP)`), and the same for
shorter prefixes. All of them are tried as lower and as upper bound, beside a dict.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random

import pytest

from qserver.storage import btree
from qserver.storage.page import Branch, Key, Tree, Value
from qserver.values.keys import NULL_KEY, TOP, Descending
from simulations.mutants import Mutant, planted
from simulations.mutants.mutant import edited
from tests.storage.trees import Model, all_pages, apply_changes, check_pages, tree_of, within

pytestmark = pytest.mark.usefixtures("tiny_pages")

SEEDS = range(3)


def model_of(chance: Random) -> Model:
    """Rows under keys of one shape; some columns are NULL, some descend."""
    columns = chance.choice((2, 3))
    descends = [chance.random() < 0.3 for _ in range(columns)]
    most = 6 if columns == 2 else 4

    def element(value: int, down: bool) -> object:
        plain = NULL_KEY if value == most - 1 and chance.random() < 0.5 else value
        return Descending(plain) if down else plain

    every = list(product(range(most), repeat=columns))
    chosen = chance.sample(every, min(len(every), 30))
    return {tuple(map(element, key, descends)): (number,) for number, key in enumerate(chosen)}


def bounds_of(tree: Tree) -> list[Key | None]:
    """Each separator and each of its prefixes, as it is and with everything behind it."""
    found: dict[Key, None] = {}
    for page in all_pages(tree):
        if isinstance(page, Branch):
            for separator in page.separators:
                for length in range(1, len(separator) + 1):
                    prefix = separator[:length]
                    found |= {prefix: None, (*prefix, TOP): None}
    return [None, *found]


def problems_of(seed: int) -> Iterator[str]:
    """Tell where a tree differs from a dict, for every pair of bounds."""
    chance = Random(f"composite {seed}")
    model = model_of(chance)
    tree = tree_of(model)
    assert tree.height >= 2
    changes: dict[Key, Value | None] = {
        key: None if chance.random() < 0.5 else (0,) for key in chance.sample(sorted(model), 8)
    }
    other = apply_changes(tree, changes)
    check_pages(other)
    for low, high in product(bounds_of(tree), repeat=2):
        expected = within(model, low, high)
        if low is not None and high is not None and low > high:
            continue
        for name, found in reads(tree, low, high):
            if found != expected:
                yield f"{name} of {low} to {high} gives {found}, not {expected}"
        if btree.count_between(tree, low, high) != len(expected):
            yield f"{low} to {high} is counted wrongly"
        changed = [key for key, _, _ in btree.difference(tree, other, low, high)]
        if changed != within(dict.fromkeys(changes, (0,)), low, high):
            yield f"{low} to {high} differ at {changed}"


def reads(tree: Tree, low: Key | None, high: Key | None) -> Iterator[tuple[str, list[Key]]]:
    yield "pages", [key for keys, _ in btree.pages(tree, low, high) for key in keys]
    backward = [key for keys, _ in btree.pages_backward(tree, low, high) for key in keys]
    yield "pages_backward", backward[::-1]
    yield "first_entries", btree.first_entries(tree, low, high, 1000)[0]
    yield "last_entries", btree.last_entries(tree, low, high, 1000)[0][::-1]
    by_value = {value: key for keys, values in btree.pages(tree) for key, value in
                zip(keys, values, strict=True)}  # fmt: skip
    runs = btree.value_runs(tree, low, high)
    yield "value_runs", [by_value[value] for run in runs for value in run]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_range_holds_the_same_keys_however_it_is_read(seed: int) -> None:
    assert next(problems_of(seed), None) is None


@pytest.mark.parametrize("seed", SEEDS)
def test_a_tree_is_cut_and_joined_at_any_bound(seed: int) -> None:
    model = model_of(Random(f"composite {seed}"))
    tree = tree_of(model)
    for bound in bounds_of(tree)[1:]:
        assert bound is not None
        left, right = btree.split(tree, bound)
        check_pages(left)
        check_pages(right)
        assert [key for keys, _ in btree.pages(left) for key in keys] == within(model, None, bound)
        joined = [key for keys, _ in btree.pages(btree.join(left, right)) for key in keys]
        assert joined == sorted(model)
        cuts = list(btree.cuts(tree, None, bound))
        assert cuts == sorted(cuts) and all(cut < bound for cut in cuts)


BUGS = (
    ("an inner page is left at its separator", btree._children_between,
     "bisect_left(separators, high)", "bisect_left(separators, high[:-1])"),
    ("the page behind a bound is left out", btree._children_between,
     "children[first : last + 1]", "children[first : max(first + 1, last)]"),
    ("a lower bound that is a separator looks to its left", btree._children_between,
     "bisect_right(separators, low)",
     "max(0, bisect_right(separators, low) - (branch.height < 2)) + (branch.height > 1)"),
    ("a leaf takes a prefix for a key", btree._entries_between,
     "bisect_left(keys, high)", "bisect_left(keys, high[:len(keys[0])])"),
    ("an upper bound is included above leaves alone", btree.count_between,
     "count_between(last, None, high)", "(last.length if last.height else "
     "count_between(last, None, high))"),
    ("cuts take one separator too many", btree.cuts, "bisect_left(separators, high)",
     "bisect_right(separators, high)"),
)  # fmt: skip


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug[0])
def test_bugs_at_bounds_are_seen(bug: tuple[str, object, str, str]) -> None:
    name, function, old, new = bug
    with planted(Mutant(name, name, (), (edited(function, old, new),))):
        seen = any(next(problems_of(seed), None) is not None for seed in SEEDS)
        if not seen:
            with pytest.raises(AssertionError):
                for seed in SEEDS:
                    test_a_tree_is_cut_and_joined_at_any_bound(seed)
