"""A template gives what the call gives, for values of all types and for errors."""

from __future__ import annotations

from decimal import Decimal
from decimal import Overflow as DecimalOverflow
from math import isnan
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from qserver.errors import QserverError
from qserver.functions import all_functions
from qserver.functions.costs import BYTES_SMALL
from qserver.functions.registry import Function
from qserver.values.floats import round_to_real
from qserver.values.types import INTEGER_BITS, Kind, SqlType
from tests.sampling import examples

TEXTS = st.text(alphabet="aAbß %_\\.*+é0", max_size=6)
DOUBLES = st.one_of(st.floats(), st.floats(-10, 10), st.sampled_from((0.0, -0.0, 1.0, -1.0)))
NUMERICS = st.one_of(
    st.decimals(
        allow_nan=False, allow_infinity=False, places=3, min_value=-(10**6), max_value=10**6
    ),
    st.sampled_from([Decimal(text) for text in ("NaN", "Infinity", "-Infinity", "0", "1", "1.00")]),
)


def integers(kind: Kind) -> st.SearchStrategy[int]:
    half = 2 ** (INTEGER_BITS[kind] - 1)
    edges = st.sampled_from((-half, half - 1, 0, 1, -1, 2))
    return st.one_of(edges, st.integers(-half, half - 1))


VALUES: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.BOOLEAN: st.booleans(),
    Kind.SMALLINT: integers(Kind.SMALLINT),
    Kind.INTEGER: integers(Kind.INTEGER),
    Kind.BIGINT: integers(Kind.BIGINT),
    Kind.REAL: DOUBLES.map(round_to_real),
    Kind.DOUBLE: DOUBLES,
    Kind.NUMERIC: NUMERICS,
    Kind.TEXT: TEXTS,
    Kind.CHAR: TEXTS.map(str.rstrip),
    Kind.DATE: st.dates(),
    Kind.TIMESTAMP: st.datetimes(),
}


def with_templates() -> list[Function]:
    return [
        each
        for kind in ("OPERATORS", "FUNCTIONS")
        for module in all_functions.MODULES
        for each in getattr(module, kind, ())
        if isinstance(each, Function)
        and each.inline is not None
        and all(parameter.kind in VALUES for parameter in each.parameters)
    ]


def outcome(compute: Any, *arguments: Any) -> tuple[str, Any]:
    """What comes out, with NaN equal to itself and 1.0 other than 1.00."""
    try:
        result = compute(*arguments)
    except QserverError as error:
        return error.code, error.message
    except DecimalOverflow:
        return "22003", "value overflows numeric format"
    if isinstance(result, float) and isnan(result):
        return "float", "NaN"
    return type(result).__name__, repr(result)


def compiled(function: Function, template: str | None) -> Any:
    places = ", ".join(f"x{at}" for at in range(len(function.parameters)))
    assert template is not None
    body = template.format(*places.split(", "), v="v", w="w")
    return eval(f"lambda {places}: {body}", dict(function.names))


FUNCTIONS = with_templates()
NAMES = sorted({each.name for each in FUNCTIONS})
COMPILED = {id(each): compiled(each, each.inline) for each in FUNCTIONS}
LENGTHS = {id(each): compiled(each, each.length) for each in FUNCTIONS if each.length is not None}
"""Templates of the lengths of results; compiled code takes the template only for short ones."""


def test_most_operators_have_a_template() -> None:
    assert len(FUNCTIONS) > 200


@pytest.mark.parametrize("name", NAMES)
def test_a_template_agrees_with_the_call(name: str) -> None:
    functions = [each for each in FUNCTIONS if each.name == name]

    @settings(max_examples=examples(12 + 6 * len(functions)), deadline=None, database=None)
    @given(st.data())
    def agrees(data: st.DataObject) -> None:
        function = data.draw(st.sampled_from(functions))
        arguments = [data.draw(VALUES[parameter.kind]) for parameter in function.parameters]
        length = LENGTHS.get(id(function))
        short = ("bool", "True")
        if length is not None:
            short = outcome(lambda *given: length(*given) < BYTES_SMALL, *arguments)
            assume(short != ("bool", "False"))
        expected = outcome(function.call, *arguments)
        assert short in (("bool", "True"), expected)
        assert outcome(COMPILED[id(function)], *arguments) == expected
        if function.prepare is not None:
            prepare = function.prepare
            assert outcome(lambda: prepare(arguments[-1])(*arguments[:-1])) == expected

    agrees()


@given(st.data())
@settings(max_examples=50, deadline=None, database=None)
def test_comparisons_of_one_type_are_an_order(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(VALUES, key=lambda each: each.value)))
    left, right = data.draw(VALUES[kind]), data.draw(VALUES[kind])
    call = {
        each.name: each.call
        for each in all_functions.OPERATORS["<"]
        + all_functions.OPERATORS["="]
        + all_functions.OPERATORS[">"]
        + all_functions.OPERATORS["<="]
        + all_functions.OPERATORS[">="]
        + all_functions.OPERATORS["<>"]
        if isinstance(each, Function) and each.parameters == (SqlType(kind), SqlType(kind))
    }
    assert call["<"](left, right) + call["="](left, right) + call[">"](left, right) == 1
    assert call["<="](left, right) == (not call[">"](left, right))
    assert call[">="](left, right) == (not call["<"](left, right))
    assert call["<>"](left, right) == (not call["="](left, right))
