"""Definitions: keys and entries of rows, checks, round trips."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from math import nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.errors import (
    DatatypeMismatch,
    DuplicateColumn,
    DuplicateTable,
    InvalidName,
    InvalidTableDefinition,
    NameTooLong,
    NotNullViolation,
    NumericValueOutOfRange,
    QserverError,
    StringDataRightTruncation,
    TooManyColumns,
    UndefinedColumn,
    UndefinedObject,
)
from qserver.values.constraints import Check, ForeignKey
from qserver.values.encoding import decode, encode
from qserver.values.keys import NAN_KEY, NULL_KEY, Descending
from qserver.values.schema import Column, Index, Table, define_table
from qserver.values.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, NUMERIC, TEXT, char, varchar
from tests.values.making import define_index
from tests.values.strategies import stored, types

PEOPLE = define_table(
    1,
    "people",
    [
        Column("id", INTEGER),
        Column("name", varchar(10), nullable=False),
        Column("email", TEXT),
        Column("score", NUMERIC),
    ],
    ["id"],
)
BY_EMAIL = define_index(2, "people_email_key", PEOPLE, ["email"], unique=True)
BY_NAME = define_index(3, "people_name", PEOPLE, ["name"])
BY_SCORE = define_index(4, "people_score", PEOPLE, ["score", "name"], descending=[True, False])
BOTH = define_index(5, "people_both_key", PEOPLE, ["email", "score"], unique=True)
PEOPLE = Table(1, "people", PEOPLE.columns, (0,), (BY_EMAIL, BY_NAME, BY_SCORE, BOTH))

ADA = (7, "ada", "ada@example.org", Decimal("1.50"))
BOB = (8, "bob", None, None)


def test_the_key_of_a_row_is_its_primary_key() -> None:
    assert PEOPLE.key_of(ADA) == (7,)
    assert not PEOPLE.has_row_id


def test_a_unique_entry_is_found_by_the_indexed_values_alone() -> None:
    assert PEOPLE.entries(BY_EMAIL, ADA) == (("ada@example.org",), (7,))
    assert PEOPLE.entries(BOTH, ADA) == (("ada@example.org", Decimal("1.5")), (7,))


def test_an_entry_that_is_not_unique_has_the_primary_key_in_its_key() -> None:
    assert PEOPLE.entries(BY_NAME, ADA) == (("ada", 7), (7,))


def test_a_null_makes_a_unique_entry_distinct() -> None:
    assert PEOPLE.entries(BY_EMAIL, BOB) == ((NULL_KEY, 8), (8,))
    assert PEOPLE.entries(BOTH, (8, "bob", "b", None)) == (("b", NULL_KEY, 8), (8,))
    assert PEOPLE.entries(BOTH, (8, "bob", "b", Decimal("NaN"))) == (("b", NAN_KEY), (8,))


def test_descending_columns_are_wrapped_and_the_primary_key_is_not() -> None:
    key, value = PEOPLE.entries(BY_SCORE, ADA)
    assert key == (Descending(Decimal("1.5")), "ada", 7)
    assert value == (7,)
    assert PEOPLE.entry_function(BY_SCORE)(BOB)[0] == (Descending(NULL_KEY), "bob", 8)


def test_floats_and_decimals_in_a_key_are_canonical() -> None:
    table = define_table(1, "t", [Column("a", DOUBLE), Column("b", NUMERIC)], ["a", "b"])
    assert repr(table.key_of((-0.0, Decimal("1.00")))) == "(0.0, Decimal('1'))"
    assert table.key_of((nan, Decimal("NaN"))) == (NAN_KEY, NAN_KEY)
    single = define_table(1, "t", [Column("a", DOUBLE)], ["a"])
    assert single.key_of((nan,)) == (NAN_KEY,)


def test_a_table_without_a_primary_key_has_a_hidden_row_id() -> None:
    table = define_table(1, "t", [Column("a", TEXT), Column("row_id", TEXT)])
    assert table.has_row_id
    assert table.columns[-1] == Column("row_id", BIGINT, nullable=False, hidden=True)
    assert table.key_of(("x", "y", 12)) == (12,)
    assert table.position("row_id") == 1
    assert table.row(("x", "y", 12)) == ("x", "y", 12)


def test_a_row_by_name_may_hold_the_hidden_row_id() -> None:
    table = define_table(1, "t", [Column("a", TEXT)])
    assert table.row({"a": "x", "row_id": 12}) == ("x", 12)


def test_columns_and_indexes_are_found_by_name() -> None:
    assert PEOPLE.column("email") == Column("email", TEXT)
    assert PEOPLE.position("score") == 3
    assert PEOPLE.index("people_name") is BY_NAME
    with pytest.raises(UndefinedColumn, match='column "x" of relation "people" does not exist'):
        PEOPLE.column("x")
    with pytest.raises(UndefinedObject, match='index "x" does not exist'):
        PEOPLE.index("x")


def test_indexes_are_added_and_dropped_in_a_copy() -> None:
    smaller = PEOPLE.without_index("people_name")
    assert BY_NAME not in smaller.indexes and BY_NAME in PEOPLE.indexes
    assert smaller.with_index(BY_NAME).entries(BY_NAME, ADA) == (("ada", 7), (7,))


def test_a_row_is_admitted_by_order_or_by_name() -> None:
    row = (1, "x", None, Decimal(2))
    assert PEOPLE.row((1, "x", None, 2)) == row
    assert PEOPLE.row([1, "x", None, 2]) == row
    assert PEOPLE.row({"score": 2, "name": "x", "id": 1}) == row


def failure(values: Any) -> QserverError:
    with pytest.raises(QserverError) as caught:
        PEOPLE.row(values)
    return caught.value


def test_null_in_a_required_column_is_refused_as_in_postgresql() -> None:
    error = failure((1, None, "x" * 70, Decimal("1.50")))
    assert isinstance(error, NotNullViolation)
    assert error.message == (
        'null value in column "name" of relation "people" violates not-null constraint'
    )
    assert error.detail == f"Failing row contains (1, null, {'x' * 64}..., 1.50)."
    assert (error.table, error.column) == ("people", "name")


def test_a_described_row_pads_characters_and_hides_the_row_id() -> None:
    table = define_table(1, "t", [Column("a", char(3)), Column("b", BOOLEAN)])
    assert table.describe(("x", True, 12)) == "x  , t"


@pytest.mark.parametrize(
    ("values", "error_class", "message", "column"),
    [
        (
            {"id": "1", "name": "x"},
            DatatypeMismatch,
            'column "id" is of type integer but expression is of type text',
            "id",
        ),
        (
            {"id": object(), "name": "x"},
            DatatypeMismatch,
            'column "id" is of type integer but expression is of type object',
            "id",
        ),
        ({"id": 2**31, "name": "x"}, NumericValueOutOfRange, "integer out of range", "id"),
        (
            {"id": 1, "name": "x" * 11},
            StringDataRightTruncation,
            "value too long for type character varying(10)",
            "name",
        ),
        (
            {"nobody": 1},
            UndefinedColumn,
            'column "nobody" of relation "people" does not exist',
            "nobody",
        ),
    ],
)
def test_a_refused_value_names_its_column(
    values: Any, error_class: type[QserverError], message: str, column: str
) -> None:
    error = failure(values)
    assert type(error) is error_class
    assert (error.message, error.table, error.column) == (message, "people", column)


def columns(*names: str) -> list[Column]:
    return [Column(name, TEXT) for name in names]


def test_definitions_that_postgresql_refuses_are_refused() -> None:
    with pytest.raises(DuplicateColumn, match='column "a" specified more than once'):
        define_table(1, "t", columns("a", "b", "a"))
    with pytest.raises(DuplicateColumn, match='"a" appears twice in primary key constraint'):
        define_table(1, "t", columns("a"), ["a", "a"])
    with pytest.raises(UndefinedColumn, match='column "b" named in key does not exist'):
        define_table(1, "t", columns("a"), ["b"])
    with pytest.raises(InvalidTableDefinition, match="must be marked NOT NULL"):
        Table(1, "t", tuple(columns("a")), (0,))
    with pytest.raises(DuplicateTable, match='relation "people_name" already exists'):
        PEOPLE.with_index(Index(9, "people_name", (0,), False))


def test_limits_of_definitions_are_kept() -> None:
    names = [f"c{number}" for number in range(1601)]
    assert len(define_table(1, "t", columns(*names[:1600])).columns) == 1601
    with pytest.raises(TooManyColumns, match="at most 1600 columns"):
        define_table(1, "t", columns(*names))
    with pytest.raises(TooManyColumns, match="more than 32 columns in an index"):
        Index(1, "i", tuple(range(33)), False)
    with pytest.raises(TooManyColumns, match="more than 32 columns in an index"):
        define_table(1, "t", columns(*names[:33]), names[:33])
    with pytest.raises(NameTooLong):
        Column("ä" * 32, TEXT)
    assert Column("ä" * 31, TEXT).name == "ä" * 31


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800"])
def test_names_that_cannot_be_written_are_refused(name: str) -> None:
    with pytest.raises(InvalidName):
        define_table(1, name, columns("a"))


def test_an_index_says_all_ascending_in_one_way() -> None:
    assert Index(1, "i", (0, 1), True, (False, False)) == Index(1, "i", (0, 1), True)


def test_tables_are_equal_by_definition_and_usable_as_keys() -> None:
    again = Table.from_plain(PEOPLE.to_plain())
    assert again == PEOPLE and hash(again) == hash(PEOPLE)
    assert again != PEOPLE.without_index("people_name")


names = st.text("abcä_", min_size=1, max_size=5)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    column_names = draw(st.lists(names, min_size=1, max_size=5, unique=True))
    defined = [Column(name, draw(types), draw(st.booleans())) for name in column_names]
    key = draw(st.lists(st.sampled_from(column_names), unique=True))
    table = define_table(draw(st.integers(0, 99)), draw(names), defined, key)
    for number, name in enumerate(draw(st.lists(names, max_size=3, unique=True))):
        indexed = draw(st.lists(st.sampled_from(column_names), min_size=1, max_size=3))
        descending = [draw(st.booleans()) for _ in indexed]
        index = define_index(number, name, table, indexed, draw(st.booleans()), descending)
        table = table.with_index(index)
    return table


@given(tables())
def test_a_definition_survives_encoding(table: Table) -> None:
    assert Table.from_plain(decode(encode(table.to_plain()))) == table


def test_what_few_tables_have_survives_encoding_too() -> None:
    number = Column("a", INTEGER, default="1 + 1", identity="always", sequence="t_a_seq")
    table = Table(
        1,
        "t",
        (number, Column("b", TEXT, generated="a::text"), Column("k", INTEGER, nullable=False)),
        (2,),
        (Index(2, "t_a_key", (0,), unique=True, constraint=True, nulls_distinct=False),),
        (Check("positive", "a > 0", ("a",)),),
        (ForeignKey("t_a_fkey", ("a",), "other", ("id",), on_delete="cascade"),),
        "t_key",
        (("", "a table"), ("column a", "a number")),
    )
    assert Table.from_plain(decode(encode(table.to_plain()))) == table


def test_a_primary_key_is_named_after_its_table_and_keeps_that_name() -> None:
    table = define_table(1, "t", [Column("a", INTEGER)], ["a"])
    assert table.primary_key_name == "t_pkey"
    assert replace(table, name="u").primary_key_name == "t_pkey"
    assert define_table(1, "t", [Column("a", INTEGER)]).primary_key_name == ""


def test_nulls_can_be_duplicates_where_the_index_says_so() -> None:
    table = define_table(1, "t", [Column("id", INTEGER), Column("a", INTEGER)], ["id"])
    for distinct in (True, False):
        index = Index(2, "t_a_key", (1,), unique=True, nulls_distinct=distinct)
        keys = [table.with_index(index).entries(index, (at, None))[0] for at in (1, 2)]
        assert (keys[0] == keys[1]) == (not distinct)


@given(st.data())
def test_rows_are_admitted_once_and_their_keys_order_and_encode(data: st.DataObject) -> None:
    table = data.draw(tables())
    row = st.tuples(
        *(
            st.one_of(st.none(), stored(column.type)) if column.nullable else stored(column.type)
            for column in table.columns
        )
    )
    one, other = data.draw(row), data.draw(row)
    assert repr(table.row(one)) == repr(one)
    assert (table.key_of(one) < table.key_of(other)) in (True, False)
    for index in table.indexes:
        key, primary_key = table.entries(index, one)
        assert primary_key == table.key_of(one)
        assert len(key) in (len(index.columns), len(index.columns) + len(table.primary_key))
        other_key, other_primary_key = table.entries(index, other)
        if key == other_key and primary_key != other_primary_key:
            assert index.unique and not any(one[at] is None for at in index.columns)
        assert decode(encode(key)) == key
