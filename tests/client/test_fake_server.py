"""The server of the other tests: a client that hangs up is nothing to report, a failure is."""

from __future__ import annotations

import socket
import struct
import threading

import pytest

from tests.client.fake_server import KEY, Answer, FakeServer, Received

REQUEST = f"GET / HTTP/1.1\r\nAuthorization: Bearer {KEY}\r\n\r\n".encode()


def ended_handlers(before: set[threading.Thread]) -> None:
    for thread in set(threading.enumerate()) - before:
        thread.join()


def connected(server: FakeServer) -> socket.socket:
    host, port = server.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)))


def test_a_client_that_resets_its_connection_is_not_reported(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with FakeServer() as server:
        before = set(threading.enumerate())
        client = connected(server)
        client.sendall(REQUEST)
        assert client.recv(1), "it is served, and its handler waits for more"
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        ended_handlers(before)
    assert capfd.readouterr() == ("", "")


def test_what_goes_wrong_in_an_answer_is_raised_when_the_server_is_left() -> None:
    def fail(received: Received) -> Answer:
        raise ValueError("no such answer")

    with pytest.raises(ExceptionGroup, match="while the server answered"), FakeServer() as server:
        before = set(threading.enumerate())
        server.route("GET", "/", fail)
        with connected(server) as client:
            client.sendall(REQUEST)
            assert client.recv(1) == b""
        ended_handlers(before)
