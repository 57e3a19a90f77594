"""Heads of requests as values: what is read is what was written, and nothing in between."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.http1 import ServerOptions
from qserver.http1.head import check_beginning, parse_head
from qserver.http1.refusal import Refusal

OPTIONS = ServerOptions()
TOKEN = "!#$%&'*+-.^_`|~" + string.digits + string.ascii_letters
MEANINGFUL = {"host", "content-length", "transfer-encoding", "expect", "connection", "upgrade"}
names = st.text(TOKEN, min_size=1, max_size=12).filter(
    lambda name: name.lower() not in MEANINGFUL | {"proxy-connection"}
)
values = st.text(
    st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_characters="\x7f"), max_size=20
).map(lambda value: value.strip(" \t"))


@given(st.lists(st.tuples(names, values), max_size=10))
def test_headers_come_out_as_they_went_in(pairs: list[tuple[str, str]]) -> None:
    lines = "".join(f"{name}: {value}\r\n" for name, value in pairs)
    raw = f"GET /a HTTP/1.1\r\nHost: b\r\n{lines}\r\n".encode("latin-1")
    expected = [(name.lower().encode(), value.encode("latin-1")) for name, value in pairs]
    check_beginning(raw[:-3], OPTIONS)
    assert parse_head(raw, OPTIONS).request.headers == ((b"host", b"b"), *expected)


@given(st.binary(max_size=60))
def test_any_bytes_are_either_a_head_or_refused(noise: bytes) -> None:
    for raw in (noise + b"\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\n" + noise + b"\r\n\r\n"):
        try:
            head = parse_head(raw, OPTIONS)
        except Refusal as refusal:
            assert refusal.status in (400, 413, 414, 417, 431, 501, 505)
        else:
            values = [value for _, value in head.request.headers]
            assert all(b"\r" not in value and b"\n" not in value for value in values)


@given(st.data())
def test_the_beginning_of_a_good_head_is_never_refused(data: st.DataObject) -> None:
    raw = b"POST /path?query HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"
    cut = data.draw(st.integers(1, len(raw) - 1))
    check_beginning(raw[:cut], OPTIONS)


@pytest.mark.parametrize(
    ("version", "connection", "keeps"),
    [
        ("1.1", "", True),
        ("1.1", "Connection: close\r\n", False),
        ("1.1", "Connection: keep-alive, CLOSE\r\n", False),
        ("1.1", "Connection: a\r\nConnection: close\r\n", False),
        ("1.1", "Connection: closed\r\n", True),
        ("1.0", "", False),
        ("1.0", "Connection: Keep-Alive\r\n", True),
        ("1.0", "Connection: keep-alive, close\r\n", False),
    ],
)
def test_keep_alive_follows_version_and_connection(
    version: str, connection: str, keeps: bool
) -> None:
    raw = f"GET / HTTP/{version}\r\nHost: a\r\n{connection}\r\n".encode()
    assert parse_head(raw, OPTIONS).keep_alive is keeps


def test_only_a_harmless_request_id_is_repeated() -> None:
    def request_id(value: str) -> str | None:
        raw = f"GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: {value}\r\n\r\n".encode()
        return parse_head(raw, OPTIONS).request_id

    assert request_id("a-1.b_C:9") == "a-1.b_C:9"
    assert request_id("a b") is None
    assert request_id('"><script>') is None
    assert request_id("x" * 129) is None


def test_a_refusal_reads_as_a_sentence() -> None:
    assert repr(Refusal(413, "too much")) in (
        "<413 Request Entity Too Large: too much>",
        "<413 Content Too Large: too much>",
    )


LENGTH = b"GET / HTTP/1.1\r\nHost: a\r\nA: "


@pytest.mark.parametrize("more", [0, 1])
def test_a_head_may_be_as_large_as_the_limit_and_no_larger(more: int) -> None:
    raw = LENGTH + b"x" * 100 + b"\r\n\r\n"
    size = len(raw) - raw.index(b"\r\n")
    options = ServerOptions(headers_bytes_max=size - more)
    if more:
        with pytest.raises(Refusal, match="larger"):
            parse_head(raw, options)
    else:
        assert parse_head(raw, options).request.headers[1] == (b"a", b"x" * 100)


@pytest.mark.parametrize("more", [0, 1])
def test_a_request_line_may_be_as_long_as_the_limit_and_no_longer(more: int) -> None:
    line = b"GET /" + b"x" * 100 + b" HTTP/1.1"
    options = ServerOptions(line_bytes_max=len(line) - more)
    if more:
        with pytest.raises(Refusal, match="longer"):
            parse_head(line + b"\r\nHost: a\r\n\r\n", options)
    else:
        assert parse_head(line + b"\r\nHost: a\r\n\r\n", options).length == 0
