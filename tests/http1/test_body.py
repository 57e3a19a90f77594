"""Bodies end where they say, however the bytes come."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver import limits
from qserver.http1 import ServerOptions
from qserver.http1.body import ChunkedBody, SizedBody
from qserver.http1.refusal import Refusal

OPTIONS = ServerOptions()
AFTER = b"GET /next"


def fed(body: SizedBody | ChunkedBody, data: bytes, cuts: list[int]) -> tuple[bytes, bytes]:
    """Feed `data` cut at those places: the whole body, and what is left over."""
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    taken, rest = b"", b""
    for begin, end in pairwise(places):
        piece, rest = body.take(rest + data[begin:end])
        taken += piece
    return taken, rest


cuts = st.lists(st.integers(0, 300), max_size=20)
sizes = st.sampled_from(["{:x}", "{:X}", "{:04x}", "{:x};a=b", '{:x} ;a="b c"'])
trailers = st.sampled_from([b"", b"A: b\r\n", b"A: b\r\nC:\r\n"])


@given(st.binary(max_size=200), cuts)
def test_a_sized_body_is_what_its_length_says(content: bytes, places: list[int]) -> None:
    body = SizedBody(len(content))
    assert fed(body, content + AFTER, places) == (content, AFTER)
    assert body.complete


@given(st.lists(st.tuples(st.binary(min_size=1, max_size=40), sizes)), trailers, cuts)
def test_a_chunked_body_is_its_chunks(
    chunks: list[tuple[bytes, str]], trailer: bytes, places: list[int]
) -> None:
    data = b"".join(
        size.format(len(chunk)).encode() + b"\r\n" + chunk + b"\r\n" for chunk, size in chunks
    )
    body = ChunkedBody(OPTIONS)
    content = b"".join(chunk for chunk, _ in chunks)
    assert fed(body, data + b"0\r\n" + trailer + b"\r\n" + AFTER, places) == (content, AFTER)
    assert body.complete


@given(st.binary(max_size=60), cuts)
def test_any_bytes_are_chunks_or_refused_wherever_they_are_cut(
    noise: bytes, places: list[int]
) -> None:
    def outcome(cut: list[int]) -> tuple[bytes, bytes, bool] | int:
        body = ChunkedBody(OPTIONS)
        try:
            return (*fed(body, noise, cut), body.complete)
        except Refusal as refusal:
            return refusal.status

    assert outcome(places) == outcome([])


def test_a_chunked_body_may_be_as_large_as_the_limit_and_no_larger() -> None:
    options = ServerOptions(body_bytes_max=10)
    assert ChunkedBody(options).take(b"5\r\nhello\r\n5\r\nhello\r\n0\r\n\r\n")[0] == b"hello" * 2
    with pytest.raises(Refusal) as caught:
        ChunkedBody(options).take(b"5\r\nhello\r\n6\r\n")
    assert caught.value.status == 413


@pytest.mark.parametrize("more", [0, 1])
def test_the_line_of_a_chunk_may_be_as_long_as_the_limit_and_no_longer(more: int) -> None:
    line = b"5;" + b"x" * (limits.CHUNK_LINE_BYTES_MAX - 4 + more) + b"\r\n"
    body = ChunkedBody(OPTIONS)
    if more:
        with pytest.raises(Refusal):
            body.take(line + b"hello\r\n")
    else:
        assert body.take(line + b"hello\r\n") == (b"hello", b"")
