"""What a call costs is known before it begins, and grows with what it is given."""

from __future__ import annotations

from typing import Any

import pytest

from qserver.errors import ProgramLimitExceeded
from qserver.functions.arrays.functions import fill
from qserver.functions.costs import (
    FREE,
    cast_cost,
    cost_of,
    fill_cost,
    json_cost,
    linear,
    list_cost,
    pad_cost,
    pattern_cost,
    repeat_cost,
    replace_cost,
)
from qserver.functions.resolve import resolve_function
from qserver.limits import STEPS_AT_ONCE_MAX, VALUE_BYTES_MAX
from qserver.sql.codegen.charges import costly_call
from qserver.values.sizes import ELEMENT_BYTES
from qserver.values.types import (
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    JSONB,
    NUMERIC,
    TEXT,
    TIMESTAMP,
    SqlType,
    array_of,
)
from tests.sampling import sampled
from tests.sql.databases import opened_sql


def test_a_plain_function_may_be_called_with_the_largest_value() -> None:
    cost = cost_of("reverse", (TEXT,), None)
    assert cost("x" * VALUE_BYTES_MAX) < STEPS_AT_ONCE_MAX
    assert cost("x") == 0


def test_the_types_of_arguments_decide_where_a_function_says_nothing() -> None:
    assert cost_of("f", (JSONB, JSONB), None) is json_cost
    assert cost_of("f", (array_of(INTEGER),), None) is linear(40)
    assert cost_of("f", (NUMERIC,), None) is linear(100)
    assert cost_of("f", (NUMERIC,), FREE) is FREE


def test_a_result_that_is_longer_than_its_arguments_counts() -> None:
    assert repeat_cost("x", 60_000_000) == 60_000
    assert pad_cost("x", 60_000_000) > STEPS_AT_ONCE_MAX
    assert replace_cost("x" * 10_000, "x", "y" * 10_000) > STEPS_AT_ONCE_MAX
    assert fill_cost(1, (4000, 4000)) > STEPS_AT_ONCE_MAX
    assert repeat_cost(None, 1) == repeat_cost("x", -5) == 0


def test_a_pattern_costs_its_length_times_that_of_the_text_only_with_both_signs() -> None:
    assert pattern_cost("x" * 200_000, "%" + "_" * 20_000) > STEPS_AT_ONCE_MAX
    assert pattern_cost("x" * 1_000_000, "%abc%") < STEPS_AT_ONCE_MAX


def test_casts_between_texts_are_free_and_those_that_read_are_not() -> None:
    assert cast_cost(TEXT, TEXT) is FREE
    assert cast_cost(TEXT, JSONB) is json_cost
    assert cast_cost(TEXT, DATE)("x" * 1_000_000) == 20_000
    assert cast_cost(TEXT, BYTEA)("\\" * 1_000_000) > STEPS_AT_ONCE_MAX


@pytest.mark.parametrize(
    ("name", "types", "given"),
    [
        ("timezone", (TEXT, TIMESTAMP), ("ä" * 8_000_000, None)),
        ("encode", (BYTEA, TEXT), (b"a", "ä" * 8_000_000)),
        ("decode", (TEXT, TEXT), ("a", "ä" * 8_000_000)),
    ],
)
def test_the_name_of_a_zone_or_format_costs_its_length(
    name: str, types: tuple[SqlType, ...], given: tuple[Any, ...]
) -> None:
    cost = costly_call(resolve_function(name, types).function).cost
    assert cost(*given) > STEPS_AT_ONCE_MAX


@pytest.mark.long
@pytest.mark.parametrize(
    "shown",
    sampled(
        (
            "array_agg({})::text",
            "array_to_string(array_agg({}), ',')",
            "array_to_json(array_agg({}))::text",
            "to_jsonb(array_agg({}))::text",
        ),
        2,
    ),
)
async def test_a_hundred_thousand_doubles_are_printed(shown: str) -> None:
    rows = "FROM generate_series(1, 100000) AS x"
    async with opened_sql() as database:
        for value, length in (("x::float8", 500_000), ("(x / 7.0)::float8", 1_500_000)):
            result = await database.execute(f"SELECT length({shown.format(value)}) {rows}")
            assert result.rows[0][0] > length
        for odd in ("1e300::float8 * x", "x::real"):  # these take longer
            with pytest.raises(ProgramLimitExceeded, match="takes too long"):
                await database.execute(f"SELECT length({shown.format(odd)}) {rows}")


def test_the_parts_of_an_array_cost_more_to_print_than_numbers() -> None:
    cost = cast_cost(array_of(DOUBLE), TEXT)
    assert cost(((1.5,),) * 10_000) > 2 * cost((1.5,) * 20_000)


async def test_a_value_has_a_largest_size_whichever_function_makes_it() -> None:
    most = VALUE_BYTES_MAX
    async with opened_sql() as database:
        for sql in (
            f"SELECT length(repeat('x', {most}))",
            f"SELECT length(repeat('x', {most - 1}) || 'y')",
        ):
            assert (await database.execute(sql)).rows == [(most,)]
        for sql in (
            f"SELECT length(repeat('x', {most + 1}))",
            f"SELECT length(repeat('x', {most}) || 'y')",
            f"SELECT length(concat(repeat('x', {most}), 1))",
            f"SELECT length(string_agg(repeat('x', {most // 2}), ',')) FROM generate_series(1, 2)",
        ):
            with pytest.raises(ProgramLimitExceeded, match="value is too large") as caught:
                await database.execute(sql)
            assert f"the limit is {most}" in (caught.value.detail or "")
            assert caught.value.hint == "Cut it into parts, one per row."


async def test_a_call_that_would_take_too_long_is_refused_before_it_begins() -> None:
    async with opened_sql() as database:
        with pytest.raises(ProgramLimitExceeded, match="initcap of values of this size") as caught:
            await database.execute("SELECT initcap(repeat('x', 1000000))")
    assert str(STEPS_AT_ONCE_MAX) in (caught.value.detail or "")


@pytest.mark.long
async def test_a_row_cannot_grow_beyond_the_largest_size() -> None:
    """Columns that stay what they were count, whatever writes the row."""
    value = "x" * 16_000_000
    four = ", ".join(["repeat('x', 16000000)"] * 4)
    grow = "UPDATE wide SET e = "
    merge = "MERGE INTO wide USING (VALUES (1)) AS v (id) ON wide.id = v.id WHEN MATCHED THEN "
    conflict = "INSERT INTO wide (id) VALUES (1) ON CONFLICT (id) DO "
    async with opened_sql() as database:
        await database.execute(
            "CREATE TABLE wide (id INT PRIMARY KEY, a TEXT, b TEXT, c TEXT, d TEXT, e TEXT, n INT)"
        )
        await database.execute(f"INSERT INTO wide VALUES (1, {four})")
        with pytest.raises(ProgramLimitExceeded, match="row is too big: size 80000000"):
            await database.execute(f"INSERT INTO wide VALUES (2, {four}, $1)", [value])
        for sql, given in (
            (f"{grow}repeat('x', 16000000)", []),
            (f"{grow}$1", [value]),
            (f"{conflict}UPDATE SET e = $1", [value]),
            (f"{conflict}UPDATE SET e = wide.a", []),
            (f"{merge}UPDATE SET e = a", []),
        ):
            with pytest.raises(ProgramLimitExceeded, match="row is too big: size 80000000"):
                await database.execute(sql, given)
        await database.execute("UPDATE wide SET n = 1, e = 'short'")
        await database.execute("UPDATE wide SET a = NULL, e = $1", [value])


async def test_a_row_has_a_largest_size() -> None:
    wide = ", ".join(["repeat('x', 15000000)"] * 7)
    columns = ", ".join(f"c{at} TEXT" for at in range(7))
    async with opened_sql() as database:
        await database.execute(f"CREATE TABLE wide ({columns})")
        with pytest.raises(ProgramLimitExceeded, match="row is too big: size 105000000"):
            await database.execute(f"INSERT INTO wide SELECT {wide}")
        given = ["x" * 14_000_000]
        with pytest.raises(ProgramLimitExceeded, match="row is too big: size 98000000"):
            await database.execute("INSERT INTO wide VALUES ($1, $1, $1, $1, $1, $1, $1)", given)
        await database.execute("INSERT INTO wide VALUES ($1)", given)
        with pytest.raises(ProgramLimitExceeded, match="row is too big"):
            await database.execute("UPDATE wide SET c1=c0, c2=c0, c3=c0, c4=c0, c5=c0, c6=c0")


def test_a_cost_is_computed_without_a_look_at_every_element() -> None:
    calls = [0]

    class Counted(int):
        def __le__(self, other: object) -> bool:
            calls[0] += 1
            return NotImplemented

        def __rmul__(self, other: object) -> int:
            calls[0] += 1
            return 1

    assert fill_cost(1, tuple([Counted(7)] * 100_000)) == 0
    assert calls[0] == 0


def test_a_long_text_for_null_costs_as_much_as_a_long_separator() -> None:
    cost, array, long = list_cost(array_of(NUMERIC)), (None,) * 100, "x" * 4_000_000
    assert cost(array, ",", long) > STEPS_AT_ONCE_MAX
    assert cost(array, ",", long) == cost(array, long, ",") > 100 * cost(array, ",", ",")


def test_a_filled_array_costs_its_parts_and_is_refused_before_it_is_too_large() -> None:
    """Parts of a dimension are one part, so that only their size is work."""
    largest = VALUE_BYTES_MAX // ELEMENT_BYTES
    assert fill_cost(1, (largest,)) <= STEPS_AT_ONCE_MAX < fill_cost(1, (largest, 1))
    assert fill_cost(1, (1, largest - 1)) <= STEPS_AT_ONCE_MAX < fill_cost(1, (largest // 2, 2))
    assert fill_cost("x" * 1000, (largest // 50,)) > STEPS_AT_ONCE_MAX
    filled = fill(1, (3, 2, 2))
    assert filled == (((1, 1), (1, 1)),) * 3
    assert len({id(part) for whole in filled for part in whole}) == 1
