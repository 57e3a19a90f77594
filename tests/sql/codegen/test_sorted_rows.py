"""Sorting in runs gives what Python's own sort gives, and gives the loop back in between."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qserver.functions.context import Context
from qserver.sql.codegen.sorted_rows import (
    RUN_ROWS,
    bytes_of_keys,
    sorted_numbers,
    sorted_pairs,
)
from qserver.values.jsonb import jsonb_of
from qserver.values.steps import at_once
from tests.steps import taken


def new_context() -> Context:
    now = datetime(2024, 1, 1, tzinfo=UTC)
    return Context(now, Random(0), lambda: None, 1 << 30, lambda: 1)


@settings(deadline=None)
@given(st.lists(st.integers(0, 50), max_size=300), st.booleans(), st.integers(0, 10_000_000))
def test_numbers_are_sorted_stably_whatever_the_length_of_runs(
    keys: list[int], reverse: bool, key_bytes: int
) -> None:
    found = at_once(sorted_numbers(new_context(), keys, reverse, key_bytes))
    assert found == sorted(range(len(keys)), key=keys.__getitem__, reverse=reverse)


@pytest.mark.half
def test_many_rows_are_sorted_with_pauses_and_short_steps_between_them() -> None:
    chance = Random(5)
    keys = [(chance.randrange(1000), chance.random()) for _ in range(20 * RUN_ROWS + 7)]
    pauses, found = taken(sorted_numbers(new_context(), keys))
    assert found == sorted(range(len(keys)), key=keys.__getitem__)
    assert pauses > 60


def test_runs_of_long_keys_are_short() -> None:
    keys = ["x" * 100_000 + str(at % 7) for at in range(100)]
    steps = sorted_numbers(new_context(), keys, key_bytes=sum(map(len, keys)))
    assert next(steps) is None
    assert at_once(steps) == sorted(range(100), key=keys.__getitem__)


def test_pairs_are_ordered_by_their_first_part() -> None:
    pairs = [((at % 3,), at) for at in range(9)]
    assert at_once(sorted_pairs(new_context(), pairs, may_be_long=True)) == [
        0,
        3,
        6,
        1,
        4,
        7,
        2,
        5,
        8,
    ]


@pytest.mark.long
def test_keys_of_many_depths_are_sorted_in_short_runs() -> None:
    """Python compares what is deep again at each depth, so a comparison takes much longer."""
    deep = [jsonb_of(_nested(number, 60)).order_key() for number in range(RUN_ROWS)]
    flat = [jsonb_of([number, *[1] * 60]).order_key() for number in range(RUN_ROWS)]
    pauses = []
    for keys in (deep, flat):
        size = at_once(bytes_of_keys(new_context(), keys))
        pauses.append(taken(sorted_numbers(new_context(), keys, key_bytes=size))[0])
    assert pauses[0] > 5 * pauses[1]


def _nested(number: int, depth: int) -> list[Any]:
    found: Any = number
    for _ in range(depth):
        found = [found]
    return [found]
