"""Bytes give back every value exactly as it was."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta, timezone
from decimal import Decimal
from math import nan
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.errors import DataCorrupted
from qserver.values.encoding import (
    decode,
    decode_columns,
    decode_entries,
    decode_stored_rows,
    encode,
    encode_columns,
    encode_entries,
    find_row,
    restored,
)
from qserver.values.enumeration import Label
from qserver.values.interval import Interval
from qserver.values.jsonb import Jsonb
from qserver.values.keys import NAN_KEY, NULL_KEY, TOP, Descending, key_element
from qserver.values.zoned_time import ZonedTime
from tests.values.strategies import SOME_DATE, SOME_TIMESTAMP, SOME_TIMESTAMPTZ, any_value

key_elements = st.builds(key_element, any_value, st.booleans())
scalars = st.one_of(any_value, key_elements, st.binary(max_size=8), st.integers())
nested = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4).map(tuple), max_leaves=12)
rows = st.lists(scalars, max_size=5).map(tuple)


def exactly(value: Any) -> Any:
    """Tells apart what `==` does not: types, scale of a Decimal, sign of zero, NaN."""
    if isinstance(value, tuple):
        return tuple(map(exactly, value))
    return type(value), repr(value)


@given(nested)
def test_a_value_comes_back_exactly(value: Any) -> None:
    assert exactly(decode(encode(value))) == exactly(value)


@given(st.lists(st.tuples(rows, st.one_of(st.none(), rows)), max_size=6))
def test_entries_come_back_exactly(entries: list[Any]) -> None:
    back = decode_entries(encode_columns([key for key, _ in entries], [row for _, row in entries]))
    assert isinstance(back, list)
    assert exactly(tuple(back)) == exactly(tuple(entries))


@given(st.lists(st.lists(any_value, min_size=3, max_size=3).map(tuple), max_size=5))
def test_rows_of_one_length_are_encoded_as_rows_of_any(rows: list[Any]) -> None:
    """The former go column by column."""
    keys = [(at,) for at in range(len(rows) + 1)]
    found = decode_columns(encode_columns(keys[:-1], rows))
    whole = decode_columns(encode_columns(keys, [*rows, None]))
    assert repr(found) == repr((whole[0][:-1], whole[1][:-1]))


@given(st.lists(st.lists(nested, max_size=4).map(tuple), max_size=5))
def test_stored_rows_are_restored_exactly(rows: list[Any]) -> None:
    """Twice: what is shared by all rows is read once."""
    data = encode_columns([(at,) for at in range(len(rows))], rows)
    for _ in range(2):
        found = tuple(tuple(restored(row)) for row in decode_stored_rows(data))
        assert exactly(found) == exactly(tuple(rows))
        assert exactly(tuple(decode_columns(data)[1])) == exactly(tuple(rows))


@given(st.dictionaries(st.integers(0, 30), st.tuples(any_value.map(key_element), rows)))
def test_one_row_is_found_without_the_others(entries: dict[int, Any]) -> None:
    keys = [(number, entries[number][0]) for number in sorted(entries)]
    data = encode_columns(keys, [entries[number][1] for number in sorted(entries)])
    for number in range(-1, 32):
        assert find_row(data, (number,)) is None
    for key in keys:
        assert exactly(find_row(data, key)) == exactly(entries[key[0]][1])


@pytest.mark.parametrize("data", [b"", encode((1, 2)), encode_columns([(1,)], [(2,)])[:-1]])
def test_a_row_is_not_found_in_what_cannot_be_read(data: bytes) -> None:
    with pytest.raises(DataCorrupted):
        find_row(data, (1,))


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        1,
        1.0,
        -0.0,
        nan,
        2**63,
        -(2**63),
        2**64,
        -(2**200),
        "",
        "\U0001f600",
        b"\x00\xff",
        Decimal("1.00"),
        Decimal("NaN"),
        Decimal("-Infinity"),
        Decimal(1).scaleb(-16383),
        SOME_DATE,
        SOME_TIMESTAMP,
        SOME_TIMESTAMPTZ,
        datetime(1, 1, 1, 0, 0, 0, 1),
        datetime(1, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        NAN_KEY,
        NULL_KEY,
        TOP,
        Descending(NULL_KEY),
        Descending(Decimal("2.5")),
        Interval(-(2**31), 2**31 - 1, -(2**63)),
        Interval(2**31 - 1, 2**31 - 1, 0).normal(),
        time.max,
        ZonedTime(1, tzinfo=timezone(timedelta(hours=-3, minutes=-30))),
        UUID(int=2**128 - 1),
        Jsonb('{"a": [1.0, "ä"]}'),
        Label("a b", -0.25),
        (1, None, (Decimal("1.0"), Label("x", 0.0))),
    ],
    ids=repr,
)
def test_awkward_values_come_back_exactly(value: Any) -> None:
    assert exactly(decode(encode(value))) == exactly(value)
    assert exactly(decode_entries(encode_entries({(value,): (1, value)}))[0]) == exactly(
        ((value,), (1, value))
    )


def test_above_comes_back_as_the_singleton() -> None:
    assert decode(encode((NULL_KEY,)))[0] is NULL_KEY


def test_sequences_come_back_as_tuples_and_mappings_as_mappings() -> None:
    assert decode(encode([1, [2, [Decimal(3)]], {"a": [4]}])) == (
        1,
        (2, (Decimal(3),)),
        {"a": (4,)},
    )


def test_a_tuple_within_a_row_comes_back_as_a_tuple() -> None:
    entries: list[Any] = [((1,), (1, ("a", (SOME_DATE,)))), ((2,), None)]
    assert decode_entries(encode_entries(dict(entries))) == entries


@given(
    st.lists(
        st.tuples(
            st.tuples(st.integers(-(2**63), 2**63 - 1)),
            st.none() | st.tuples(st.none() | st.booleans(), st.text(), st.integers(-1, 1)),
        )
    )
)
def test_plain_entries_are_encoded_as_all_are(entries: list[Any]) -> None:
    assert encode_entries(dict(entries), plain=True) == encode_entries(dict(entries))


def test_what_is_seen_as_equal_by_python_is_encoded_differently() -> None:
    equals = [1, 1.0, True, Decimal(1), Decimal("1.0")]
    assert len({encode(value) for value in equals}) == len(equals)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((1, "a", None, True), "9401a161c0c3"),
        (Decimal("1.50"), "d601312e3530"),
        (SOME_DATE, "c70602373338393435"),
        (SOME_TIMESTAMP, "c71a03323032342d30322d32395432333a35393a35392e353030303030"),
        (SOME_TIMESTAMPTZ, "d7ff7735940065e11a7f"),
        (2**64, "c711043130303030303030303030303030303030"),
        (NULL_KEY, "d40502"),
        (Descending(7), "d40607"),
        (Interval(14, -3, 5), "c707083134202d332035"),
        (time(1, 2, 3, 4), "c70f0930313a30323a30332e303030303034"),
        (ZonedTime(1, 2, tzinfo=UTC), "c70e0930313a30323a30302b30303a3030"),
        (UUID(int=7), "d80a00000000000000000000000000000007"),
        (b"\x00\xff", "c40200ff"),
        (Jsonb('{"a": 1.50}'), "c70b0b7b2261223a20312e35307d"),
        (Label("happy", 2.5), "c7090c322e35206861707079"),
        ((1, (None, 2)), "920192c002"),
    ],
    ids=repr,
)
def test_the_bytes_never_change_because_files_hold_them(value: Any, expected: str) -> None:
    assert encode(value).hex() == expected


@pytest.mark.parametrize(
    "data",
    [b"", b"\xc1", b"\x92\x01", encode((1, 2)) + b"\x00", b"\xd4\x63\x00", b"\xd4\x05\x09"],
    ids=repr,
)
def test_bytes_that_are_no_encoding_are_reported_as_corrupt(data: bytes) -> None:
    with pytest.raises(DataCorrupted):
        decode(data)
    for read in (decode_entries, all_restored):
        with pytest.raises(DataCorrupted):
            read(data)


def all_restored(data: bytes) -> list[Any]:
    return [restored(row) for row in decode_stored_rows(data)]


@given(st.binary(max_size=40))
def test_no_bytes_cause_another_error(data: bytes) -> None:
    for read in (decode, decode_entries, all_restored):
        try:
            read(data)
        except DataCorrupted:
            continue
