"""Streams without an end when their server stops: each is told, and none holds the server up."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.contract.connections import OpenFeed
from tests.web.contract.live_results import LiveResult
from tests.web.contract.servers import KINDS, Client, Kind, Server, start

KEY = "svc_k_stop_0123456789ab"


@pytest.fixture(params=KINDS)
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    kind: Kind = request.param
    server = start(kind, tmp_path, {"QSERVER_API_KEY": KEY}, grace_seconds=1)
    try:
        yield server
    finally:
        server.kill()


@pytest.mark.long
def test_streams_are_told_that_the_server_stops(server: Server) -> None:
    client = Client(server, KEY)
    since = client.query("create table t (id int primary key, v text)")["version"]
    with OpenFeed(client, f"since={since}") as feed, LiveResult(client, "select v from t") as live:
        version = client.query("insert into t values (1, 'one')")["version"]
        assert len(feed.until(version)) == 2
        live.until(version)
        server.process.send_signal(signal.SIGTERM)
        assert feed.error()["code"] == "57P03"
        assert live.error()["code"] == "57P03"
    assert server.process.wait() == 0, server.output


@pytest.mark.long
def test_a_reader_that_never_reads_does_not_hold_up_the_stop(server: Server) -> None:
    client = Client(server, KEY)
    since = client.query("create table t (id int primary key, v text)")["version"]
    with OpenFeed(client, f"since={since}") as feed, LiveResult(client, "select v from t") as live:
        for each in (feed.socket, live.stream.socket):
            each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        for number in range(8):  # more than the sockets hold
            rows = "select $1 * 100 + n, repeat('x', 60000) from generate_series(1, 20) n"
            client.query(f"insert into t {rows}", [number])
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait() == 0, server.output
