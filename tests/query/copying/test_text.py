"""Rows as text and CSV: what is written is read, in whatever pieces, and in bounded steps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.errors import ProgramLimitExceeded, QserverError
from qserver.query.copying.statement import CopyFormat
from qserver.query.copying.text import Lines, TextWriter
from qserver.values.types import TEXT
from tests.known_work import least_steps
from tests.query.copying.feeding import CELLS, fed

FORMATS = (
    CopyFormat(),
    CopyFormat(delimiter="|", null="nothing"),
    CopyFormat("csv", ",", ""),
    CopyFormat("csv", ";", "NULL", quote="'", escape="'"),
    CopyFormat("csv", ",", "", quote='"', escape="\\"),
    CopyFormat("csv", ",", "", force_quote=("*",)),
)


@given(st.sampled_from(FORMATS), CELLS, st.data())
def test_what_is_written_is_read(
    form: CopyFormat, given_rows: list[tuple[str | None, ...]], data: st.DataObject
) -> None:
    writer = TextWriter(form, ("a", "b"), (TEXT, TEXT))
    whole = b"".join(map(writer.line, given_rows))
    assert fed(Lines(form, ("a", "b"), "t"), whole, data) == given_rows


@pytest.mark.parametrize(
    "field, value",
    [('""""', '"'), ('""""""', '""'), ('"""a"', '"a'), ('"a"""', 'a"'), ('a"b""c"d', 'ab"cd')],
)
def test_quotes_in_quotes_are_doubled(field: str, value: str) -> None:
    lines = Lines(CopyFormat("csv", ",", ""), ("a", "b"), "t")
    assert list(lines.feed(f"{field},x\n".encode(), last=True)) == [(value, "x")]


@given(st.sampled_from(FORMATS), st.binary(max_size=40))
def test_no_bytes_raise_anything_but_an_error_of_ours(form: CopyFormat, piece: bytes) -> None:
    try:
        list(Lines(form, ("a", "b"), "t").feed(piece, last=True))
    except QserverError:
        pass


QUOTED, ESCAPED = CopyFormat("csv", ",", ""), CopyFormat("csv", ",", "", escape="\\")


@pytest.mark.parametrize(
    ("form", "piece"),
    [
        (CopyFormat(), b"a\\\n" * 40_000),
        (CopyFormat(), b"\\\t" * 300_000 + b"\n"),
        (QUOTED, b'"' + b"\n" * 100_000),
        (ESCAPED, b'"' + b"some text\n" * 10_000),
    ],
)
def test_a_record_of_many_lines_is_read_line_by_line(form: CopyFormat, piece: bytes) -> None:
    """Once its beginning was read anew for each of its lines: 600 steps, while all others wait."""
    assert least_steps(lambda: list(Lines(form, ("a",), "t").feed(piece)), enough=60) < 60


def test_a_record_that_is_too_long_is_refused_where_it_is() -> None:
    piece = b"x" * (1 << 20)
    for form, before in ((CopyFormat(), b"1\n2\n"), (QUOTED, b'1\n"2\n')):
        reader = Lines(form, ("a",), "t")
        assert list(reader.feed(before))
        with pytest.raises(ProgramLimitExceeded):
            for _ in range(9):
                list(reader.feed(piece))
        assert reader.where() == "COPY t, line 3"
