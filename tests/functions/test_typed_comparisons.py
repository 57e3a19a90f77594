"""Times, intervals, UUIDs, bytes and enums compare as in PostgreSQL 15."""

from __future__ import annotations

import pytest

from qserver.values.types import (
    BYTEA,
    DATE,
    INTEGER,
    INTERVAL,
    TIME,
    TIMETZ,
    UNKNOWN,
    UUID_TYPE,
    array_of,
)
from tests.functions.typed_calls import Argument, aggregated, called
from tests.values.making import enum_type
from tests.values.strategies import MOOD

Case = tuple[str, list[Argument], str | None]

COMPARED: list[Case] = [
    ("=", [(INTERVAL, "1 mon"), (INTERVAL, "30 days")], "true"),
    ("=", [(INTERVAL, "1 day"), (INTERVAL, "24:00")], "true"),
    ("=", [(INTERVAL, "1 day"), (INTERVAL, "23:59")], "false"),
    ("=", [(INTERVAL, "-1 mon"), (INTERVAL, "0")], "false"),
    ("<", [(INTERVAL, "1 mon"), (INTERVAL, "30 days")], "false"),
    ("<", [(INTERVAL, "1 day"), (INTERVAL, "24:00")], "false"),
    ("<", [(INTERVAL, "1 day"), (INTERVAL, "23:59")], "false"),
    ("<", [(INTERVAL, "-1 mon"), (INTERVAL, "0")], "true"),
    (">=", [(INTERVAL, "1 mon"), (INTERVAL, "30 days")], "true"),
    (">=", [(INTERVAL, "1 day"), (INTERVAL, "24:00")], "true"),
    (">=", [(INTERVAL, "1 day"), (INTERVAL, "23:59")], "true"),
    (">=", [(INTERVAL, "-1 mon"), (INTERVAL, "0")], "false"),
    ("=", [(TIMETZ, "10:00+00"), (TIMETZ, "11:00+00")], "false"),
    ("=", [(TIMETZ, "12:00+02"), (TIMETZ, "10:00+00")], "false"),
    ("<", [(TIMETZ, "12:00+02"), (TIMETZ, "10:00+00")], "true"),
    ("<", [(TIMETZ, "10:00+00"), (TIMETZ, "12:00+02")], "false"),
    ("<", [(TIMETZ, "10:00+00"), (TIMETZ, "11:00+00")], "true"),
    ("<", [(TIME, "10:00"), (TIME, "10:00:00.5")], "true"),
    (
        "=",
        [
            (UUID_TYPE, "{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}"),
            (UNKNOWN, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        ],
        "true",
    ),
    ("<", [(BYTEA, "\\x01"), (BYTEA, "\\x0100")], "true"),
    ("<>", [(BYTEA, "\\x01"), (BYTEA, "\\x01")], "false"),
    ("<", [(INTERVAL, "1 day"), (UNKNOWN, "2 days")], "true"),
    (
        "=",
        [(DATE, "2020-01-01"), (TIME, "10:00")],
        "error 42883: operator does not exist: date = time without time zone",
    ),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), COMPARED)
def test_comparison(name: str, arguments: list[Argument], expected: str | None) -> None:
    assert called(name, *arguments) == expected


def test_enums_compare_by_position() -> None:
    assert called("<", (MOOD, "sad"), (MOOD, "happy")) == "true"
    assert called("<", (MOOD, "sad"), (UNKNOWN, "ok")) == "true"
    assert called("=", (MOOD, "ok"), (UNKNOWN, "nothing")) == (
        'error 22P02: invalid input value for enum mood: "nothing"'
    )
    other = enum_type("size", "small", "large")
    assert called("=", (MOOD, "ok"), (other, "small")) == (
        "error 42883: operator does not exist: mood = size"
    )


def test_enums_know_their_labels() -> None:
    assert called("enum_first", (MOOD, None)) == "sad"
    assert called("enum_last", (MOOD, "ok")) == "happy"
    assert called("enum_range", (MOOD, None)) == "{sad,ok,happy}"
    assert called("enum_range", (MOOD, "ok"), (MOOD, None)) == "{ok,happy}"


def test_extremes_and_sums() -> None:
    assert aggregated("min", (MOOD, ["ok", "sad", None])) == "sad"
    assert aggregated("max", (INTERVAL, ["1 mon", "29 days", "30 days"])) == "1 mon"
    assert aggregated("min", (array_of(INTEGER), ["{1,NULL}", "{1,5}"])) == "{1,5}"
    assert aggregated("max", (TIMETZ, ["12:00+02", "11:00+00"])) == "11:00:00+00"
    assert aggregated("sum", (INTERVAL, ["1 mon", "2 days", None])) == "1 mon 2 days"
    assert aggregated("avg", (INTERVAL, ["1 mon", "2 days"])) == "16 days"
    assert aggregated("avg", (INTERVAL, [None])) is None
    assert aggregated("sum", (INTERVAL, [])) is None
