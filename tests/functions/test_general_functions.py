"""GREATEST and LEAST, chance, and what the execution's context knows."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.errors import InvalidParameterValue, ProgramLimitExceeded
from qserver.functions.resolve import resolve_function, resolve_table_function
from qserver.functions.text.strings import left_pad, repeat, replace
from qserver.values.types import BIGINT, DOUBLE, INTEGER, NUMERIC, TEXT, SqlType
from tests.functions.typed_calls import called, context, rows_of


def in_context(name: str, *arguments: Any, types: tuple[SqlType, ...] = ()) -> Any:
    function = resolve_function(name, types).function
    assert function.needs_context
    return function.call(context(), *arguments)


@given(st.lists(st.one_of(st.none(), st.integers(-9, 9)), min_size=1, max_size=5))
def test_greatest_and_least_skip_nulls(values: list[int | None]) -> None:
    types = (INTEGER,) * len(values)
    known = [value for value in values if value is not None]
    greatest = resolve_function("greatest", types).function.call(*values)
    least = resolve_function("least", types).function.call(*values)
    assert greatest == (max(known) if known else None)
    assert least == (min(known) if known else None)


def test_chance_comes_from_the_context_and_is_never_folded() -> None:
    assert in_context("random") == in_context("random")  # each context begins with the same seed
    assert 0.0 <= in_context("random") < 1.0
    for name in ("random", "gen_random_uuid"):
        assert resolve_function(name, ()).function.volatile


def test_a_random_uuid_is_of_version_4() -> None:
    text = str(in_context("gen_random_uuid"))
    assert re.fullmatch(
        r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", text
    )


def test_a_seed_makes_chance_repeat_itself() -> None:
    same = context()
    seed = resolve_function("setseed", (DOUBLE,)).function.call
    draw = resolve_function("random", ()).function.call
    seed(same, 0.5)
    first = draw(same)
    seed(same, 0.5)
    assert draw(same) == first
    with pytest.raises(InvalidParameterValue, match="out of allowed range"):
        seed(same, 2.0)


def test_the_user_is_who_the_context_says() -> None:
    assert in_context("current_user") == in_context("session_user") == "qserver"


def test_clients_see_the_version_that_they_know() -> None:
    version = called("version")
    assert version is not None and version.startswith("PostgreSQL 15")


def test_a_series_has_both_ends_and_stops_before_it_passes() -> None:
    assert rows_of("generate_series", (INTEGER, "1"), (INTEGER, "3")) == [("1",), ("2",), ("3",)]
    assert rows_of("generate_series", (INTEGER, "5"), (INTEGER, "1"), (INTEGER, "-2")) == [
        ("5",),
        ("3",),
        ("1",),
    ]
    assert rows_of("generate_series", (INTEGER, "3"), (INTEGER, "1")) == []
    assert rows_of("generate_series", (NUMERIC, "1"), (NUMERIC, "2"), (NUMERIC, "0.4")) == [
        ("1",),
        ("1.4",),
        ("1.8",),
    ]
    step = rows_of("generate_series", (INTEGER, "1"), (INTEGER, "3"), (INTEGER, "0"))
    assert step == "error 22023: step size cannot equal zero"
    numeric = rows_of("generate_series", (NUMERIC, "1"), (NUMERIC, "NaN"))
    assert numeric == "error 22023: stop value cannot be NaN"


def test_a_series_is_made_as_it_is_asked_for() -> None:
    resolved = resolve_table_function("generate_series", (BIGINT, BIGINT))
    rows = iter(resolved.function.call(1, 10**18))
    assert [next(rows), next(rows)] == [(1,), (2,)]


def test_a_text_that_would_be_too_long_is_refused_before_it_is_made() -> None:
    attempts: tuple[Callable[[], str], ...] = (
        lambda: repeat("x", 2**31 - 1),
        lambda: left_pad("x", 2**31 - 1),
        lambda: replace("x" * 10_000, "x", "y" * 10_000),
    )
    for grow in attempts:
        with pytest.raises(ProgramLimitExceeded, match="requested length too large"):
            grow()


def test_a_null_separator_gives_null_and_null_values_are_skipped() -> None:
    assert called("concat_ws", (TEXT, None), (TEXT, "a")) is None
    assert called("concat_ws", (TEXT, "-"), (TEXT, None), (TEXT, "a")) == "a"
    assert called("concat", (TEXT, None), (INTEGER, None)) == ""
