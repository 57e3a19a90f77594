"""Heavy parameters become the slots that light ones do, and short ones take few steps each."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from sys import getsizeof
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from qserver.errors import QserverError
from qserver.functions.context import Context
from qserver.limits import STATEMENT_MEMORY_BYTES_MAX
from qserver.sql.parameter_steps import (
    BYTES_HEAVY,
    PART_VALUES,
    TEXT_SHORT_LENGTH,
    VALUES_FEW,
    is_heavy,
    slots_in_steps,
)
from qserver.sql.parameters import parameter_list
from qserver.values.types import INTEGER, JSONB, NUMERIC, TEXT, SqlType, array_of
from tests.known_work import calls_of

TYPES: tuple[SqlType, ...] = (INTEGER, TEXT, NUMERIC, JSONB, array_of(INTEGER))
VALUES = (None, 1, "7", "x", 2.5, 2**70, [1, 2], {"a": 1}, "1" * 3000, True)


def in_steps(types: list[SqlType], values: list[Any]) -> Any:
    context = Context(
        datetime.now(UTC), Random(0), lambda: None, STATEMENT_MEMORY_BYTES_MAX, lambda: 1
    )
    parameters = parameter_list(dict(enumerate(types, 1)))
    steps = slots_in_steps(parameters, ["a literal"], values, context)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


@given(
    st.lists(st.tuples(st.sampled_from(TYPES), st.sampled_from(VALUES)), min_size=1, max_size=8),
    st.sampled_from((1, PART_VALUES - 1, PART_VALUES + 1)),
)
@settings(deadline=None)
def test_the_slots_do_not_depend_on_how_they_are_made(
    pairs: list[tuple[SqlType, Any]], more: int
) -> None:
    types, values = [INTEGER] * more, [5] * more
    types += [sql_type for sql_type, _ in pairs]
    values += [value for _, value in pairs]

    def at_once() -> Any:
        return parameter_list(dict(enumerate(types, 1))).slots(["a literal"], values)

    outcomes = []
    for way in (at_once, lambda: in_steps(types, values)):
        try:
            outcomes.append(way())
        except QserverError as error:
            outcomes.append((type(error), str(error)))
    assert outcomes[0] == outcomes[1]


def test_a_short_value_takes_few_calls() -> None:
    count = 20 * PART_VALUES
    types: list[SqlType] = [INTEGER] * count
    made = calls_of(lambda: parameter_list(dict(enumerate(types, 1))))
    assert (
        calls_of(lambda: in_steps(types, [7] * count)) - made < 11 * count
    )  # one by one they take 14 each


def test_values_are_heavy_by_their_size_whether_they_are_few_or_many() -> None:
    text = "\U0001f600" * (TEXT_SHORT_LENGTH - 1)
    for value in (None, True, 1.5, 2**63, -(2**63), text, text + "x", "x" * 2000, 2**20_000):
        for count in (1, VALUES_FEW, VALUES_FEW + 1, 60_000 // getsizeof(value), 5000):
            values = [value] * count
            size = getsizeof(values) + sum(map(getsizeof, values))
            assert is_heavy(values) == (size > BYTES_HEAVY), (value, count)
    assert not is_heavy([[]]) and is_heavy([["x" * BYTES_HEAVY]])
