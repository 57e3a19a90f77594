"""Rows of COPY in binary: what is written is read, and no bytes do any harm."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.errors import BadCopyFileFormat, QserverError
from qserver.pgwire.copy_binary import HEADER, TRAILER, BinaryWriter, Tuples
from qserver.values.types import INTEGER, TEXT
from tests.query.copying.feeding import CELLS, fed


@given(CELLS, st.data())
def test_what_is_written_in_binary_is_read(
    given_rows: list[tuple[str | None, ...]], data: st.DataObject
) -> None:
    writer = BinaryWriter((TEXT, TEXT))
    end = data.draw(st.sampled_from((TRAILER, b"")))  # some programs leave it out
    whole = HEADER + b"".join(map(writer.line, given_rows)) + end
    assert fed(Tuples((TEXT, TEXT), "t"), whole, data) == given_rows
    with pytest.raises(BadCopyFileFormat):
        list(Tuples((TEXT, TEXT), "t").feed(whole.removesuffix(TRAILER) + b"\0", last=True))


@given(st.binary(max_size=40))
def test_no_bytes_raise_anything_but_an_error_of_ours(piece: bytes) -> None:
    for sent in (piece, HEADER + piece):
        try:
            list(Tuples((INTEGER, TEXT), "t").feed(sent, last=True))
        except QserverError:
            pass
