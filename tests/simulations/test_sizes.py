"""Sizes hold for the time of a run, and make trees of several levels out of few rows."""

from __future__ import annotations

from random import Random

import pytest

from qserver import limits
from qserver.durability import recovery
from qserver.durability.check_snapshot import tree_problems
from qserver.storage import snapshot
from qserver.storage.page import EMPTY, Tree
from qserver.storage.ranges import laid_over
from simulations.sizes import PAGE_ENTRIES, RANGE_ENTRIES, READ_AT_ONCE, Sizes, draw_sizes, sized
from tests.storage.trees import build, put


@pytest.mark.parametrize("entries", [3, 4, 6, limits.PAGE_ENTRIES_MAX])
def test_pages_are_as_small_as_a_run_wants_them(entries: int) -> None:
    with sized(Sizes(page_entries=entries)):
        tree: Tree = EMPTY
        for number in range(100):
            tree = put(tree, (number * 7 % 100,), (number,))
        problems = [problem for problem in tree_problems(tree, "tree") if problem is not None]
    assert problems == []
    assert len(tree) == 100
    assert (tree.height > 1) == (entries < limits.PAGE_ENTRIES_MAX)


@pytest.mark.parametrize("entries", list(RANGE_ENTRIES))
def test_ranges_are_as_narrow_as_a_run_wants_them(entries: int) -> None:
    with sized(Sizes(range_entries=entries)):
        tree = laid_over(
            7, (), [build([(n,) for n in range(60)], [(n,) for n in range(60)])], 0, 3
        ).laid_out(3)
    assert len(tree.ranges) == -(-60 // entries)


def test_the_products_own_sizes_are_back_afterwards() -> None:
    before = snapshot.PICKED_MAX, recovery.RECORDS_READ_AT_ONCE
    with sized(Sizes(picked_most=1, read_at_once=2)):
        assert (snapshot.PICKED_MAX, recovery.RECORDS_READ_AT_ONCE) == (1, 2)
    assert before == (snapshot.PICKED_MAX, recovery.RECORDS_READ_AT_ONCE)


def test_the_products_own_sizes_are_among_those_that_are_drawn() -> None:
    drawn = [draw_sizes(Random(seed)) for seed in range(200)]
    assert {each.page_entries for each in drawn} == set(PAGE_ENTRIES)
    assert {each.read_at_once for each in drawn} == set(READ_AT_ONCE)
    assert {each.range_entries for each in drawn} == set(RANGE_ENTRIES)
    assert Sizes() in drawn
