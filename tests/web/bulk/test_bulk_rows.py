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

from qserver.errors import InvalidRequest, InvalidTextRepresentation
from qserver.limits import BULK_COLUMNS_MAX, BULK_ROW_BYTES_MAX, JSON_DEPTH_MAX
from qserver.web.bulk import bulk_rows
from qserver.web.bulk.bulk import PIECE_BYTES
from qserver.web.bulk.bulk_array import DEPTH, JsonArrayDecoder
from qserver.web.bulk.bulk_rows import (
    CELLS_AT_ONCE,
    RECORD_LENGTH_SHORT,
    CsvDecoder,
    JsonLinesDecoder,
)

NAMES = ("a", "b", "c")
TEXTS = st.text(alphabet='x",\n\r ü\\', max_size=6)
TABLES = st.lists(st.tuples(*[st.none() | TEXTS] * len(NAMES)), max_size=8)
CUTS = st.lists(st.integers(0, 200), max_size=6)


def decoded(
    decoder: CsvDecoder | JsonLinesDecoder | JsonArrayDecoder,
    body: bytes,
    cuts: list[int],
    found: list[tuple[int, Any]] | None = None,
) -> list[tuple[int, Any]]:
    """The rows as pairs of name and value, with their numbers."""
    found = [] if found is None else found
    places = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    for begin, end in pairwise(places):
        for batch in filter(None, decoder.feed(body[begin:end], last=False)):
            for number, row in enumerate(batch.rows, batch.first):
                found.append((number, dict(zip(batch.names, row, strict=True))))
    for batch in filter(None, decoder.feed(b"", last=True)):
        for number, row in enumerate(batch.rows, batch.first):
            found.append((number, dict(zip(batch.names, row, strict=True))))
    return found


PARTS = st.lists(
    st.sampled_from(
        [b"{}", b'{"a": 1}', b'{"a":\n2}', b"\n", b"\r\n", b" ", b"\n{", b"}\n", b"{", b"}"]
    ),
    max_size=7,
)


@given(PARTS, CUTS)
def test_each_line_is_one_object_or_none(parts: list[bytes], cuts: list[int]) -> None:
    body = b"".join(parts)
    wanted: list[tuple[int, Any]] = []
    bad = False
    for line in filter(bytes.strip, body.split(b"\n")):
        try:
            one = json.loads(line)
        except ValueError:
            bad = True
            break
        wanted.append((len(wanted) + 1, one))
    found: list[tuple[int, Any]] = []
    if bad:
        with pytest.raises(InvalidTextRepresentation) as caught:
            decoded(JsonLinesDecoder(None), body, cuts, found)
        assert caught.value.row == len(wanted) + 1
    else:
        decoded(JsonLinesDecoder(None), body, cuts, found)
    assert found == wanted[: len(found)] and (bad or len(found) == len(wanted))


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
    assert decoded(CsvDecoder(None), as_csv(table), cuts) == list(enumerate(rows, 1))
    some = [{"c": row["c"], "a": row["a"]} for row in rows]
    assert decoded(CsvDecoder(("c", "a")), as_csv(table), cuts) == list(enumerate(some, 1))


@given(st.lists(st.dictionaries(st.sampled_from(NAMES), TEXTS | st.none() | st.integers())), CUTS)
def test_lines_in_pieces_are_the_objects(rows: list[dict[str, Any]], cuts: list[int]) -> None:
    body = "\n\n".join([json.dumps(row, ensure_ascii=False) for row in rows]).encode()
    assert decoded(JsonLinesDecoder(None), body, cuts) == list(enumerate(rows, 1))


@given(st.text(alphabet='x",\n', max_size=12), CUTS)
def test_what_csv_refuses_does_not_depend_on_the_pieces(text: str, cuts: list[int]) -> None:
    body = ("a\n" + text).encode()

    def outcome(cuts: list[int]) -> Any:
        try:
            return decoded(CsvDecoder(None), body, cuts)
        except InvalidRequest as error:
            return error.row, error.message

    assert outcome(cuts) == outcome([])


@given(st.text(alphabet='x",\n\r', max_size=14), CUTS, st.sampled_from(("a\n", "a,b\r\n")))
def test_a_long_record_means_what_a_short_one_does(text: str, cuts: list[int], head: str) -> None:
    body = (head + text).encode()

    def outcome() -> Any:
        found: list[Any] = []
        try:
            return decoded(CsvDecoder(None), body, cuts, found), None
        except InvalidRequest as error:
            return found, error.row

    short = outcome()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bulk_rows, "RECORD_LENGTH_SHORT", 0)
        patch.setattr(bulk_rows, "CELLS_AT_ONCE", 1)
        assert outcome() == short


def test_a_long_record_is_taken_a_few_cells_at_a_time() -> None:
    names = ",".join(f"column_{n}" for n in range(BULK_COLUMNS_MAX))
    cells = ",".join(["12345"] * BULK_COLUMNS_MAX)
    body = f"{names}\n{cells}\n{cells},1\n".encode()
    decoder, steps, rows = CsvDecoder(None), 0, 0
    with pytest.raises(InvalidRequest, match=f"row 2 has more than {BULK_COLUMNS_MAX} cells") as no:
        for at in range(0, len(body), RECORD_LENGTH_SHORT // 4):
            for batch in decoder.feed(body[at : at + RECORD_LENGTH_SHORT // 4]):
                steps += 1
                rows += 0 if batch is None else len(batch.rows)
    assert rows == 1 and no.value.row == 2
    assert steps > BULK_COLUMNS_MAX // CELLS_AT_ONCE


@pytest.mark.parametrize("pieces", [1, 40])
def test_a_header_of_too_many_cells_is_refused(pieces: int) -> None:
    body = ",".join(f"c{n}" for n in range(BULK_COLUMNS_MAX + 1)).encode() + b"\n"
    cuts = [len(body) * piece // pieces for piece in range(pieces)]
    with pytest.raises(InvalidRequest, match=f"has more than {BULK_COLUMNS_MAX} cells"):
        decoded(CsvDecoder(("c1",)), body, cuts)


def test_a_long_cell_passes() -> None:
    cell = "x" * (csv.field_size_limit() // 8)
    assert decoded(CsvDecoder(None), f"a\n{cell}\n".encode(), []) == [(1, {"a": cell})]


def test_a_nul_is_no_text() -> None:
    with pytest.raises(InvalidRequest, match="NUL"):
        decoded(CsvDecoder(None), b"a\nx\0y\n", [])


VALUES: st.SearchStrategy[Any] = st.recursive(
    TEXTS | st.none() | st.integers() | st.booleans() | st.text(alphabet='[]{}",\\: ', max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.sampled_from(NAMES), VALUES)), CUTS, st.booleans())
def test_an_array_in_pieces_is_its_objects(
    rows: list[dict[str, Any]], cuts: list[int], wide: bool
) -> None:
    body = json.dumps(rows, ensure_ascii=False, indent=2 if wide else None).encode()
    assert decoded(JsonArrayDecoder(None), body, cuts) == list(enumerate(rows, 1))


@given(st.text(alphabet='{}[]",:1 a', max_size=14), CUTS)
def test_what_an_array_refuses_does_not_depend_on_the_pieces(text: str, cuts: list[int]) -> None:
    def outcome(cuts: list[int]) -> Any:
        try:
            return decoded(JsonArrayDecoder(None), b'[{"a":1},' + text.encode(), cuts)
        except InvalidRequest:
            return "refused"

    found: Any = None
    try:
        found = json.loads('[{"a":1},' + text)
        are_rows = all(isinstance(each, dict) for each in found)
    except ValueError:
        are_rows = False
    whole = outcome([])
    assert (whole == list(enumerate(found, 1))) if are_rows else (whole == "refused")
    assert outcome(cuts) == whole


@pytest.mark.parametrize("depth", [DEPTH - 1, DEPTH, DEPTH + 1, DEPTH + 5, JSON_DEPTH_MAX])
def test_deep_objects_of_an_array_pass(depth: int) -> None:
    deep: Any = {"x": '}]"'}
    for _ in range(depth):
        deep = [deep]
    rows = [{"a": 1}, {"a": deep}, {"a": 3}]
    body = json.dumps(rows).encode()
    assert decoded(JsonArrayDecoder(None), body, [20, 40]) == list(enumerate(rows, 1))


def test_what_is_too_deep_or_wrong_in_an_array_is_named() -> None:
    deep = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    for wrong in (
        deep,
        b'{"a" 1}',
        b'{"a": 1]',
        b"{]}",
        b"1",
        b"null",
        b'"x"',
        b"[]",
        b'{"a": \xff}',
    ):
        with pytest.raises(InvalidRequest) as caught:
            decoded(JsonArrayDecoder(None), b'[{"a": 1},\n{"a": 2}, %b]' % wrong, [])
        assert caught.value.row == 3, wrong


@pytest.mark.parametrize("kind", [CsvDecoder, JsonLinesDecoder, JsonArrayDecoder])
def test_a_row_without_end_is_refused_before_it_fills_the_memory(kind: Any) -> None:
    decoder = kind(None)
    begin = {
        CsvDecoder: b'a\n1\n"',
        JsonLinesDecoder: b'{"a": 1}\n{"a": "',
        JsonArrayDecoder: b'[{"a": 1}, {"a": "',
    }[kind]
    assert [len(batch.rows) for batch in decoder.feed(begin)][-1:] == [1]
    piece, sent = b"x" * 500_000, 0
    with pytest.raises(InvalidRequest, match="longer than") as caught:
        while True:
            sent += len(piece)
            assert sent < 3 * BULK_ROW_BYTES_MAX
            list(decoder.feed(piece))
    assert caught.value.row == 2


@pytest.mark.parametrize("kind", [CsvDecoder, JsonLinesDecoder, JsonArrayDecoder])
def test_a_row_that_is_too_long_is_refused_though_it_ends(kind: Any) -> None:
    value = b"x" * (BULK_ROW_BYTES_MAX + 2 * PIECE_BYTES)
    body = {
        CsvDecoder: b"a\n1\n%b\n",
        JsonLinesDecoder: b'{"a": 1}\n{"a": "%b"}\n',
        JsonArrayDecoder: b'[{"a": 1}, {"a": "%b"}]',
    }[kind] % value
    with pytest.raises(InvalidRequest, match="longer than") as caught:
        decoded(kind(None), body, list(range(0, len(body), PIECE_BYTES)))
    assert caught.value.row == 2


@pytest.mark.parametrize("wrong", [b"\xff", b"\0", b"\xe2\x82"])
@pytest.mark.parametrize("cut", range(12))
def test_a_row_of_csv_that_is_no_text_is_refused_with_its_number(wrong: bytes, cut: int) -> None:
    found: list[Any] = []
    decoder = CsvDecoder(None)
    body = b"a\n1\n2\nx%b\n4\n" % wrong
    with pytest.raises(InvalidRequest, match=r"row 3 (is not UTF-8|has a NUL)") as caught:
        for piece, last in ((body[:cut], False), (body[cut:], True)):
            for batch in decoder.feed(piece, last=last):
                found += [] if batch is None else batch.rows
    assert caught.value.row == 3
    assert found == [("1",), ("2",)]
    with pytest.raises(InvalidRequest, match="the header of the CSV"):
        list(CsvDecoder(None).feed(b"a%b\n1\n" % wrong))


@pytest.mark.parametrize("kind", [CsvDecoder, JsonLinesDecoder, JsonArrayDecoder])
def test_a_mark_of_byte_order_is_not_part_of_the_first_row(kind: Any) -> None:
    body = {
        CsvDecoder: "a\n1\n",
        JsonLinesDecoder: '{"a": "1"}',
        JsonArrayDecoder: ' [{"a": "1"}] ',
    }[kind]
    for cuts in ([], [1], [2, 3]):
        assert decoded(kind(None), body.encode("utf-8-sig"), cuts) == [(1, {"a": "1"})]


def test_a_long_line_of_spaces_is_no_row() -> None:
    body = b'{"a": 1}\n' + b" " * 200_000 + b'\n{"a": 2}\n'
    assert decoded(JsonLinesDecoder(None), body, [100_000, 180_000]) == [
        (1, {"a": 1}),
        (2, {"a": 2}),
    ]
