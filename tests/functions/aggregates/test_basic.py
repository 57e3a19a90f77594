"""Aggregates over columns of typed texts; the answers are PostgreSQL's."""

from __future__ import annotations

from decimal import Decimal
from random import Random
from statistics import pvariance
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.errors import NumericValueOutOfRange
from qserver.functions import all_functions
from qserver.functions.registry import Aggregate
from qserver.functions.resolve import resolve_aggregate
from qserver.values.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    NUMERIC,
    REAL,
    SMALLINT,
    TEXT,
    SqlType,
    char,
)
from tests.functions.typed_calls import aggregated

Texts = list[str | None]


@pytest.mark.parametrize(
    ("name", "sql_type", "values", "expected"),
    [
        ("count", INTEGER, ["1", None, "3"], "2"),
        ("count", INTEGER, [], "0"),
        ("sum", SMALLINT, ["32767", "32767"], "65534"),
        ("sum", INTEGER, ["1", None, "2"], "3"),
        ("sum", INTEGER, [None], None),
        ("sum", BIGINT, ["9223372036854775807", "1"], "9223372036854775808"),
        ("sum", NUMERIC, ["1.10", "2.205"], "3.305"),
        ("sum", NUMERIC, ["0." + "1" * 40, "0." + "1" * 40], "0." + "2" * 40),
        ("sum", REAL, ["0.1", "0.2"], "0.3"),
        ("sum", DOUBLE, ["0.1", "0.2"], "0.30000000000000004"),
        ("sum", DOUBLE, ["Infinity", "-Infinity"], "NaN"),
        ("avg", INTEGER, ["2", "3"], "2.5000000000000000"),
        ("avg", INTEGER, ["1", "1", "2"], "1.3333333333333333"),
        ("avg", NUMERIC, ["1.00", "2.00"], "1.5000000000000000"),
        ("avg", BIGINT, ["100000000", "100000001"], "100000000.500000000000"),
        ("avg", DOUBLE, ["1", "2"], "1.5"),
        ("avg", INTEGER, [], None),
        ("min", DOUBLE, ["NaN", "1", "-Infinity"], "-Infinity"),
        ("max", DOUBLE, ["NaN", "Infinity"], "NaN"),
        ("min", NUMERIC, ["NaN", "1.0", "1.00"], "1.00"),
        ("max", NUMERIC, ["1", "NaN", "Infinity"], "NaN"),
        ("max", TEXT, ["a", "B", "b"], "b"),
        ("max", char(3), ["a", "ab"], "ab"),
        ("min", DATE, ["2024-02-01", "2023-12-31"], "2023-12-31"),
        ("bool_and", BOOLEAN, ["t", None, "f"], "false"),
        ("bool_or", BOOLEAN, [None, "f"], "false"),
        ("every", BOOLEAN, [None], None),
        ("bit_and", INTEGER, ["7", "5"], "5"),
        ("bit_or", SMALLINT, ["1", "4"], "5"),
        ("bit_xor", BIGINT, ["7", "5"], "2"),
        ("variance", INTEGER, ["1", "2", "4"], "2.3333333333333333"),
        ("var_pop", INTEGER, ["5"], "0"),
        ("var_samp", INTEGER, ["5"], None),
        ("stddev", NUMERIC, ["1.5", "2.5"], "0.70710678118654752440"),
        ("stddev_pop", DOUBLE, ["1", "2", "3", "4"], "1.118033988749895"),
        ("var_pop", DOUBLE, ["1", "Infinity"], "NaN"),
        ("array_agg", INTEGER, ["1", None, "3"], "{1,NULL,3}"),
        ("array_agg", TEXT, [], None),
        ("mode", TEXT, ["a", "b", "b"], "b"),
    ],
)
def test_an_aggregate_gives_what_postgresql_gives(
    name: str, sql_type: SqlType, values: Texts, expected: str | None
) -> None:
    assert aggregated(name, (sql_type, values)) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("corr", "0.8760672063551377"),
        ("covar_pop", "2.3984375"),
        ("covar_samp", "3.1979166666666665"),
        ("regr_avgx", "3.375"),
        ("regr_avgy", "2.9375"),
        ("regr_count", "4"),
        ("regr_intercept", "1.3723564954682779"),
        ("regr_r2", "0.7674937500508954"),
        ("regr_slope", "0.4637462235649547"),
        ("regr_sxx", "20.6875"),
        ("regr_sxy", "9.59375"),
        ("regr_syy", "5.796875"),
    ],
)
def test_an_aggregate_of_pairs_gives_what_postgresql_gives(name: str, expected: str) -> None:
    y: Texts = ["1.5", "2", None, "4", "4.25"]
    x: Texts = ["1", "2", "9", "3.5", "7"]
    assert aggregated(name, (DOUBLE, y), (DOUBLE, x)) == expected


def test_a_regression_over_equal_values_does_not_depend_on_rounding() -> None:
    equal: Texts = ["3.141592653589793"] * 52
    others: Texts = [str(at) for at in range(52)]
    assert aggregated("regr_sxx", (DOUBLE, equal), (DOUBLE, equal)) != "0", "rounding left a rest"
    for name in ("corr", "regr_r2", "regr_slope", "regr_intercept"):
        assert aggregated(name, (DOUBLE, others), (DOUBLE, equal)) is None
    assert aggregated("corr", (DOUBLE, equal), (DOUBLE, others)) is None
    assert aggregated("regr_r2", (DOUBLE, equal), (DOUBLE, others)) == "1"


@pytest.mark.parametrize("value", ["NaN", "Infinity"])
def test_a_regression_over_equal_values_that_are_not_finite_is_not_a_number(value: str) -> None:
    assert aggregated("corr", (DOUBLE, ["1", "2"]), (DOUBLE, [value] * 2)) == "NaN"
    assert aggregated("regr_slope", (DOUBLE, ["1"]), (DOUBLE, [value])) == "NaN"


def test_texts_are_joined_by_the_delimiter_before_each_but_the_first() -> None:
    texts: Texts = ["a", None, "b", "c"]
    delimiters: Texts = [",", ";", "-", None]
    assert aggregated("string_agg", (TEXT, texts), (TEXT, delimiters)) == "a-bc"
    assert aggregated("string_agg", (TEXT, [None]), (TEXT, [","])) is None


@pytest.mark.parametrize(
    ("fraction", "between", "exact"),
    [("0", "1", "1"), ("0.5", "2.5", "2"), ("0.75", "3.25", "3"), ("1", "4", "4")],
)
def test_percentiles_are_found_in_the_sorted_values(
    fraction: str, between: str, exact: str
) -> None:
    values: Texts = ["1", "2", "3", "4"]
    fractions: Texts = [fraction] * 4
    assert aggregated("percentile_cont", (DOUBLE, fractions), (DOUBLE, values)) == between
    assert aggregated("percentile_disc", (DOUBLE, fractions), (INTEGER, values)) == exact


def test_a_fraction_outside_of_0_and_1_is_an_error() -> None:
    with pytest.raises(
        NumericValueOutOfRange, match=r"percentile value 1.5 is not between 0 and 1"
    ):
        aggregated("percentile_cont", (DOUBLE, ["1.5"]), (DOUBLE, ["1"]))


def test_a_sum_of_integers_may_not_leave_bigint() -> None:
    with pytest.raises(NumericValueOutOfRange, match="bigint out of range"):
        run(resolve_aggregate("sum", (INTEGER,)).aggregate, [(2**62,), (2**62,)])


@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=20))
def test_the_variance_of_integers_is_that_of_fractions(values: list[int]) -> None:
    aggregate = resolve_aggregate("var_pop", (INTEGER,)).aggregate
    exact = pvariance(values)
    assert float(run(aggregate, [(value,) for value in values])) == pytest.approx(exact)


@given(st.lists(st.integers(-1000, 1000), max_size=10), st.integers(0, 2**32))
def test_an_aggregate_that_is_not_ordered_does_not_depend_on_the_order(
    values: list[int], seed: int
) -> None:
    shuffled = values.copy()
    Random(seed).shuffle(shuffled)
    for name in ("count", "sum", "avg", "min", "max", "stddev", "var_pop", "bit_xor"):
        aggregate = resolve_aggregate(name, (INTEGER,)).aggregate
        assert not aggregate.ordered
        first = run(aggregate, [(value,) for value in values])
        assert first == run(aggregate, [(value,) for value in shuffled])


def test_finishing_does_not_end_an_aggregate() -> None:
    """A window asks for the result after each row, and goes on."""
    values = {INTEGER: 3, NUMERIC: Decimal("1.5"), DOUBLE: 2.5, TEXT: "a", BOOLEAN: True}
    for signatures in all_functions.AGGREGATES.values():
        for aggregate in signatures:
            if isinstance(aggregate, Aggregate) and set(aggregate.parameters) <= set(values):
                row = tuple(values[parameter] for parameter in aggregate.parameters)
                if aggregate.name.startswith("percentile"):
                    row = (0.5, *row[1:])
                once = run(aggregate, [row, row], finish_each=False)
                assert repr(run(aggregate, [row, row], finish_each=True)) == repr(once)


def run(aggregate: Aggregate, rows: list[tuple[Any, ...]], finish_each: bool = False) -> Any:
    """Rows without NULLs through the templates of an aggregate."""
    names: dict[str, Any] = dict(aggregate.names)
    slots = {f"s{at}": f"state{at}" for at in range(len(aggregate.initial))}
    for slot, initial in zip(slots.values(), aggregate.initial, strict=True):
        names[slot] = eval(initial, names)
    places = [f"x{at}" for at in range(len(aggregate.parameters))]
    step = compile(aggregate.step.format(*places, **slots, v="v", w="w"), "step", "exec")
    finish = compile(aggregate.finish.format(**slots, v="v", w="w"), "finish", "eval")
    for row in rows:
        names.update(zip(places, row, strict=True))
        exec(step, names)
        if finish_each:
            eval(finish, names)
    return eval(finish, names)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1e300", "1e300"], "1e+300"),
        (["Infinity", "1e300", "2e300"], "Infinity"),
        (["NaN", "1e300", "2e300"], "NaN"),
        (["1e153", "2e153", "-3e153"], "-1.2404714227978357e+137"),
        (["1e300", "2e300"], None),
        (["2e300", "-2e300"], None),
        (["1e300", "-1"], None),
        (["1e300", "2e300", "NaN"], None),
        (["1e154", "-1e154", "1e154", "-1e154", "-1e154"], None),
    ],
)
def test_an_average_is_refused_where_the_squares_of_deviations_overflow(
    values: Texts, expected: str | None
) -> None:
    if expected is not None:
        assert aggregated("avg", (DOUBLE, values)) == expected
        return
    with pytest.raises(NumericValueOutOfRange, match="overflow"):
        aggregated("avg", (DOUBLE, values))
