"""Common aggregates: count, sum, avg, min, max, bool_and, string_agg ….

    sum     smallint, integer → bigint; bigint, numeric → numeric; real → real; double → double
    avg     integers, numeric → numeric; real, double → double

Steps run once per row, so they are plain statements on local state, with a call only where Python's
operators differ from PostgreSQL's. Work that is needed once, such as range checks of integer sums,
is in `finish`.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from math import isfinite, isinf, nan
from typing import Final, TypeVar

from qserver.functions.comparisons import FLOAT_TEMPLATES, NUMERIC_TEMPLATES
from qserver.functions.costs import refuse_size
from qserver.functions.numbers import float_math, numeric_math
from qserver.functions.numbers.integer_math import fitting
from qserver.functions.registry import Aggregate
from qserver.limits import TEXT_RESULT_LENGTH_MAX
from qserver.values.types import (
    ANY,
    ANYELEMENT,
    ANYENUM,
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    NUMERIC,
    OID,
    REAL,
    SMALLINT,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMETZ,
    Kind,
    SqlType,
)

Parts = TypeVar("Parts", list[str], list[bytes])

_LARGEST: Final = repr(float_math.LARGEST)


# --- count ---------------------------------------------------------------------------------------


def _count(parameters: tuple[SqlType, ...]) -> Aggregate:
    return Aggregate(
        "count", parameters, BIGINT, ("0",), "{s0} += 1", "{s0}", gives_null=False, subtracts=True
    )


# --- sum -----------------------------------------------------------------------------------------


def _sums() -> Iterator[Aggregate]:
    first_or = "{s0} = {0} if {s0} is None else "
    fit = fitting(BIGINT)
    for each in (SMALLINT, INTEGER):
        yield Aggregate(
            "sum",
            (each,),
            BIGINT,
            ("None",),
            first_or + "{s0} + {0}",
            "(None if {s0} is None else fit_bigint({s0}))",
            {"fit_bigint": fit},
            subtracts=True,
        )
    yield Aggregate(
        "sum",
        (BIGINT,),
        NUMERIC,
        ("None",),
        first_or + "{s0} + {0}",
        "(None if {s0} is None else Decimal({s0}))",
        {"Decimal": Decimal},
        subtracts=True,
    )
    yield Aggregate(
        "sum",
        (NUMERIC,),
        NUMERIC,
        ("None",),
        first_or + "exact_add({s0}, {0})",
        "{s0}",
        {"exact_add": numeric_math.exact_add},
        subtracts=True,
    )
    yield Aggregate(
        "sum",
        (DOUBLE,),
        DOUBLE,
        ("None",),
        first_or
        + f"({{v}} if -{_LARGEST} <= ({{v}} := {{s0}} + {{0}}) <= {_LARGEST}"
        + " else checked_sum({v}, {s0}, {0}))",
        "{s0}",
        {"checked_sum": float_math.checked_sum},
        ordered=True,
    )
    yield Aggregate(
        "sum",
        (REAL,),
        REAL,
        ("None",),
        first_or + "add_real({s0}, {0})",
        "{s0}",
        {"add_real": _add_real},
        ordered=True,
    )


def _add_real(left: float, right: float) -> float:
    return float_math.real("+", left, right)


# --- avg -----------------------------------------------------------------------------------------


def _averages() -> Iterator[Aggregate]:
    for each in (SMALLINT, INTEGER, BIGINT):
        yield Aggregate(
            "avg",
            (each,),
            NUMERIC,
            ("0", "0"),
            "{s0} += {0}; {s1} += 1",
            "(numeric_average({s0}, {s1}) if {s1} else None)",
            {"numeric_average": average},
            subtracts=True,
        )
    yield Aggregate(
        "avg",
        (NUMERIC,),
        NUMERIC,
        ("numeric_zero", "0"),
        "{s0} = exact_add({s0}, {0}); {s1} += 1",
        "(numeric_average({s0}, {s1}) if {s1} else None)",
        {
            "numeric_average": average,
            "exact_add": numeric_math.exact_add,
            "numeric_zero": numeric_math.ZERO,
        },
        subtracts=True,
    )
    for each in (REAL, DOUBLE):
        yield Aggregate(
            "avg",
            (each,),
            DOUBLE,
            ("0.0", "0", "0.0"),
            f"{{s2}} = ({{s2}} if -{AVERAGED} <= ({{v}} := {{s0}} + {{0}}) <= {AVERAGED}"
            f" and -{AVERAGED} <= {{0}} <= {AVERAGED}"
            " else deviation({v}, {s0}, {0}, {s1}, {s2})); {s0} = {v}; {s1} += 1",
            "({s0} / {s1} if {s1} else None)",
            {"deviation": _deviation},
            ordered=True,
        )


AVERAGED: Final = 1e140
"""Values and sums of avg up to here cannot make the sum of squares of deviations overflow."""


def _deviation(total: float, before: float, value: float, count: int, squares: float) -> float:
    """Add a value to the sum of squares of deviations, as PostgreSQL does for avg, too.

    An average that could be told is refused if this sum overflows. Smaller values, which leave it
    out, add too little to matter.
    """
    if not count:
        return squares if isfinite(value) else nan
    distance = value * (count + 1) - total
    squares += distance * distance / ((count + 1) * count)
    if isinf(total) or isinf(squares):
        if not isinf(before) and not isinf(value):
            float_math.overflow()
        return nan
    return squares


def average(total: int | Decimal, count: int) -> Decimal:
    """Divide a sum of exact numbers, with the digits of NUMERIC division."""
    return numeric_math.divide(Decimal(total), Decimal(count))


# --- min and max ---------------------------------------------------------------------------------

# Of equal values the last wins: 1.00 after 1.0, as in PostgreSQL.
_FLOAT_BETTER: Final = {"min": FLOAT_TEMPLATES["<="], "max": FLOAT_TEMPLATES[">="]}
_NUMERIC_BETTER: Final = {"min": NUMERIC_TEMPLATES["<="], "max": NUMERIC_TEMPLATES[">="]}
_NATIVE_BETTER: Final = {"min": "{0} < {1}", "max": "{0} > {1}"}


def extremes(sql_type: SqlType) -> tuple[Aggregate, Aggregate]:
    """Return min and max of a type whose values compare natively, NaN excepted."""
    templates = _NATIVE_BETTER
    if sql_type in (REAL, DOUBLE):
        templates = _FLOAT_BETTER
    elif sql_type == NUMERIC:
        templates = _NUMERIC_BETTER
    return _extreme("min", sql_type, templates), _extreme("max", sql_type, templates)


def _extreme(name: str, sql_type: SqlType, templates: dict[str, str]) -> Aggregate:
    better = templates[name].replace("{1}", "{s0}")
    step = f"if {{s0}} is None or {better}: {{s0}} = {{0}}"
    return Aggregate(name, (sql_type,), sql_type, ("None",), step, "{s0}")


def _extremes() -> Iterator[Aggregate]:
    for each in (
        *(SMALLINT, INTEGER, BIGINT, NUMERIC, REAL, DOUBLE),
        *(TEXT, SqlType(Kind.CHAR), DATE, TIMESTAMP, TIMESTAMPTZ, TIME, TIMETZ, INTERVAL, ANYENUM),
        *(OID, SqlType(Kind.TID)),
    ):
        yield from extremes(each)


def _any_value() -> Aggregate:
    """The first that is not NULL."""
    step = "if {s0} is None: {s0} = {0}"
    return Aggregate("any_value", (ANYELEMENT,), ANYELEMENT, ("None",), step, "{s0}", ordered=True)


# --- truth, bits, texts --------------------------------------------------------------------------


def _truths() -> Iterator[Aggregate]:
    for name, end in (("bool_and", "False"), ("every", "False"), ("bool_or", "True")):
        step = f"if {{s0}} is not {end}: {{s0}} = {{0}}"
        yield Aggregate(name, (BOOLEAN,), BOOLEAN, ("None",), step, "{s0}")


def _bits() -> Iterator[Aggregate]:
    for name, sign in (("bit_and", "&"), ("bit_or", "|"), ("bit_xor", "^")):
        for each in (SMALLINT, INTEGER, BIGINT):
            step = f"{{s0}} = {{0}} if {{s0}} is None else {{s0}} {sign} {{0}}"
            yield Aggregate(name, (each,), each, ("None",), step, "{s0}")


def _string_aggregate() -> Aggregate:
    """The delimiter of the first text is not used; NULL as a delimiter is an empty one."""
    return Aggregate(
        "string_agg",
        (TEXT, TEXT),
        TEXT,
        ("None",),
        "if {0} is not None: {s0} = append_text({s0}, {0}, {1})",
        "(None if {s0} is None else ''.join(joinable({s0})))",
        {"append_text": _append_text, "joinable": joinable},
        strict=False,
        ordered=True,
        keeps=True,
    )


def _append_text(state: list[str] | None, text: str, delimiter: str | None) -> list[str]:
    if state is None:
        return [text]
    state += (delimiter or "", text)
    return state


def joinable(parts: Parts) -> Parts:
    """Return the parts, unless the result is too long: a join would block other tasks."""
    length = sum(map(len, parts))
    if length > TEXT_RESULT_LENGTH_MAX:
        raise refuse_size(length, TEXT_RESULT_LENGTH_MAX)
    return parts


AGGREGATES: Final = (
    _count(()),
    _count((ANY,)),
    *_sums(),
    *_averages(),
    *_extremes(),
    _any_value(),
    *_truths(),
    *_bits(),
    _string_aggregate(),
)
