"""Rows are read from texts as PostgreSQL's record_in reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.errors import InvalidTextRepresentation, StringDataRightTruncation
from qserver.values.casts import cast_function
from qserver.values.record_input import record_reader
from qserver.values.records import Record
from qserver.values.text_output import shown_function
from qserver.values.types import INTEGER, TEXT, array_of, record_of, varchar

read_two = record_reader([str, str])
ROW = record_of((("a", INTEGER), ("b", TEXT), ("c", array_of(TEXT))), oid=20_000)
texts = st.none() | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("(a,b)", ("a", "b")),
        (" (a , b) ", ("a ", " b")),
        ("(,)", (None, None)),
        ('("",)', ("", None)),
        ('("a,b","(c)")', ("a,b", "(c)")),
        (r"(a\,b,\\)", ("a,b", "\\")),
        ('("say ""no""",x"y z"w)', ('say "no"', "xy zw")),
        ('("\\"",\\")', ('"', '"')),
        ("(NULL,null)", ("NULL", "null")),
        ("(a\n,b)", ("a\n", "b")),
    ],
)
def test_a_row_is_read(text: str, values: tuple[str | None, ...]) -> None:
    assert read_two(text) == Record(values)


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("a,b", "Missing left parenthesis."),
        ("", "Missing left parenthesis."),
        ("(a)", "Too few columns."),
        ("()", "Too few columns."),
        ("(a,b,c)", "Too many columns."),
        ("(a,b", "Unexpected end of input."),
        ('(a,"b)', "Unexpected end of input."),
        ("(a,b\\", "Unexpected end of input."),
        ("(a,b)c", "Junk after right parenthesis."),
    ],
)
def test_what_is_no_row_is_refused(text: str, detail: str) -> None:
    with pytest.raises(InvalidTextRepresentation, match="malformed record literal") as caught:
        read_two(text)
    assert caught.value.detail == detail


def test_a_row_without_columns_is_two_parentheses() -> None:
    assert record_reader([])(" () ") == Record(())
    with pytest.raises(InvalidTextRepresentation, match="malformed"):
        record_reader([])("(a)")


@given(st.tuples(st.none() | st.integers(-9, 9), texts, st.none() | st.tuples(texts, texts)))
def test_what_is_printed_is_read_again(values: tuple[object, ...]) -> None:
    text = shown_function(ROW)(Record(values))
    assert cast_function(TEXT, ROW)(text) == Record(values)
    array = shown_function(array_of(ROW))((Record(values), None))
    assert cast_function(TEXT, array_of(ROW))(array) == (Record(values), None)


def test_a_field_that_is_too_long_is_refused() -> None:
    row = record_of((("a", varchar(2)),), oid=20_000)
    with pytest.raises(StringDataRightTruncation, match="value too long"):
        cast_function(TEXT, row)("(abc)")
