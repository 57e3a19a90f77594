"""A vector that is saved comes back the same, in the same array type, and in few bytes."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.values import vector_families as families
from qserver.values.saved_vectors import decode_vector, encode_vector
from qserver.values.vector_families import ColumnVector
from qserver.values.vectors import Vector, vector_of

SMALL = st.integers(-3, 3)
ANY_INTEGER = st.integers(-(2**63), 2**63 - 1)
MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))
VALUES: dict[ColumnVector, tuple[st.SearchStrategy[Any], ...]] = {
    ColumnVector(0, families.INTEGER): (SMALL, st.integers(0, 300), ANY_INTEGER),
    ColumnVector(1, families.NUMERIC, 2): (
        st.decimals(-99, 99, places=2),
        st.decimals(-(10**15), 10**15, places=2),
    ),
    ColumnVector(2, families.FLOAT): (
        st.floats(allow_nan=False, allow_infinity=False),
        st.floats(width=32, allow_nan=False, allow_infinity=False),
    ),
    ColumnVector(3, families.BOOLEAN): (st.booleans(),),
    ColumnVector(4, families.DATE): (st.dates(), st.dates(date(2020, 1, 1), date(2020, 2, 1))),
    ColumnVector(5, families.TIMESTAMP): (MOMENTS,),
    ColumnVector(6, families.ZONED): (MOMENTS.map(lambda each: each.replace(tzinfo=UTC)),),
    ColumnVector(7, families.TEXT): (
        st.sampled_from(["", "a", "é", "😀"]),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
    ),
}


@st.composite
def columns(draw: st.DrawFn) -> tuple[ColumnVector, list[Any]]:
    wanted = draw(st.sampled_from(list(VALUES)))
    values = draw(st.sampled_from(VALUES[wanted]))
    if draw(st.booleans()):
        values = st.none() | values
    return wanted, draw(st.lists(values, min_size=1, max_size=80))


def parts_of(vector: Vector) -> list[Any]:
    nulls = None if vector.nulls is None else vector.nulls.tolist()
    values = vector.values
    bounds = [repr(vector.low), repr(vector.high)]
    return [
        values.dtype,
        list(map(repr, values.tolist())),
        nulls,
        *bounds,
        vector.scale,
        vector.words,
    ]


def is_saved(vector: Vector, wanted: ColumnVector, rows: int) -> bytes:
    data = encode_vector(vector, wanted)
    assert data is not None
    assert parts_of(decode_vector(data, wanted, rows)) == parts_of(vector)
    return data


@given(columns())
def test_a_vector_comes_back_as_it_was(drawn: tuple[ColumnVector, list[Any]]) -> None:
    wanted, values = drawn
    vector = vector_of(values, wanted)
    if vector is not None:
        is_saved(vector, wanted, len(values))


@given(st.lists(st.none() | st.sampled_from(["carefully", "final deposits", "", "é😀"])))
def test_texts_come_back_as_they_were(texts: list[str | None]) -> None:
    wanted = ColumnVector(0, families.TEXTS)
    vector = vector_of(["beginning", *texts] * 20, wanted)
    assert vector is not None
    is_saved(vector, wanted, 20 * (1 + len(texts)))


def test_texts_that_would_take_as_many_bytes_as_the_rows_are_not_saved() -> None:
    chance = Random(1)
    wanted = ColumnVector(0, families.TEXTS)
    vector = vector_of([chance.randbytes(20).hex() for _ in range(3000)], wanted)
    assert vector is not None and encode_vector(vector, wanted) is None


ROWS = 3000


@pytest.mark.parametrize(
    ("wanted", "values", "bits"),
    [
        (ColumnVector(0, families.INTEGER), [7] * ROWS, 0),
        (ColumnVector(0, families.INTEGER), [10**9 + n % 2 for n in range(ROWS)], 1),
        (ColumnVector(0, families.INTEGER), [10**12 + n % 16 for n in range(ROWS)], 4),
        (ColumnVector(0, families.INTEGER), [2**62 + n for n in range(ROWS)], 16),
        (ColumnVector(0, families.INTEGER), [n % 3 for n in range(ROWS - 1)] + [2**60], 16),
        (ColumnVector(0, families.NUMERIC, 2), [Decimal(n % 11) / 100 for n in range(ROWS)], 16),
        (
            ColumnVector(0, families.DATE),
            [date.fromordinal(700_000 + n) for n in range(ROWS)],
            16,
        ),
        (ColumnVector(0, families.BOOLEAN), [n % 3 == 0 for n in range(ROWS)], 1),
        (ColumnVector(0, families.FLOAT), [Random(n).random() for n in range(ROWS)], 64),
        (ColumnVector(0, families.TEXT), [f"word {n % 4}" for n in range(ROWS)], 2),
        (ColumnVector(0, families.TEXT), [f"word {n % 5}" for n in range(ROWS)], 4),
    ],
)
def test_values_take_as_few_bits_as_their_range_needs(
    wanted: ColumnVector, values: list[Any], bits: int
) -> None:
    vector = vector_of(values, wanted)
    assert vector is not None
    data = is_saved(vector, wanted, ROWS)
    assert len(data) <= bits * ROWS / 8 + 100


@pytest.mark.parametrize("wanted", VALUES, ids=lambda wanted: wanted.family)
def test_bytes_of_something_else_are_refused(wanted: ColumnVector) -> None:
    whole = encode_vector(Vector(np.arange(3), None, 0, 2), wanted)
    for data in (b"", b"\x90", b"\xc0", (whole or b"none")[:-1]):
        with pytest.raises(ValueError):
            decode_vector(data, wanted, 3)
