"""PostgreSQL's wire beside HTTP: the same point reads over both, and what they cost the server.

What counts is the CPU time of the server's process for a request, see `side_by_side`; a rate is its
reciprocal. Each request is a round trip, as libpq sends it (`pgbench -M simple|extended|prepared`).
"""

from __future__ import annotations

import argparse
import socket
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Final

from tests.pgwire import wire
from tests.processes.machine import port_of_no_client
from tests.speed import side_by_side
from tests.speed.side_by_side import KEY, ROWS, TABLE, encoded, give_way, make_database
from tests.web.contract.servers import Server, launch

DATABASE: Final = "points"
CONNECTIONS: Final = 32
READY: Final = b"Z\0\0\0\5I"
LITERAL: Final = "select n from t where id = {}"
BOUND: Final = "select n from t where id = $1"
RESULT: Final = wire.describe() + wire.execute() + wire.SYNC


def _literal_over_http(key: int) -> bytes:
    return encoded(LITERAL.format(key), None, DATABASE)


def _bound_over_http(key: int) -> bytes:
    return encoded(BOUND, key, DATABASE)


def _simple(key: int) -> bytes:
    return wire.query(LITERAL.format(key))


def _extended(key: int) -> bytes:
    return wire.parse(BOUND) + wire.bind([b"%d" % key]) + RESULT


def _prepared(key: int) -> bytes:
    return wire.bind([b"%d" % key], name="p") + RESULT


WORKS: Final[dict[str, tuple[Callable[[int], bytes], Callable[[int], bytes]]]] = {
    "simple": (_simple, _literal_over_http),
    "extended": (_extended, _bound_over_http),
    "prepared": (_prepared, _bound_over_http),
}
"""Each with the same over HTTP."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.speed.wire")
    parser.add_argument("--requests", type=int, default=16_000, help="for each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    found: dict[str, list[tuple[float, float]]] = {}
    for _ in range(options.rounds):
        with serving() as (made, port):
            make_database(made, DATABASE, TABLE)
            give_way(made)
            for work, (over_wire, over_http) in WORKS.items():
                costs = (
                    _cost(made, _over_wire(port), over_wire, options.requests),
                    _cost(made, _over_http(made.port), over_http, options.requests),
                )
                found.setdefault(work, []).append(costs)
    print(f"{'CPU µs a point read':24} {'wire':>8} {'HTTP':>8}   rate of the wire / of HTTP")
    for work, costs_of_work in found.items():
        by_wire, by_http = (median(each) for each in zip(*costs_of_work, strict=True))
        print(f"{work:24} {by_wire:8.1f} {by_http:8.1f}   {by_http / by_wire:.2f}")
    return 0


@contextmanager
def serving() -> Iterator[tuple[Server, int]]:
    """A server, and its port for clients of PostgreSQL."""
    port = port_of_no_client()
    settings = {"QSERVER_API_KEY": KEY, "QSERVER_PG_PORT": str(port)}
    with tempfile.TemporaryDirectory() as folder:
        made = launch("own", Path(folder), settings, by_command=True)
        try:
            made.wait_until_ready()
            yield made, port
        finally:
            made.stop()


class Client:
    """A connection with one request under way. `is_whole` says whether an answer has ended."""

    def __init__(self, port: int, is_whole: Callable[[bytes], bool]) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._is_whole = is_whole

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def answer(self) -> bytes:
        data = b""
        while not self._is_whole(data):
            more = self._socket.recv(65536)
            assert more, data
            data += more
        return data

    def close(self) -> None:
        self._socket.close()


def _over_http(port: int) -> Callable[[], Client]:
    def is_whole(data: bytes) -> bool:
        head, end, body = data.partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]
        return bool(end) and len(body) == int(length)

    return lambda: Client(port, is_whole)


def _over_wire(port: int) -> Callable[[], Client]:
    def connected() -> Client:
        client = Client(port, lambda data: data.endswith(READY))
        client.send(wire.startup(user="me", database=DATABASE) + wire.frame("p", wire.text(KEY)))
        client.answer()
        client.send(wire.parse(BOUND, name="p") + wire.SYNC)
        client.answer()
        return client

    return connected


def _cost(
    made: Server, connected: Callable[[], Client], request: Callable[[int], bytes], requests: int
) -> float:
    """CPU microseconds of the server for a request."""
    with ExitStack() as stack:
        clients = [connected() for _ in range(CONNECTIONS)]
        for client in clients:
            stack.callback(client.close)
        _ask(clients, request, requests // 10)
        before = sum(side_by_side.processor_seconds(made))
        asked = _ask(clients, request, requests)
        return (sum(side_by_side.processor_seconds(made)) - before) / asked * 1e6


def _ask(clients: Sequence[Client], request: Callable[[int], bytes], requests: int) -> int:
    rounds = max(requests // len(clients), 1)
    for at in range(rounds):
        key = at % ROWS + 1
        data, value = request(key), b"%d" % key
        for client in clients:
            client.send(data)
        for client in clients:
            assert value in client.answer()
    return rounds * len(clients)


if __name__ == "__main__":
    raise SystemExit(main())
