"""Rows that differ have other versions, and keys that differ other places."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from qserver.functions.row_marks import LINES, row_mark
from qserver.values.row_places import PAGES, place_from_text, text_of_place
from qserver.values.types import BIGINT, INTEGER, NUMERIC, TEXT

VERSION = row_mark("xmin", (INTEGER, TEXT, NUMERIC)).call
PLACE = row_mark("ctid", (BIGINT,)).call
integers = st.integers(-(2**63), 2**63 - 1)


@given(integers, integers, st.none() | st.text(max_size=5))
def test_a_row_with_another_integer_has_another_version(
    one: int, other: int, text: str | None
) -> None:
    row = (one % 2**31, text, Decimal("1.50"))
    assert VERSION(*row) == VERSION(*row)
    assert (VERSION(other % 2**31, *row[1:]) == VERSION(*row)) is (one % 2**31 == other % 2**31)


def test_a_value_that_looks_otherwise_is_another_version() -> None:
    versions = [
        VERSION(1, text, number)
        for text in ("", "a", None)
        for number in (Decimal(1), Decimal("1.0"), None)
    ]
    assert len(set(versions)) == len(versions)
    assert all(3 <= each < 2**32 for each in versions)


@given(st.lists(integers, min_size=2, max_size=20, unique=True))
def test_keys_have_places_of_their_own_that_can_be_written(keys: list[int]) -> None:
    places = [PLACE(key) for key in keys]
    assert len(set(places)) == len(keys)
    assert [place_from_text(text_of_place(each)) for each in places] == places


def test_the_first_rows_are_on_the_first_page() -> None:
    assert [text_of_place(PLACE(key)) for key in (1, 2, LINES, LINES + 1)] == [
        "(0,1)",
        "(0,2)",
        f"(0,{LINES})",
        "(1,1)",
    ]
    assert text_of_place(PLACE(PAGES * LINES)) == f"({PAGES - 1},{LINES})"


def test_places_of_keys_come_in_the_order_of_the_keys() -> None:
    places = [PLACE(key) for key in (1, 9, 10, LINES, LINES + 1, 10 * LINES, PAGES * LINES)]
    assert places == sorted(places)
