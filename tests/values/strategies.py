"""Values of every SQL type, as they are stored, with the awkward ones made likely."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from qserver.values.arrays import shaped
from qserver.values.floats import round_to_real
from qserver.values.interval import Interval
from qserver.values.jsonb import jsonb_of
from qserver.values.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSON,
    JSONB,
    NUMERIC,
    REAL,
    SMALLINT,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMETZ,
    UUID_TYPE,
    VARCHAR,
    SqlType,
    array_of,
    char,
    interval,
    numeric,
    varchar,
    with_second_digits,
)
from tests.values.making import admit, enum_type

MOOD = enum_type("mood", "sad", "ok", "happy")

ALL_TYPES = (
    BOOLEAN,
    SMALLINT,
    INTEGER,
    BIGINT,
    REAL,
    DOUBLE,
    NUMERIC,
    numeric(10, 2),
    numeric(3, -2),
    TEXT,
    VARCHAR,
    varchar(5),
    char(5),
    DATE,
    TIMESTAMP,
    TIMESTAMPTZ,
    with_second_digits(TIMESTAMP, 2),
    TIME,
    TIMETZ,
    INTERVAL,
    interval("day to second", 3),
    UUID_TYPE,
    BYTEA,
    JSON,
    JSONB,
    MOOD,
    array_of(INTEGER),
    array_of(NUMERIC),
    array_of(DOUBLE),
    array_of(TEXT),
    array_of(JSONB),
    array_of(MOOD),
)

finite_decimals = st.one_of(
    st.sampled_from([Decimal(text) for text in ("0", "0.00", "1", "1.0", "1.00", "100", "-1.50")]),
    st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9)),
    st.decimals(-(10**40), 10**40, allow_nan=False, allow_infinity=False),
)
decimals = st.one_of(
    finite_decimals, st.sampled_from([Decimal(text) for text in ("NaN", "Infinity", "-Infinity")])
)
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
short_texts = st.text("ab ä\U0001f600", max_size=5)
doubles = st.one_of(st.floats(), st.sampled_from([0.0, -0.0, 1.0, 1e22, 2.0**53, 5e-324]))
reals = st.floats(width=32).map(round_to_real)

small_intervals = st.builds(
    Interval, st.integers(-14, 14), st.integers(-40, 40), st.integers(-(10**11), 10**11)
)
intervals = st.one_of(
    small_intervals,
    st.builds(
        Interval,
        st.integers(-(2**31), 2**31 - 1),
        st.integers(-(2**31), 2**31 - 1),
        st.integers(-(2**63) + 1, 2**63 - 1),
    ),
)
offsets = st.integers(-900, 900).map(lambda minutes: timezone(timedelta(minutes=minutes)))
times_with_zone = st.builds(lambda moment, zone: moment.replace(tzinfo=zone), st.times(), offsets)
structures = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.sampled_from([Decimal(text) for text in ("1.0", "1.00", "-0.5", "100", "1E-9")]),
        texts,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)
jsonbs = structures.map(jsonb_of)


def arrays(elements: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Arrays of up to two dimensions, with NULLs."""
    sizes = st.one_of(
        st.just((0,)), st.tuples(st.integers(1, 3)), st.tuples(st.integers(1, 2), st.integers(1, 2))
    )

    def filled(shape: tuple[int, ...]) -> st.SearchStrategy[Any]:
        count = shape[0] * (shape[1] if len(shape) == 2 else 1)
        flat = st.lists(st.one_of(st.none(), elements), min_size=count, max_size=count)
        return flat.map(lambda values: shaped(tuple(values), shape))

    return sizes.flatmap(filled)


RAW: dict[SqlType, st.SearchStrategy[Any]] = {
    BOOLEAN: st.booleans(),
    SMALLINT: st.integers(-(2**15), 2**15 - 1),
    INTEGER: st.integers(-(2**31), 2**31 - 1),
    BIGINT: st.integers(-(2**63), 2**63 - 1),
    REAL: reals,
    DOUBLE: doubles,
    NUMERIC: decimals,
    numeric(10, 2): st.decimals(-99999999, 99999999, allow_nan=False, allow_infinity=False),
    numeric(3, -2): st.integers(-99949, 99949),
    TEXT: texts,
    VARCHAR: texts,
    varchar(5): short_texts,
    char(5): short_texts,
    DATE: st.dates(),
    TIMESTAMP: st.datetimes(),
    TIMESTAMPTZ: st.datetimes(timezones=st.just(UTC)),
    with_second_digits(TIMESTAMP, 2): st.datetimes(max_value=datetime(9999, 1, 1)),
    TIME: st.times(),
    TIMETZ: times_with_zone,
    INTERVAL: intervals,
    interval("day to second", 3): small_intervals,
    UUID_TYPE: st.uuids(),
    BYTEA: st.binary(max_size=5),
    JSON: jsonbs.map(str),
    JSONB: jsonbs,
    MOOD: st.sampled_from(["sad", "ok", "happy"]),
    array_of(INTEGER): arrays(st.integers(-(2**31), 2**31 - 1)),
    array_of(NUMERIC): arrays(decimals),
    array_of(DOUBLE): arrays(doubles),
    array_of(TEXT): arrays(texts),
    array_of(JSONB): arrays(jsonbs),
    array_of(MOOD): arrays(st.sampled_from(["sad", "ok", "happy"])),
}


def stored(sql_type: SqlType) -> st.SearchStrategy[Any]:
    """Values as a column of the type stores them."""
    return RAW[sql_type].map(lambda value: admit(sql_type, value))


types = st.sampled_from(ALL_TYPES)
typed_values = types.flatmap(lambda sql_type: st.tuples(st.just(sql_type), stored(sql_type)))
any_value = st.one_of(st.none(), typed_values.map(lambda pair: pair[1]))

SOME_DATE = date(2024, 2, 29)
SOME_TIMESTAMP = datetime(2024, 2, 29, 23, 59, 59, 500_000)
SOME_TIMESTAMPTZ = SOME_TIMESTAMP.replace(tzinfo=UTC)
