"""What must not get through, over real sockets: the right status, the end of the connection, and
the application never hears of it.

Two servers that read one request differently can be played against each other, so each row here is
something that some server repairs, and this one refuses.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from tests.http1.serving import Echo, request, running

HOST = b"Host: example.org\r\n"
LINE_MAX, HEADERS_MAX, COUNT_MAX, BODY_MAX = 200, 400, 10, 1000
LIMITS: dict[str, Any] = {
    "line_bytes_max": LINE_MAX,
    "headers_bytes_max": HEADERS_MAX,
    "headers_count_max": COUNT_MAX,
    "body_bytes_max": BODY_MAX,
}


def get(*lines: bytes) -> bytes:
    return b"GET / HTTP/1.1\r\n" + HOST + b"".join(lines) + b"\r\n"


def post(*lines: bytes, body: bytes = b"") -> bytes:
    return b"POST / HTTP/1.1\r\n" + HOST + b"".join(lines) + b"\r\n" + body


def chunked(body: bytes) -> bytes:
    return post(b"Transfer-Encoding: chunked\r\n", body=body)


MALFORMED: dict[str, tuple[int, bytes]] = {
    # the length of the body
    "length that is a word": (400, post(b"Content-Length: five\r\n", body=b"12345")),
    "empty length": (400, post(b"Content-Length:\r\n")),
    "negative length": (400, post(b"Content-Length: -5\r\n", body=b"12345")),
    "length with a plus": (400, post(b"Content-Length: +5\r\n", body=b"12345")),
    "hexadecimal length": (400, post(b"Content-Length: 0x5\r\n", body=b"12345")),
    "length with a point": (400, post(b"Content-Length: 5.0\r\n", body=b"12345")),
    "length with an underscore": (400, post(b"Content-Length: 1_0\r\n", body=b"1234567890")),
    "length with a space inside": (400, post(b"Content-Length: 1 0\r\n", body=b"1234567890")),
    "length in other digits": (400, post("Content-Length: ٥\r\n".encode(), body=b"12345")),
    "list of equal lengths": (400, post(b"Content-Length: 5, 5\r\n", body=b"12345")),
    "list of lengths": (400, post(b"Content-Length: 5, 6\r\n", body=b"12345")),
    "two lengths": (400, post(b"Content-Length: 5\r\n", b"Content-Length: 6\r\n", body=b"12345")),
    "the same length twice": (
        400,
        post(b"Content-Length: 5\r\n", b"content-length: 5\r\n", body=b"12345"),
    ),
    "length past all numbers": (413, post(b"Content-Length: " + b"9" * 40 + b"\r\n")),
    # transfer encodings
    "length and chunks": (
        400,
        post(b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", body=b"0\r\n\r\n"),
    ),
    "chunks and length": (
        400,
        post(b"Transfer-Encoding: chunked\r\n", b"Content-Length: 5\r\n", body=b"0\r\n\r\n"),
    ),
    "gzip, then chunks": (501, post(b"Transfer-Encoding: gzip, chunked\r\n", body=b"0\r\n\r\n")),
    "chunks, then gzip": (400, post(b"Transfer-Encoding: chunked, gzip\r\n", body=b"0\r\n\r\n")),
    "only gzip": (400, post(b"Transfer-Encoding: gzip\r\n", body=b"0\r\n\r\n")),
    "identity": (400, post(b"Transfer-Encoding: identity\r\n", body=b"0\r\n\r\n")),
    "chunked with something before": (
        400,
        post(b"Transfer-Encoding: xchunked\r\n", body=b"0\r\n\r\n"),
    ),
    "chunked in quotes": (400, post(b'Transfer-Encoding: "chunked"\r\n', body=b"0\r\n\r\n")),
    "chunked with a vertical tab": (400, post(b"Transfer-Encoding: \x0bchunked\r\n")),
    "chunked twice": (400, post(b"Transfer-Encoding: chunked, chunked\r\n", body=b"0\r\n\r\n")),
    "chunked in two headers": (
        400,
        post(b"Transfer-Encoding: chunked\r\n" * 2, body=b"0\r\n\r\n"),
    ),
    "empty transfer encoding": (400, post(b"Transfer-Encoding:\r\n", body=b"0\r\n\r\n")),
    "chunks in HTTP/1.0": (
        400,
        b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    # chunks
    "chunk size that is a word": (400, chunked(b"five\r\nhello\r\n0\r\n\r\n")),
    "empty chunk size": (400, chunked(b"\r\nhello\r\n0\r\n\r\n")),
    "negative chunk size": (400, chunked(b"-5\r\nhello\r\n0\r\n\r\n")),
    "chunk size with a plus": (400, chunked(b"+5\r\nhello\r\n0\r\n\r\n")),
    "chunk size with 0x": (400, chunked(b"0x5\r\nhello\r\n0\r\n\r\n")),
    "chunk size with an underscore": (400, chunked(b"0_5\r\nhello\r\n0\r\n\r\n")),
    "chunk size after a space": (400, chunked(b" 5\r\nhello\r\n0\r\n\r\n")),
    "chunk size before a space": (400, chunked(b"5 \r\nhello\r\n0\r\n\r\n")),
    "chunk size past all numbers": (400, chunked(b"fffffffffffffffff\r\nhello\r\n0\r\n\r\n")),
    "chunk size ended by LF": (400, chunked(b"5\nhello\r\n0\r\n\r\n")),
    "chunk size ended by CR": (400, chunked(b"5\rhello\r\n0\r\n\r\n")),
    "chunk longer than its size": (400, chunked(b"5\r\nhello!\r\n0\r\n\r\n")),
    "chunk ended by LF": (400, chunked(b"5\r\nhello\n0\r\n\r\n")),
    "chunk not ended": (400, chunked(b"5\r\nhello0\r\n\r\n")),
    "extension too long": (400, chunked(b"5;" + b"x" * 400 + b"\r\nhello\r\n0\r\n\r\n")),
    "extension with a control character": (400, chunked(b"5;a\x00\r\nhello\r\n0\r\n\r\n")),
    "extension with LF": (400, chunked(b"5;a\nb\r\nhello\r\n0\r\n\r\n")),
    "trailer without a colon": (400, chunked(b"0\r\nnonsense\r\n\r\n")),
    "trailer with a space before the colon": (400, chunked(b"0\r\nA : b\r\n\r\n")),
    "trailer ended by LF": (400, chunked(b"0\r\nA: b\n\r\n")),
    "trailers past the limit": (431, chunked(b"0\r\nA: " + b"x" * 500 + b"\r\n\r\n")),
    # lines
    "folded header": (400, get(b"A: b\r\n c\r\n")),
    "header folded by a tab": (400, get(b"A: b\r\n\tc\r\n")),
    "folding before any header": (400, b"GET / HTTP/1.1\r\n Host: a\r\nHost: b\r\n\r\n"),
    "all lines end with LF": (400, b"GET / HTTP/1.1\nHost: example.org\n\n"),
    "request line ends with LF": (400, b"GET / HTTP/1.1\n" + HOST + b"\r\n"),
    "header ends with LF": (400, get(b"A: b\nC: d\r\n")),
    "empty line ends with LF": (400, b"GET / HTTP/1.1\r\n" + HOST + b"\n"),
    "CR in a value": (400, get(b"A: b\rContent-Length: 5\r\n")),
    "CR ends a header": (400, get(b"A: b\rC: d\r\n")),
    "CR in the request line": (400, b"GET /\r HTTP/1.1\r\n" + HOST + b"\r\n"),
    "two CRs": (400, get(b"A: b\r\r\n")),
    # headers
    "space before the colon": (400, get(b"A : b\r\n")),
    "tab before the colon": (400, get(b"A\t: b\r\n")),
    "length with a space before the colon": (400, post(b"Content-Length : 5\r\n", body=b"12345")),
    "no colon": (400, get(b"nonsense\r\n")),
    "no name": (400, get(b": b\r\n")),
    "space in a name": (400, get(b"A b: c\r\n")),
    "letter that is not ASCII in a name": (400, get("Ä: b\r\n".encode())),
    "brackets in a name": (400, get(b"A[]: b\r\n")),
    "NUL in a name": (400, get(b"A\x00: b\r\n")),
    "NUL in a value": (400, get(b"A: b\x00c\r\n")),
    "escape in a value": (400, get(b"A: \x1b[0m\r\n")),
    "delete in a value": (400, get(b"A: \x7f\r\n")),
    "bell in a value": (400, get(b"A: \x07\r\n")),
    "expectation that is not known": (417, get(b"Expect: 200-ok\r\n")),
    # hosts
    "no host": (400, b"GET / HTTP/1.1\r\n\r\n"),
    "two hosts": (400, get(b"Host: other.org\r\n")),
    "the same host twice": (400, get(HOST)),
    "empty host": (400, b"GET / HTTP/1.1\r\nHost:\r\n\r\n"),
    "host with a path": (400, b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"),
    "host with a user": (400, b"GET / HTTP/1.1\r\nHost: a@b\r\n\r\n"),
    "host with a space": (400, b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n"),
    "two hosts in one": (400, b"GET / HTTP/1.1\r\nHost: a,b\r\n\r\n"),
    "host with a port that is a word": (400, b"GET / HTTP/1.1\r\nHost: a:http\r\n\r\n"),
    "host with a port past all ports": (400, b"GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n"),
    "absolute target with a user": (400, b"GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n"),
    # methods, targets, versions
    "method in small letters": (501, b"get / HTTP/1.1\r\n" + HOST + b"\r\n"),
    "method that is not known": (501, b"BREW / HTTP/1.1\r\n" + HOST + b"\r\n"),
    "method of a proxy": (501, b"CONNECT a:443 HTTP/1.1\r\n" + HOST + b"\r\n"),
    "method with a bracket": (400, b"GE(T / HTTP/1.1\r\n" + HOST + b"\r\n"),
    "no method": (400, b" / HTTP/1.1\r\n" + HOST + b"\r\n"),
    "two spaces after the method": (400, b"GET  / HTTP/1.1\r\n" + HOST + b"\r\n"),
    "two spaces before the version": (400, b"GET /  HTTP/1.1\r\n" + HOST + b"\r\n"),
    "tab after the method": (400, b"GET\t/ HTTP/1.1\r\n" + HOST + b"\r\n"),
    "space after the version": (400, b"GET / HTTP/1.1 \r\n" + HOST + b"\r\n"),
    "space before the method": (400, b" GET / HTTP/1.1\r\n" + HOST + b"\r\n"),
    "two empty lines before": (400, b"\r\n\r\nGET / HTTP/1.1\r\n" + HOST + b"\r\n"),
    "target without a slash": (400, b"GET path HTTP/1.1\r\n" + HOST + b"\r\n"),
    "target with a space": (400, b"GET /a b HTTP/1.1\r\n" + HOST + b"\r\n"),
    "target with a fragment": (400, b"GET /a#b HTTP/1.1\r\n" + HOST + b"\r\n"),
    "target that is not ASCII": (400, "GET /ä HTTP/1.1\r\n".encode() + HOST + b"\r\n"),
    "target with NUL": (400, b"GET /\x00 HTTP/1.1\r\n" + HOST + b"\r\n"),
    "path with NUL": (400, b"GET /%00 HTTP/1.1\r\n" + HOST + b"\r\n"),
    "path that is not UTF-8": (400, b"GET /%ff HTTP/1.1\r\n" + HOST + b"\r\n"),
    "star for GET": (400, b"GET * HTTP/1.1\r\n" + HOST + b"\r\n"),
    "target of another scheme": (400, b"GET ftp://a/ HTTP/1.1\r\n" + HOST + b"\r\n"),
    "no version": (400, b"GET /\r\n\r\n"),
    "HTTP/0.9": (505, b"GET / HTTP/0.9\r\n" + HOST + b"\r\n"),
    "HTTP/1.2": (505, b"GET / HTTP/1.2\r\n" + HOST + b"\r\n"),
    "HTTP/2.0": (505, b"GET / HTTP/2.0\r\n" + HOST + b"\r\n"),
    "version in small letters": (400, b"GET / http/1.1\r\n" + HOST + b"\r\n"),
    "version with more digits": (400, b"GET / HTTP/1.10\r\n" + HOST + b"\r\n"),
    "another protocol": (400, b"GET / RTSP/1.0\r\n" + HOST + b"\r\n"),
    "preface of HTTP/2": (505, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    "TLS": (400, bytes.fromhex("16030100f8010000f40303") + bytes(40)),
    "SSH": (400, b"SSH-2.0-OpenSSH_9.2\r\n"),
    "nothing but zeros": (400, bytes(16)),
    # sizes
    "long request line": (414, b"GET /" + b"a" * LINE_MAX + b" HTTP/1.1\r\n" + HOST + b"\r\n"),
    "long request line without an end": (414, b"GET /" + b"a" * LINE_MAX),
    "large header": (431, get(b"A: " + b"b" * HEADERS_MAX + b"\r\n")),
    "large header without an end": (431, b"GET / HTTP/1.1\r\nA: " + b"b" * HEADERS_MAX),
    "many headers": (431, get(*(b"A: b\r\n" for _ in range(COUNT_MAX)))),
}

TOO_LARGE: dict[str, tuple[int, bytes]] = {
    "length past the limit": (413, post(b"Content-Length: 1001\r\n")),
    "length past the limit, with all of the body": (
        413,
        post(b"Content-Length: 5000\r\n", body=b"x" * 5000),
    ),
    "chunks past the limit": (413, chunked(b"3e9\r\n" + b"x" * 1001 + b"\r\n0\r\n\r\n")),
    "many chunks past the limit": (413, chunked((b"64\r\n" + b"x" * 100 + b"\r\n") * 11)),
}
"""The application may answer these, but has none of their bodies."""


@pytest.mark.parametrize("name", MALFORMED)
async def test_a_malformed_request_is_refused_and_never_reaches_the_application(name: str) -> None:
    echo = await _refused(*MALFORMED[name])
    assert echo.asked == []


@pytest.mark.parametrize("name", TOO_LARGE)
async def test_a_body_that_is_too_large_never_reaches_the_application(name: str) -> None:
    echo = await _refused(*TOO_LARGE[name])
    assert len(echo.asked) == 1 and echo.bodies == []


async def _refused(status: int, data: bytes) -> Echo:
    """The application, after the server has refused a request."""
    echo = Echo()
    async with running(echo, **LIMITS) as server, await server.client() as client:
        answer = await client.ask(data)
        assert answer.status == status
        assert await client.rest() == b"", "the connection ends after the answer"
        assert answer.header("connection") == "close"
        assert server.counters.statistics().requests_refused == 1
        _check_error_object(answer.body, answer.header("x-request-id"))
    return echo


def _check_error_object(body: bytes, request_id: str | None) -> None:
    told = json.loads(body)
    assert told["success"] is False
    assert told["columns"] == told["rows"] == []
    assert told["error"]["message"]
    assert request_id and told["error"]["request_id"] == request_id


@pytest.mark.parametrize("name", MALFORMED | TOO_LARGE)
async def test_it_is_refused_too_when_its_bytes_come_in_pieces(name: str) -> None:
    status, data = (MALFORMED | TOO_LARGE)[name]
    echo = Echo()
    async with running(echo, **LIMITS) as server, await server.client() as client:
        received = await client.ask(request())  # a good one first, on the same connection
        assert received.status == 200
        for at in range(0, len(data), max(1, len(data) // 50)):
            try:
                await client.send(data[at : at + max(1, len(data) // 50)])
            except trio.BrokenResourceError:
                break
        answer = await client.answer()
        assert answer.status == status
        assert all(body == b"" for body in echo.bodies)
