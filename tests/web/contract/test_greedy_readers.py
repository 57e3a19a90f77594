"""Readers that read nothing: what is made for them counts as memory, and past that they are cut."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.contract.servers import KINDS, Client, Kind, start

KEY = "svc_k_greedy_0123456789"
MIB = 1024 * 1024
BEGINNING_BYTES = 16 * 1024
READERS = 36
SETTINGS = {"QSERVER_API_KEY": KEY, "QSERVER_MEMORY_BYTES_MAX": str(40 * MIB)}


@pytest.fixture(params=KINDS)
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Client]:
    kind: Kind = request.param
    server = start(kind, tmp_path, SETTINGS)
    try:
        client = Client(server, KEY)
        client.query("create table t (id int primary key, s text)")
        for number in range(3):
            client.query("insert into t values ($1, repeat('x', $2))", [number, 4 * MIB])
        yield client
        assert "Traceback" not in server.output, server.output
    finally:
        server.kill()


@pytest.mark.long
def test_what_nobody_reads_is_bounded_for_all_together(client: Client) -> None:
    since = client.query("select 1")["version"] - 3
    before = client.server.memory_bytes()
    query = json.dumps({"sql": "select s from t", "live": True})
    streamed = json.dumps({"sql": "/*+ STREAM */ select s from t"})
    requests = [
        ("POST /v1/query", query, ""),
        ("POST /v1/query", streamed, ""),
        (f"GET /v1/changes?since={since}", "", "Accept: text/event-stream\r\n"),
    ]
    greedy = [_asked(client, *requests[number % 3]) for number in range(READERS)]
    try:
        ends = [_read(each) for each in greedy[-3:]]
        cut = [each for each in ends if b"event: error" in each]
        assert cut and all(b'"53200"' in each for each in cut), [each[-200:] for each in ends]
        grown = client.server.memory_bytes() - before
        assert grown < READERS * 4 * MIB, "of 36 readers, each with 4 MiB or more"
        assert client.value("select count(*) from t") == 3, "others go on"
    finally:
        for each in greedy:
            each.close()
    answer = client.post("/v1/query", {"sql": "/*+ STREAM */ select s from t"})
    assert "event: done" in answer.text[-1000:], "what they held was given back"


def _asked(client: Client, what: str, body: str, more: str) -> socket.socket:
    """Send a request with a small buffer for its answer, and wait until that has begun."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(60)
    connection.connect(("127.0.0.1", client.server.port))
    head = f"{what} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n{more}"
    connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
    assert connection.recv(12) == b"HTTP/1.1 200"
    return connection


def _read(connection: socket.socket) -> bytes:
    """Read the beginning of an answer, which is all of it if it was cut off."""
    connection.settimeout(5)
    text = b""
    try:
        while len(text) < BEGINNING_BYTES and not text.endswith(b"\r\n0\r\n\r\n"):
            piece = connection.recv(65536)
            if not piece:
                break
            text += piece
    except TimeoutError:
        pass
    return text
