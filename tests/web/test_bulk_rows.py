"""Rows in bulk mean the same in whatever pieces they arrive."""

from __future__ import annotations

import csv
import io
import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.errors import InvalidRequest
from qserver.web.bulk_rows import Csv, JsonLines

NAMES = ("a", "b", "c")
TEXTS = st.text(alphabet='x",\n\r ü\\', max_size=6)
TABLES = st.lists(st.tuples(*[st.none() | TEXTS] * len(NAMES)), max_size=8)
CUTS = st.lists(st.integers(0, 200), max_size=6)


def decoded(decoder: Csv | JsonLines, body: bytes, cuts: list[int]) -> list[tuple[int, Any]]:
    """The rows as pairs of name and value, with their numbers."""
    found = []
    places = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    for begin, end in pairwise(places):
        for batch in decoder.feed(body[begin:end], last=False):
            for number, row in enumerate(batch.rows, batch.first):
                found.append((number, dict(zip(batch.names, row, strict=True))))
    for batch in decoder.feed(b"", last=True):
        for number, row in enumerate(batch.rows, batch.first):
            found.append((number, dict(zip(batch.names, row, strict=True))))
    return found


def as_csv(table: list[tuple[str | None, ...]]) -> bytes:
    """Quoted where it must be; an empty text is two quotes, and NULL is nothing."""
    out = io.StringIO()
    out.write(",".join(NAMES) + "\n")
    for row in table:
        cells = []
        for value in row:
            plain = value is not None and value and not set(value) & set('",\r\n')
            if value is not None and not plain:
                value = '"' + value.replace('"', '""') + '"'
            cells.append(value or "")
        out.write(",".join(cells) + "\r\n")
    return out.getvalue().encode()


@given(TABLES, CUTS)
def test_csv_in_pieces_is_the_table(table: list[tuple[str | None, ...]], cuts: list[int]) -> None:
    rows = [dict(zip(NAMES, row, strict=True)) for row in table]
    assert decoded(Csv(None), as_csv(table), cuts) == list(enumerate(rows, 1))
    some = [{"c": row["c"], "a": row["a"]} for row in rows]
    assert decoded(Csv(("c", "a")), as_csv(table), cuts) == list(enumerate(some, 1))


@given(st.lists(st.dictionaries(st.sampled_from(NAMES), TEXTS | st.none() | st.integers())), CUTS)
def test_lines_in_pieces_are_the_objects(rows: list[dict[str, Any]], cuts: list[int]) -> None:
    body = "\n\n".join([json.dumps(row, ensure_ascii=False) for row in rows]).encode()
    assert decoded(JsonLines(None), body, cuts) == list(enumerate(rows, 1))


@given(st.text(alphabet='x",\n', max_size=12), CUTS)
def test_what_csv_refuses_does_not_depend_on_the_pieces(text: str, cuts: list[int]) -> None:
    body = ("a\n" + text).encode()

    def outcome(cuts: list[int]) -> Any:
        try:
            return decoded(Csv(None), body, cuts)
        except InvalidRequest as error:
            return error.row, error.message

    assert outcome(cuts) == outcome([])


def test_a_long_cell_passes() -> None:
    cell = "x" * (csv.field_size_limit() // 8)
    assert decoded(Csv(None), f"a\n{cell}\n".encode(), []) == [(1, {"a": cell})]


def test_a_nul_is_no_text() -> None:
    with pytest.raises(InvalidRequest, match="NUL"):
        decoded(Csv(None), b"a\nx\0y\n", [])
