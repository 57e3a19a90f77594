"""Crowds: all that a hostile organization can do at length, a class of it at a time.

A crowd begins when it is made, goes on from threads of its own, and is gone after `end`: each of
its connections is then cut.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import count
from types import MappingProxyType
from typing import Any, Final

from tests.hostile.attacks import TIMEOUT_MS, Attacker, encode

HELD: Final = 200
"""Connections of a crowd that wait: for a step, for a change, or for nothing."""

AT_WORK: Final = 8
"""Threads of a crowd that send one request after the other."""

LEAST_PRIORITY: Final = 19

HEAVY: Final = "select count(*) from generate_series(1, 100000000) s(i) where i % 7 = 3"
WIDE: Final = "select i, repeat('x', 1000) as x from generate_series(1, {}) s(i)"
WATCHED: Final = "select b % 10 as digit, count(*), sum(b) from many group by b % 10"
CHANGE: Final = "insert into many (b) select i from generate_series(1, 100) s(i)"
FILL: Final = "insert into many (b) select i from generate_series(1, 20000) s(i)"
LINES: Final = b"".join(b'{"b":%d,"a":"%b"}\n' % (n, b"x" * 200) for n in range(20_000))
TABLE: Final = "create table many (id int generated always as identity primary key, b int, a text)"
ROWS: Final = "insert into many (b) select i from generate_series(1, 5000) s(i)"


class Crowd(Attacker):
    """A hostile organization at work."""

    def __init__(self, address: tuple[str, int], key: str, work: Callable[[Crowd], None]) -> None:
        super().__init__(address, key, "main")
        self.numbers = count()
        self.outcomes: Counter[object] = Counter()
        """Of what it does again and again."""
        self.ended = threading.Event()
        self._connected: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        work(self)

    def end(self) -> None:
        self.ended.set()
        for connected in list(self._connected):
            with suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for connected in self._connected:
            connected.close()

    def connect(self) -> socket.socket:
        if self.ended.is_set():
            raise ConnectionAbortedError("the crowd goes")
        connected = super().connect()
        self._connected.add(connected)
        return connected

    def again(self, work: Callable[[], object], threads: int = AT_WORK) -> None:
        """Do it again and again, in some threads."""

        def run() -> None:
            while not self.ended.is_set():
                with suppress(OSError):
                    self.outcomes[work()] += 1

        self._start(run, threads)

    def hold(self, head: bytes, body: bytes = b"", connections: int = HELD) -> list[socket.socket]:
        """Send a request on so many connections, and leave it at that."""
        held = [self.connect() for _ in range(connections)]
        for connected in held:
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connected.sendall(head + body)
        return held

    def read(self, held: list[socket.socket]) -> None:
        """Read all that comes."""
        for connected in held:
            self._start(lambda connected=connected: _read(connected))  # type: ignore[misc]

    def held_query(self, sql: str, **fields: Any) -> list[socket.socket]:
        body = encode({"sql": sql, "database": self._database, **fields})
        return self.hold(self.head("/v1/query", len(body)), body)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request, and return what the answer says."""
        data = b"" if body is None else encode(body)
        with self.connect() as connected:
            connected.sendall(self.head(path, len(data), method=method) + data)
            answer = b""
            while chunk := connected.recv(1 << 16):
                answer += chunk
        return json.loads(answer.partition(b"\r\n\r\n")[2] or b"{}")

    def _start(self, run: Callable[[], object], threads: int = 1) -> None:
        made = [threading.Thread(target=_in_the_background, args=(run,)) for _ in range(threads)]
        self._threads += made
        for thread in made:
            thread.start()


def _in_the_background(run: Callable[[], object]) -> None:
    """Leave the processor to the server, as a crowd on machines of its own does."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LEAST_PRIORITY)
    run()


def _read(connected: socket.socket) -> None:
    with suppress(OSError):
        while connected.recv(1 << 16):
            pass


def _heavy_statements(crowd: Crowd) -> None:
    crowd.held_query(HEAVY, timeout_ms=TIMEOUT_MS)


def _open_transactions(crowd: Crowd) -> None:
    """Fill them, until there is no memory; then give some of it back."""

    def fill() -> str:
        opened = crowd.call("POST", "/v1/transaction/open")
        if not opened["success"]:
            return str(opened["error"]["code"])
        transaction = opened["transaction"]["id"]
        while (outcome := crowd.query(FILL, transaction=transaction)) == "ok":
            pass
        crowd.call("DELETE", f"/v1/transaction/{transaction}")
        return outcome

    crowd.again(fill)


def _unread_streams(crowd: Crowd) -> None:
    crowd.held_query(f"/*+ STREAM */ {WIDE.format(1_000_000)}")


def _feeds(crowd: Crowd) -> None:
    head = crowd.head("/v1/changes?since=0", 0, method="GET")
    events = b"\r\nAccept: text/event-stream\r\n\r\n"
    crowd.read(crowd.hold(head.removesuffix(b"\r\n\r\n") + events, connections=HELD // 2))
    crowd.again(lambda: crowd.query(CHANGE))


def _live_queries(crowd: Crowd) -> None:
    crowd.read(crowd.held_query(WATCHED, live=True))
    crowd.again(lambda: crowd.query(CHANGE))


def _large_answers(crowd: Crowd) -> None:
    crowd.again(lambda: crowd.query(WIDE.format(20_000)))


def _bulk_bodies(crowd: Crowd) -> None:
    crowd.again(lambda: crowd.bulk("many", "application/x-ndjson", LINES))


def _idle_connections(crowd: Crowd) -> None:
    crowd.hold(b"", connections=HELD)
    crowd.hold(crowd.head("/v1/query", 8_000_000), b'{"sql":"', connections=HELD)


def _branches(crowd: Crowd) -> None:
    def make() -> str:
        name = f"branch-{next(crowd.numbers)}"
        made = crowd.call("POST", "/v1/databases", {"name": name, "branch_of": "main"})
        crowd.call("DELETE", f"/v1/databases/{name}")
        return "ok" if made["success"] else str(made["error"]["code"])

    crowd.again(make)


CROWDS: Final[Mapping[str, Callable[[Crowd], None]]] = MappingProxyType(
    {
        "heavy statements": _heavy_statements,
        "unread streams": _unread_streams,
        "feeds and writers": _feeds,
        "live queries and writers": _live_queries,
        "large answers": _large_answers,
        "bulk bodies": _bulk_bodies,
        "idle connections": _idle_connections,
        "making branches": _branches,
        "open transactions": _open_transactions,
    }
)
"""The last one leaves transactions behind, which hold memory until they have been idle for long."""
