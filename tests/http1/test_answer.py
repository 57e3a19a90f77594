"""Heads of answers: what the application says, what the server adds, what neither may do."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.http1 import Headers, InvalidAnswer, Response, ServerOptions
from qserver.http1.answer import HeadRenderer
from qserver.http1.head import parse_head
from qserver.http1.headers import SERVERS_OWN

OWN_LINES = 5
"""Status, request id, length, date, and the empty one."""


def rendered(
    status: int = 200,
    headers: list[tuple[bytes, bytes]] | None = None,
    length: int | None = 2,
    method: str = "GET",
    version: str = "1.1",
    keep_alive: bool = True,
) -> bytes:
    head = parse_head(f"{method} / HTTP/{version}\r\nHost: a\r\n\r\n".encode(), ServerOptions())
    response = Response(status, Headers(headers or []), b"", "id")
    body = None if length is None else b" " * length
    data = HeadRenderer().render(response, body, head, keep_alive, 0.0)
    return data[: data.index(b"\r\n\r\n") + 4]


def lines(data: bytes) -> list[bytes]:
    assert data.endswith(b"\r\n\r\n")
    left_out = (b"date: ", b"x-request-id: id")
    return [line for line in data.split(b"\r\n") if line and not line.startswith(left_out)]


@pytest.mark.parametrize(
    ("answer", "added"),
    [
        ({}, [b"content-length: 2"]),
        ({"length": None}, [b"transfer-encoding: chunked"]),
        ({"length": None, "version": "1.0", "keep_alive": False}, [b"connection: close"]),
        ({"version": "1.0"}, [b"content-length: 2", b"connection: keep-alive"]),
        ({"keep_alive": False}, [b"content-length: 2", b"connection: close"]),
        ({"length": None, "method": "HEAD"}, []),
        ({"method": "HEAD"}, [b"content-length: 2"]),
        ({"status": 204}, []),
        ({"status": 304}, []),
        ({"status": 304, "length": None}, []),
    ],
)
def test_the_body_is_delimited_in_the_one_way_that_fits(
    answer: dict[str, Any], added: list[bytes]
) -> None:
    assert lines(rendered(**answer))[1:] == added


def test_a_status_that_has_no_phrase_is_sent_without() -> None:
    assert lines(rendered(299))[0] == b"HTTP/1.1 299 "
    assert lines(rendered(404))[0] == b"HTTP/1.1 404 Not Found"


@given(st.binary(max_size=12), st.binary(max_size=12))
def test_no_header_can_make_a_second_line(name: bytes, value: bytes) -> None:
    try:
        data = rendered(200, [(name, value), (b"last", b"one")])
    except InvalidAnswer:
        return
    assert data.count(b"\n") == data.count(b"\r") == OWN_LINES + 2
    assert name + b": " + value + b"\r\n" in data


@pytest.mark.parametrize("name", sorted(SERVERS_OWN))
def test_what_the_server_says_itself_is_said_by_nobody_else(name: bytes) -> None:
    with pytest.raises(InvalidAnswer, match="for the server"):
        Headers([(name.title(), b"1")])


def test_a_mark_is_added_unless_the_answer_says_it() -> None:
    marks = Headers([(b"a", b"of marks"), (b"b", b"2")])
    response = Response(200, Headers([(b"a", b"own")]), b"", "id")
    marked = response.marked(marks)
    assert marked.headers.pairs == ((b"a", b"own"), (b"b", b"2"))
    assert marked.marked(marks) is marked


def test_headers_read_as_a_sentence() -> None:
    assert repr(Headers([(b"a", b"b")])) == "<1 headers, 6 bytes>"
