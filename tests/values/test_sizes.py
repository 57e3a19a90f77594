"""How long values are, as far as that counts as memory."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from qserver.values.jsonb import Jsonb
from qserver.values.sizes import ELEMENT_BYTES, is_sized, size_of, size_of_all
from qserver.values.types import INTEGER, NUMERIC, TEXT, Kind, SqlType, array_of


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (None, 0),
        (7, 0),
        (1.5, 0),
        ("abc", 3),
        (b"abcd", 4),
        (Jsonb('{"a": 1}'), 8),
        (Decimal("1.5"), 0),
        ((1, 2, 3), 3 * ELEMENT_BYTES),
        (("ab", None, "c"), 3 * ELEMENT_BYTES + 3),
        ((("ab", "c"), ("d", "e")), 6 * ELEMENT_BYTES + 5),
    ],
)
def test_the_size_is_the_length_of_what_has_one(value: Any, size: int) -> None:
    assert size_of(value) == size


def test_parts_of_arrays_count_as_their_elements_do_however_many_there_are() -> None:
    for element in (1, "abc", None, Decimal("7" * 1000), Jsonb("[1]")):
        part = ((element, element),)
        one = size_of((part,))
        assert size_of((part,) * 1000) == 1000 * one
    mixed = ((1, 2), *("x" * 100,) * 100, (3, 4))  # not an array
    assert size_of(mixed) >= 100 * 100
    assert size_of(((1, 2), *(Jsonb('"abc"'),) * 100, (3, 4))) >= 100 * 5


def test_texts_and_numbers_count_as_python_keeps_them() -> None:
    assert size_of("ä" * 1000) >= 1000
    assert size_of("\u4e2d" * 1000) >= 2000
    assert size_of(Decimal("7" * 100_000)) > 40_000


@pytest.mark.parametrize(
    "values",
    [
        [],
        [None, None],
        ["abc", "", "defgh"],
        ["abc", None, "de"],
        [b"abcd", None],
        [Jsonb('{"a": 1}'), Jsonb("2"), None],
        [("ab", "c"), (), None, ("d",)],
        [Decimal("1.5"), Decimal("7" * 1000)],
    ],
)
def test_the_size_of_many_values_is_that_of_each(values: list[Any]) -> None:
    assert size_of_all(iter(values)) == sum(map(size_of, values))


def test_the_size_of_texts_is_never_far_from_that_of_each() -> None:
    for texts in (["a" * 100, "ä" * 100, None], ["\u4e2d" * 7, "\U0001f600" * 50, "x"]):
        total, each = size_of_all(texts), sum(map(size_of, texts))
        assert each - 64 * len(texts) <= total <= each + 64 * len(texts)
        assert total >= sum(len(text) for text in texts if text is not None)


def test_a_declared_precision_bounds_a_number() -> None:
    assert is_sized(NUMERIC) and is_sized(TEXT) and is_sized(array_of(INTEGER))
    assert not is_sized(SqlType(Kind.NUMERIC, precision=10, scale=2))
    assert not is_sized(INTEGER)
