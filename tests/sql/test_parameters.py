"""Parameters: what JSON can say becomes a value of the type that is wanted, or an error."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from qserver.errors import (
    InvalidTextRepresentation,
    NumericValueOutOfRange,
    ProtocolViolation,
    QserverError,
    StringDataRightTruncation,
)
from qserver.sql.parameters import Given, converter, parameter_list
from qserver.values.jsonb import Jsonb
from qserver.values.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    JSON,
    JSONB,
    NUMERIC,
    SMALLINT,
    TEXT,
    SqlType,
    array_of,
    numeric,
    varchar,
)


@pytest.mark.parametrize(
    ("sql_type", "given", "expected"),
    [
        (INTEGER, 5, 5),
        (INTEGER, "5", 5),
        (BIGINT, 2**40, 2**40),
        (BOOLEAN, True, True),
        (BOOLEAN, "yes", True),
        (DOUBLE, 1, 1.0),
        (DOUBLE, "1.5", 1.5),
        (NUMERIC, 0.1, Decimal("0.1")),
        (NUMERIC, "0.10", Decimal("0.10")),
        (numeric(4, 1), 12, Decimal("12.0")),
        (TEXT, "it's", "it's"),
        (TEXT, 5, "5"),
        (TEXT, True, "true"),
        (DATE, "2024-02-29", date(2024, 2, 29)),
        (DATE, date(2024, 2, 29), date(2024, 2, 29)),
        (array_of(INTEGER), [1, None, "3"], (1, None, 3)),
        (array_of(INTEGER), [[1], [2]], ((1,), (2,))),
        (array_of(INTEGER), "{1,2}", (1, 2)),
        (JSON, {"a": [1]}, '{"a":[1]}'),
        (JSON, '{"a":1}', '{"a":1}'),
    ],
)
def test_what_fits_becomes_a_value_of_the_type(
    sql_type: SqlType, given: Any, expected: Any
) -> None:
    found = converter(sql_type)(given)
    assert (found, type(found)) == (expected, type(expected))


def test_json_values_become_jsonb() -> None:
    assert isinstance(converter(JSONB)({"a": 1}), Jsonb)
    assert converter(JSONB)({"a": 1}) == converter(JSONB)('{"a" : 1}')


@pytest.mark.parametrize(
    ("sql_type", "given", "error"),
    [
        (INTEGER, "five", InvalidTextRepresentation),
        (INTEGER, 1.5, InvalidTextRepresentation),
        (INTEGER, True, InvalidTextRepresentation),
        (SMALLINT, 40_000, NumericValueOutOfRange),
        (BOOLEAN, 7, InvalidTextRepresentation),
        (varchar(3), "four", StringDataRightTruncation),
        (DATE, 5, QserverError),
        (array_of(INTEGER), ["x"], InvalidTextRepresentation),
        (JSONB, "{", InvalidTextRepresentation),
    ],
)
def test_what_does_not_fit_is_refused(
    sql_type: SqlType, given: Any, error: type[QserverError]
) -> None:
    with pytest.raises(error):
        converter(sql_type)(given)


def test_slots_hold_literals_by_index_and_parameters_by_name() -> None:
    numbered = parameter_list({1: INTEGER, 2: TEXT})
    assert numbered.slots([10, "x"], [7, None]) == {0: 10, 1: "x", "$1": 7, "$2": None}
    named = parameter_list({"id": INTEGER})
    assert named.slots([], {"id": "7"}) == {":id": 7}


@pytest.mark.parametrize(
    ("types", "given", "message"),
    [
        ({1: TEXT}, None, "the statement has 1 parameter, but 0 were given"),
        ({1: TEXT, 2: TEXT}, ["a"], "the statement has 2 parameters, but 1 was given"),
        ({1: TEXT}, ["a", "b"], "the statement has 1 parameter, but 2 were given"),
        ({1: TEXT}, {"a": 1}, "the statement's parameters have numbers, but names were given"),
        ({"a": TEXT}, {}, "parameter :a was not given"),
        ({"a": TEXT}, {"a": 1, "b": 2}, "the statement has no parameter :b"),
    ],
)
def test_a_wrong_count_is_refused_with_a_clear_word(
    types: dict[int | str, SqlType], given: Given, message: str
) -> None:
    with pytest.raises(ProtocolViolation) as caught:
        parameter_list(types).slots([], given)
    assert str(caught.value) == message


def test_numbers_and_names_do_not_mix() -> None:
    with pytest.raises(ProtocolViolation):
        parameter_list({1: TEXT, "a": TEXT})
