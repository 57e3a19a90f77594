"""Short ways of reading texts give what the long way gives: a blank more, and it is taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.errors import QserverError
from qserver.values.datetime_input import date_from_text
from qserver.values.text_input import integer_reader, numeric_from_text
from qserver.values.types import Kind

PLAIN = r"[+-]?[0-9]{0,22}(\.[0-9]{0,22})?(e[0-9])?"


def read(reader: Callable[[str], Any], text: str) -> str | tuple[type[QserverError], str]:
    try:
        return repr(reader(text))
    except QserverError as error:
        return type(error), error.message.replace(f'"{text}"', "…")


@given(st.one_of(st.from_regex(PLAIN, fullmatch=True), st.text("0123456789.-٣", max_size=8)))
def test_numbers_are_read_alike_with_and_without_blanks(text: str) -> None:
    assert read(numeric_from_text, text) == read(numeric_from_text, f" {text} ")


@pytest.mark.parametrize("kind", [Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT])
@given(st.one_of(st.from_regex(r"[+-]?[0-9]{0,20}", fullmatch=True), st.text("01-+ ٣", max_size=5)))
def test_integers_are_read_alike_with_and_without_blanks(kind: Kind, text: str) -> None:
    reader = integer_reader(kind)
    assert read(reader, text) == read(reader, f" {text} ")


@given(
    st.one_of(
        st.dates().map(str),
        st.from_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", fullmatch=True),
        st.text("0123456789-W٣", min_size=10, max_size=10),
    )
)
def test_dates_are_read_alike_with_and_without_blanks(text: str) -> None:
    assert read(date_from_text, text) == read(date_from_text, f" {text} ")
