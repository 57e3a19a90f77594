"""A table of keys gives each row its matches, in the order of the right side, part by part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.sql.vectors import join_tables
from qserver.sql.vectors.joins import Lookup
from qserver.values.vectors import Vector, integers

Keys = Sequence[tuple[int | None, ...]]

FAR = 2**40
values = st.one_of(st.none(), st.integers(-3, 3), st.integers(-3, 3).map(lambda each: each * FAR))


def key_rows(width: int) -> st.SearchStrategy[list[tuple[int | None, ...]]]:
    return st.lists(st.tuples(*[values] * width), min_size=1, max_size=25)


both_sides = st.integers(1, 3).flatmap(lambda width: st.tuples(key_rows(width), key_rows(width)))


def vectors(rows: Keys) -> list[Vector]:
    return [column(part) for part in zip(*rows, strict=True)]


def column(part: Sequence[int | None]) -> Vector:
    nulls = np.array([value is None for value in part])
    numbers = np.array([0 if value is None else value for value in part], np.int64)
    return integers(numbers, nulls if nulls.any() else None)


def filled(rows: Keys, *, counts_only: bool = False) -> Lookup:
    lookup = Lookup({}, vectors(rows), len(rows), counts_only)
    for _ in lookup.filled():
        pass
    return lookup


@pytest.mark.parametrize("at_once", [1, 4, 2**17])
@given(both_sides)
def test_each_row_meets_its_matches_in_order(at_once: int, sides: tuple[Keys, Keys]) -> None:
    left, right = sides
    wanted = [
        (at, place)
        for at, key in enumerate(left)
        for place, other in enumerate(right)
        if key == other and None not in key
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join_tables, "ROWS_AT_ONCE", at_once)
        lookup, asked = filled(right), filled(right, counts_only=True)
    found = lookup.matches(vectors(left), len(left))
    rows, matches = found.pairs(False)
    rows = np.arange(len(left)) if rows is None else rows
    assert list(zip(rows.tolist(), matches.tolist(), strict=True)) == wanted
    assert found.count() == len(wanted)
    there = {at for at, _ in wanted}
    for each in (found, asked.matches(vectors(left), len(left))):
        assert each.exists().tolist() == [at in there for at in range(len(left))]
    rows, matches = found.pairs(True)
    rows = np.arange(len(left)) if rows is None else rows
    outer = wanted + [(at, len(right)) for at in range(len(left)) if at not in there]
    assert list(zip(rows.tolist(), matches.tolist(), strict=True)) == sorted(outer)
