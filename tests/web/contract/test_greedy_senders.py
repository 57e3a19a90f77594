"""Requests that never end: what has arrived of them counts, and past a bound one is refused."""

from __future__ import annotations

import json
import select
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_SECONDS
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
        refused: list[socket.socket] = []
        while len(refused) < SENDERS - 5:  # each has sent 4 of the 20 MiB
            more, _, _ = select.select(set(senders) - set(refused), [], [], PATIENCE_SECONDS)
            assert more, f"only {len(refused)} were refused"
            refused += more
        answers = [_answer(each) for each in refused]
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
    connection = socket.create_connection(
        ("127.0.0.1", client.server.port), timeout=PATIENCE_SECONDS
    )
    head = f"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n"
    connection.sendall(f"{head}Content-Length: {7 * MIB}\r\n\r\n".encode())
    try:
        connection.sendall(SENT)
    except OSError:
        pass  # it was refused, and the rest is not read
    return connection


def _answer(connection: socket.socket) -> Any:
    received = b""
    try:
        while part := connection.recv(65536):
            received += part
    except ConnectionResetError:
        pass  # the rest of the request was not read
    return json.loads(received.partition(b"\r\n\r\n")[2])
