"""Planted bugs in trees of several pages; a tree of one page hides all of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from qserver.storage import btree, conflict, snapshot
from qserver.storage.btree import Branch, Key, Leaf, Tree, Value, branch_of
from simulations.mutants.mutant import Mutant
from simulations.sizes import SMALL


def _compare_without_the_last_page(original: Any) -> Any:
    def opened(frontier: list[Tree], low: Key | None, high: Key | None) -> list[Tree]:
        pages: list[Tree] = original(frontier, low, high)
        if high is not None and len(pages) > 1 and len(frontier) == 1:
            pages.pop()
        return pages

    return opened


def _compare_by_keys(original: Any) -> Any:
    def difference(old: Tree, new: Tree, *bounds: Any) -> Iterator[Any]:
        if type(old) is Branch and type(new) is Branch and old.separators is new.separators:
            for one, other in zip(old.children[1:], new.children[1:], strict=True):
                if type(one) is Leaf and type(other) is Leaf and one.keys is other.keys:
                    new = branch_of(
                        new.separators, [one if each is other else each for each in new.children]
                    )
        yield from original(old, new, *bounds)

    return difference


def _join_with_another_separator(original: Any) -> Any:
    def joined(one: Tree, other: Tree, separator: Key) -> Tree:
        if type(other) is Branch and other.separators:
            separator = other.separators[0]
        result: Tree = original(one, other, separator)
        return result

    return joined


def _part_branches_by_another_key(original: Any) -> Any:
    def first_key(page: Tree) -> Key:
        if type(page) is Branch and page.height > 1 and page.separators:
            return page.separators[0]
        key: Key = original(page)
        return key

    return first_key


def _count_only_the_last_change(original: Any) -> Any:
    def changed_branch(
        branch: Branch, keys: list[Key], values: Any, start: int, stop: int
    ) -> list[Tree]:
        replaced: list[Tree] = original(branch, keys, values, start, stop)
        if len(replaced) == 1 and stop - start > 1 and branch.height > 1:
            (page,) = replaced
            grown = sum(value is not None for value in values[stop - 1 : stop])
            assert type(page) is Branch
            return [Branch(page.separators, page.children, branch.length + grown, page.height)]
        return replaced

    return changed_branch


def _last_entries_of_one_leaf(original: Any) -> Any:
    def last_entries(
        tree: Tree, low: Key | None, high: Key | None, most: int
    ) -> tuple[list[Key], list[Value]]:
        for keys, values in btree.pages_backward(tree, low, high):
            return keys[:most], values[:most]
        return [], []

    return last_entries


def _look_left_of_a_separator(original: Any) -> Any:
    def entries_at(tree: Tree, keys: list[Key]) -> dict[Key, Value]:
        found: dict[Key, Value] = original(tree, keys)
        if type(tree) is Branch:
            for key in tree.separators:
                found.pop(key, None)
        return found

    return entries_at


def _rest_of_a_run(original: Any) -> Any:
    def value_runs(
        tree: Tree, low: Key | None = None, high: Key | None = None
    ) -> Iterator[list[Value]]:
        for count, run in enumerate(original(tree, low, high)):
            if count < 2 or type(tree) is Leaf or tree.height > 1:
                yield run

    return value_runs


def _lose_the_separator(original: Any) -> Any:
    def children_between(branch: Branch, low: Key | None, high: Key | None) -> list[Tree]:
        if high is None or low is None:
            children: list[Tree] = original(branch, low, high)
            return children
        first = bisect_left(branch.separators, low)
        last = max(first, bisect_left(branch.separators, high) - 1)
        return branch.children[first : last + 1]

    return children_between


MUTANTS: Final = (
    Mutant(
        "compare_without_the_last_page",
        "a range that ends on another page than it begins is compared without its last page",
        ("range_sums", "sql_bounds"),
        ((btree, "_opened", _compare_without_the_last_page),),
        shape=(("sizes", SMALL),),
    ),
    Mutant(
        "compare_pages_by_their_keys",
        "a page is taken for unchanged that has the same keys, unless it is the first",
        ("range_sums",),
        ((conflict, "difference", _compare_by_keys),),
        shape=(("sizes", SMALL), ("clients", 10)),
    ),
    Mutant(
        "join_with_another_separator",
        "two branches that are joined are parted by another key than that between them",
        ("sql_queue", "range_sums", "sql_bounds"),
        ((btree, "_joined", _join_with_another_separator),),
        shape=(("sizes", SMALL),),
    ),
    Mutant(
        "part_branches_by_another_key",
        "branches that have branches below them are parted by the second key, not the first",
        ("range_sums", "sql_bounds"),
        ((btree, "_first_key", _part_branches_by_another_key),),
        shape=(("sizes", SMALL),),
    ),
    Mutant(
        "count_only_the_last_change",
        "a branch above branches counts one of the entries that a batch adds below it",
        ("range_sums", "sql_bounds"),
        ((btree, "_changed_branch", _count_only_the_last_change),),
        shape=(("sizes", SMALL),),
    ),
    Mutant(
        "last_entries_of_one_leaf",
        "the last entries of a range are looked for on one page only",
        ("sql_bounds", "sql_queue"),
        ((snapshot, "last_entries", _last_entries_of_one_leaf),),
        shape=(("sizes", SMALL),),
    ),
    Mutant(
        "look_left_of_a_separator",
        "an INSERT of several rows takes a key for free that begins a page",
        ("sql_upserts",),
        ((snapshot, "entries_at", _look_left_of_a_separator),),
        shape=(("sizes", SMALL),),
    ),
    Mutant(
        "read_two_runs_at_most",
        "a scan in any order ends after two runs of leaves below one branch",
        ("range_sums", "sql_keys", "sql_queue"),
        ((snapshot, "value_runs", _rest_of_a_run),),
        shape=(("sizes", replace(SMALL, page_entries=6)),),  # more leaves than two runs have
    ),
    Mutant(
        "miss_the_page_at_the_bound",
        "a scan with both bounds misses the page that its upper bound lies on",
        ("sql_bounds",),
        ((btree, "_children_between", _lose_the_separator),),
        shape=(("sizes", SMALL),),
    ),
)
