"""Rows as JSON: objects, arrays and lines say the same; no column is lost."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from qserver.values.types import BIGINT, INTEGER, NUMERIC, TEXT, SqlType
from qserver.web.statements.answers import WRITERS, rows_in_parts, rows_json, sliced
from qserver.web.statements.rows import ROWS_ENCODED_AT_ONCE, RowEncoder, RowEncoders, unique_names
from tests.values.strategies import stored, types

few_names = st.lists(st.sampled_from(["a", "a_2", "a_3", "b", "", "a_2_2"]), max_size=8)
odd_names = st.lists(st.text(max_size=4), min_size=1, max_size=4)


@st.composite
def results(draw: st.DrawFn) -> tuple[tuple[str, ...], tuple[SqlType, ...], list[Any]]:
    columns = tuple(draw(st.one_of(few_names.filter(bool), odd_names)))
    kinds = tuple(draw(types) for _ in columns)
    row = st.tuples(*[st.one_of(st.none(), stored(each)) for each in kinds])
    return columns, kinds, draw(st.lists(row, max_size=4))


@given(few_names)
def test_names_become_unique_and_the_first_of_each_keeps_its_own(names: list[str]) -> None:
    found = unique_names(names)
    assert len(set(found)) == len(found) == len(names)
    for at, (name, new) in enumerate(zip(names, found, strict=True)):
        if name not in names[:at]:
            assert new == name
        else:
            assert new.startswith(f"{name}_") and new.removeprefix(f"{name}_").isdigit()


@given(results())
def test_objects_arrays_and_lines_say_the_same(
    result: tuple[tuple[str, ...], tuple[SqlType, ...], list[Any]],
) -> None:
    columns, kinds, rows = result
    encoder = RowEncoder(columns, kinds)
    names = json.loads(encoder.columns_json)
    assert names == list(unique_names(columns))
    assert json.loads(encoder.types_json) == [str(each) for each in kinds]
    arrays = json.loads(encoder.arrays(rows))
    assert len(arrays) == len(rows)
    objects = json.loads(encoder.objects(rows))
    assert objects == [dict(zip(names, each, strict=True)) for each in arrays]
    assert [list(each) for each in objects] == [names] * len(rows), "in the order of the columns"
    lines = encoder.lines(rows)
    assert lines.count(b"\n") == len(rows) and (not rows or lines.endswith(b"\n"))
    assert encoder.objects(rows) == b"[%b]" % b",".join(lines.splitlines())


async def test_a_long_result_is_written_in_slices_that_do_not_show() -> None:
    encoder = RowEncoder(("n", "d"), (INTEGER, NUMERIC))
    for count in (0, 1, ROWS_ENCODED_AT_ONCE, ROWS_ENCODED_AT_ONCE + 1, 3 * ROWS_ENCODED_AT_ONCE):
        rows = [(number, None) for number in range(count)]
        for write in WRITERS.values():
            ((_, slices),), _ = await sliced([(encoder, rows)])
            assert [row for part in slices for row in part] == rows
            assert await rows_json(encoder, slices, write) == write(encoder, rows)
            assert b"".join(rows_in_parts(encoder, slices, write)) == write(encoder, rows)


def test_encoders_are_kept_for_the_tuples_of_a_plan_and_never_mixed_up() -> None:
    encoders = RowEncoders()
    columns, kinds = ("a",), (TEXT,)
    first = encoders.find(columns, kinds)
    assert encoders.find(columns, kinds) is first
    other = encoders.find(columns, (BIGINT,))
    assert other is not first and other.types == (BIGINT,)
    for number in range(5000):  # more than are kept
        found = encoders.find((f"c{number}",), kinds)
        assert found.columns == (f"c{number}",)
