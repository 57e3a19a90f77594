"""What contains something, by two ways of looking: the quick one of `@>` and the plain one."""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import Any

import pytest

from qserver.functions.arrays import functions as arrays
from qserver.functions.json.jsonb_reading import SCALARS_MAX, contained, contains
from qserver.values.jsonb import jsonb_of

SCALARS = (1, Decimal("1.0"), 2, None, True, False, "a", 'b"q', "é", "1", 1000, Decimal("1E+3"))


def value(chance: Random, depth: int) -> Any:
    kind = chance.random()
    if depth and kind < 0.35:
        keys = (chance.choice('abc é"\\') for _ in range(chance.randrange(3)))
        return {key: value(chance, depth - 1) for key in keys}
    if depth and kind < 0.7:
        return [value(chance, depth - 1) for _ in range(chance.randrange(2 * SCALARS_MAX))]
    return chance.choice(SCALARS)


@pytest.mark.half
@pytest.mark.parametrize("seed", range(3))
def test_jsonb_contains_what_is_contained(seed: int) -> None:
    chance = Random(seed)
    found = set()
    for _ in range(1500):
        whole = value(chance, 3)
        part = value(chance, 2) if chance.random() < 0.5 else whole
        if isinstance(part, list) and part and chance.random() < 0.5:
            part = chance.choice([part[: SCALARS_MAX // 2], part * 2, part[0]])
        one, other = jsonb_of(whole), jsonb_of(part)
        found.add(contains(one, other))
        assert contains(one, other) == contained(other, one), (one, other)
    assert found == {True, False}


@pytest.mark.parametrize("seed", range(3))
def test_arrays_of_plain_values_are_compared_as_all_others_are(seed: int) -> None:
    chance = Random(seed)
    for _ in range(1500):
        left, right = [
            tuple([chance.choice((1, 2, 3, 4, None)) for _ in range(chance.randrange(4))])
            for _ in range(2)
        ]
        slow = [
            tuple([None if each is None else Decimal(each) for each in array])
            for array in (left, right)
        ]
        assert arrays.contains(left, right) == arrays.contains(*slow), (left, right)
        assert arrays.overlaps(left, right) == arrays.overlaps(*slow), (left, right)
