"""A request whose end can be read in two ways is refused, and nothing behind it is read.

A proxy that goes by Content-Length and a server that goes by Transfer-Encoding disagree where the
next request begins. Whoever can choose between them hides a request from the proxy.
"""

from __future__ import annotations

import re

import pytest

from tests.web.contract.connections import connect
from tests.web.contract.servers import Client, Server

HIDDEN = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
ENDS_AT_ONCE = b"0\r\n\r\n"
LENGTH = b"Content-Length: %d\r\n" % len(ENDS_AT_ONCE + HIDDEN)

AMBIGUOUS = {
    "length, then chunks": LENGTH + b"Transfer-Encoding: chunked\r\n",
    "chunks, then length": b"Transfer-Encoding: chunked\r\n" + LENGTH,
    "length and chunks in capitals": LENGTH + b"TRANSFER-ENCODING: CHUNKED\r\n",
    "length and folded chunks": LENGTH + b"Transfer-Encoding:\r\n chunked\r\n",
    "length and chunks folded by a tab": LENGTH + b"Transfer-Encoding:\r\n\tchunked\r\n",
    "length and folded chunks before": b"Transfer-Encoding:\r\n chunked\r\n" + LENGTH,
    "length 0 and chunks": b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n",
    "two lengths and chunks": LENGTH * 2 + b"Transfer-Encoding: chunked\r\n",
    "chunked twice": b"Transfer-Encoding: chunked\r\n" * 2,
    "chunks, then gzip": b"Transfer-Encoding: chunked, gzip\r\n",
    "length and another encoding": LENGTH + b"Transfer-Encoding: identity\r\n",
}
NOT_SHOWN = {
    "folded chunks": b"Transfer-Encoding:\r\n chunked\r\n",
    "chunks folded by a tab": b"Transfer-Encoding:\r\n\tchunked\r\n",
}
"""hypercorn unfolds them before the application sees them (see docs/operations.md)."""


def statuses(client: Client, lines: bytes, route: bytes) -> list[int]:
    """The status of each answer, up to the end of the connection."""
    head = b"POST %b HTTP/1.1\r\nHost: localhost\r\n" % route
    with connect(client) as connection:
        connection.sendall(head + lines + b"\r\n" + ENDS_AT_ONCE + HIDDEN)
        received = b""
        while some := connection.recv(65536):
            received += some
    return [int(found) for found in re.findall(rb"HTTP/1\.1 (\d{3}) ", received)]


@pytest.mark.parametrize("route", [b"/v1/query", b"/v1/session", b"/nowhere"])
@pytest.mark.parametrize("name", AMBIGUOUS)
def test_a_request_with_two_ends_is_refused(anonymous: Client, name: str, route: bytes) -> None:
    (only,) = statuses(anonymous, AMBIGUOUS[name], route)
    assert only in (400, 501)


@pytest.mark.parametrize("name", NOT_SHOWN)
def test_a_folded_encoding_is_refused_by_our_server_and_not_shown_by_hypercorn(
    anonymous: Client, server: Server, name: str
) -> None:
    found = statuses(anonymous, NOT_SHOWN[name], b"/v1/query")
    assert found == ([400] if server.kind != "hypercorn" else [401, 200])


def test_chunks_alone_are_read(anonymous: Client) -> None:
    assert statuses(anonymous, b"Transfer-Encoding: chunked\r\n", b"/v1/query") == [401, 200]
