"""Tables line up, values read as psql prints them, and every layout keeps every value."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.cli.cells import harmless, writer_of
from qserver.cli.layouts import LAYOUTS, Aligned, Expanded, Layout, Printing, table, width

cells = st.none() | st.integers(-(10**9), 10**9) | st.text(max_size=12)
tables = st.integers(1, 4).flatmap(
    lambda count: st.tuples(
        st.lists(st.text(min_size=1, max_size=8), min_size=count, max_size=count, unique=True),
        st.lists(st.tuples(*[cells] * count), max_size=8),
    )
)


def printed(
    layout_class: Any, columns: list[str], types: list[str], *batches: Any, null: str = "NULL"
) -> str:
    text: list[str] = []
    layout: Layout = layout_class(text.append, Printing(null=null))
    layout.begin(columns, types)
    for batch in batches:
        layout.rows(batch)
    layout.end(sum(map(len, batches)))
    return "".join(text)


@pytest.mark.long
@given(tables)
def test_bars_stand_under_each_other(drawn: tuple[list[str], list[tuple[Any, ...]]]) -> None:
    columns, rows = drawn
    types = ["text"] * len(columns)
    lines = table(columns, types, rows).split("\n")[:-1]
    rule = next(line for line in lines if line.startswith("-"))
    edges = [len(part) for part in rule.split("+")]
    for line in lines:
        assert width(line) <= len(rule)
        position = 0
        for edge in edges[:-1]:
            position += edge
            before = _first_columns(line, position)
            assert line[len(before)] in "|+", line
            position += 1


def _first_columns(line: str, columns: int) -> str:
    """The beginning of a line that takes so many columns of a terminal."""
    for length in range(len(line) + 1):
        if width(line[:length]) == columns and (
            length == len(line) or width(line[: length + 1]) > columns
        ):
            return line[:length]
    raise AssertionError(f"no place in {line!r} is {columns} columns from its start")


def test_it_looks_like_psql() -> None:
    rows = [(1, "Ada", True), (20, None, False), (None, "two\nlines", None)]
    text = printed(Aligned, ["id", "name", "ok"], ["integer", "text", "boolean"], rows)
    assert text == (
        "  id  | name  |  ok  \n"
        "------+-------+------\n"
        "    1 | Ada   | t\n"
        "   20 | NULL  | f\n"
        " NULL | two  +| NULL\n"
        "      | lines | \n"
        "(3 rows)\n\n"
    )


def test_one_row_is_counted_as_one_and_none_as_rows() -> None:
    assert printed(Aligned, ["a"], ["text"], [("x",)]).endswith("(1 row)\n\n")
    assert printed(Aligned, ["a"], ["text"]) == " a \n---\n(0 rows)\n\n"


def test_a_later_batch_may_widen_a_column() -> None:
    text = printed(Aligned, ["a", "b"], ["text", "text"], [("x", "y")], [("long", "y")])
    assert text.splitlines()[2:4] == [" x | y", " long | y"]


def test_wide_characters_take_two_columns() -> None:
    lines = table(["name", "x"], ["text", "text"], [("日本", "y"), ("é", "z")]).splitlines()
    assert lines == [" name | x", "------+---", " 日本 | y", " é    | z"]


def test_expanded_is_one_line_a_value() -> None:
    text = printed(Expanded, ["id", "name"], ["integer", "text"], [(1, "a\nb")], [(2, None)])
    assert text == (
        "-[ RECORD 1 ]\nid   | 1\nname | a+\n     | b\n-[ RECORD 2 ]\nid   | 2\nname | NULL\n\n"
    )


@pytest.mark.long
@given(tables, st.integers(0, 8))
def test_csv_json_and_ndjson_keep_every_value(
    drawn: tuple[list[str], list[tuple[Any, ...]]], cut: int
) -> None:
    columns, rows = drawn
    types = ["text"] * len(columns)
    batches = [rows[:cut], rows[cut:]]
    objects = [dict(zip(columns, row, strict=True)) for row in rows]
    assert json.loads(printed(LAYOUTS["json"], columns, types, *batches)) == objects
    lines = printed(LAYOUTS["ndjson"], columns, types, *batches).split("\n")
    assert [json.loads(line) for line in lines if line] == objects
    text = printed(LAYOUTS["csv"], columns, types, *batches, null="")
    head, *read = csv.reader(io.StringIO(text, newline=""))
    assert head == columns
    # A row of one NULL is an empty line, as in PostgreSQL's own CSV.
    assert [row or [""] for row in read] == [
        ["" if value is None else str(value) for value in row] for row in rows
    ]


def test_csv_tells_null_from_the_empty_text() -> None:
    text = printed(LAYOUTS["csv"], ["a", "b", "c"], ["text"] * 3, [(None, "", 'x"y')], null="")
    assert text == 'a,b,c\n,"","x""y"\n'


@pytest.mark.parametrize(
    ("sql_type", "value", "expected"),
    [
        ("boolean", True, "t"),
        ("double precision", 1.0, "1"),
        ("double precision", 1e20, "1e+20"),
        ("double precision", "NaN", "NaN"),
        ("real", 0.1, "0.1"),
        ("numeric(10,2)", "1.10", "1.10"),
        ("bytea", "YWI=", "\\x6162"),
        ("timestamp", "2024-02-29T01:02:03", "2024-02-29 01:02:03"),
        ("timestamptz", "2024-02-29T01:02:03Z", "2024-02-29 01:02:03+00"),
        ("timestamp with time zone", "2024-02-29T01:02:03Z", "2024-02-29 01:02:03+00"),
        ("jsonb", {"a": [1, None]}, '{"a": [1, null]}'),
        ("jsonb", "x", '"x"'),
        ("integer[]", [1, None, [2]], "{1,NULL,{2}}"),
        ("text[]", ["a b", "", "null", 'q"', "x"], '{"a b","","null","q\\"",x}'),
        ("boolean[]", [True, False], "{t,f}"),
        ("mood", "happy", "happy"),
    ],
)
def test_a_value_reads_as_psql_prints_it(sql_type: str, value: Any, expected: str) -> None:
    assert writer_of(sql_type)(value) == expected


@pytest.mark.half
@given(st.text())
def test_nothing_harmful_reaches_the_terminal(text: str) -> None:
    shown = harmless(text)
    assert not any((ord(each) < 32 and each != "\n") or 127 <= ord(each) < 160 for each in shown)
    assert shown.count("\n") == text.count("\n")


def test_escape_sequences_are_shown_and_not_obeyed() -> None:
    assert harmless("a\x1b[2J\tb\u202e") == "a\\x1b[2J\\tb\\u202e"


def test_a_plan_has_the_lines_that_explain_writes_and_stays_a_value_in_json() -> None:
    plan = [{"Plan": {"Node Type": "ü", "Plans": [], "Total Cost": 0.01}}]
    lines = json.dumps(plan, indent=2, ensure_ascii=False).split("\n")
    columns, types = ["QUERY PLAN"], ["json"]
    shown = printed(Aligned, columns, types, [(plan,)]).split("\n")[2:-3]
    assert [line[1:].rstrip("+").rstrip() for line in shown] == lines
    assert list(csv.reader(io.StringIO(printed(LAYOUTS["csv"], columns, types, [(plan,)]))))[1] == [
        "\n".join(lines)
    ]
    assert json.loads(printed(LAYOUTS["json"], columns, types, [(plan,)])) == [{"QUERY PLAN": plan}]
