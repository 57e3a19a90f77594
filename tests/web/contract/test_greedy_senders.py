"""Requests that never end: what has arrived of them counts, and past a bound one is refused."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from tests.web.contract.servers import KINDS, Client, Kind, start

KEY = "svc_k_greedy_0123456789"
MIB = 1024 * 1024
SENDERS = 12
SENT = b'{"sql": "select 1", "params": ["' + b"x" * (4 * MIB)
SETTINGS = {"QSERVER_API_KEY": KEY, "QSERVER_MEMORY_BYTES_MAX": str(20 * MIB)}


@pytest.mark.parametrize("kind", KINDS)
def test_what_arrives_is_bounded_for_all_together(kind: Kind, tmp_path: Path) -> None:
    server = start(kind, tmp_path, SETTINGS)
    try:
        client = Client(server, KEY)
        senders = [_sent(client) for _ in range(SENDERS)]
        assert client.value("select 1") == 1, "others go on"
        answers = [answer for each in senders if (answer := _answer(each))]
        assert len(answers) >= SENDERS - 5, "each has sent 4 of the 20 MiB"
        for answer in answers:
            assert answer["error"]["code"] == "53200"
            assert "requests that are arriving" in answer["error"]["detail"]
        for each in senders:
            each.close()
        text = "x" * 6 * MIB
        assert client.value("select length($1::text)", [text]) == len(text), "it was given back"
        assert "Traceback" not in server.output, server.output
    finally:
        server.kill()


def _sent(client: Client) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", client.server.port), timeout=60)
    head = f"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n"
    connection.sendall(f"{head}Content-Length: {7 * MIB}\r\n\r\n".encode())
    try:
        connection.sendall(SENT)
    except OSError:
        pass  # it was refused, and the rest is not read
    return connection


def _answer(connection: socket.socket) -> dict[str, dict[str, str]] | None:
    """Return the answer; None: the server waits for the rest."""
    connection.settimeout(1)
    received = b""
    try:
        while part := connection.recv(65536):
            received += part
    except OSError:
        pass
    body = received.partition(b"\r\n\r\n")[2]
    return json.loads(body) if body else None
