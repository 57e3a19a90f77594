"""A statement whose client has left ends, on our server and on another one."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pytest

from tests.patience import eventually
from tests.web.contract.servers import KINDS, Client, Kind, Server, start

KEY = "svc_k_leaving_0123456789"
SETTINGS = {"QSERVER_API_KEY": KEY, "QSERVER_STATEMENT_TIMEOUT": "3600"}
ENDLESS = "select count(*) from generate_series(1, 1000000000000) s(i) where i % 7 = 3"


@pytest.fixture(params=KINDS)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    kind: Kind = request.param
    made = start(kind, tmp_path_factory.mktemp(kind), SETTINGS)
    yield made
    made.kill()


def connections(server: Server) -> int:
    found = Client(server, KEY).get("/v1/organization")
    assert found.status_code == 200, found.text
    count: int = found.json()["use"]["connections"]
    return count


@pytest.mark.long
@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_statement_ends_when_its_client_has_left(server: Server, how: str) -> None:
    body = json.dumps({"sql": ENDLESS}).encode()
    lines = ["POST /v1/query HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {KEY}"]
    lines += ["Content-Type: application/json", f"Content-Length: {len(body)}", "", ""]
    before = connections(server)
    with socket.create_connection(("127.0.0.1", server.port)) as connected:
        connected.sendall("\r\n".join(lines).encode() + body)
        eventually(lambda: connections(server) > before, "it does not begin")
        if how == "reset":
            linger = (1).to_bytes(4, "little") + bytes(4)
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    eventually(lambda: connections(server) <= before, "it goes on")
