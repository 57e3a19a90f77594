"""A client with one request after the other, in a process of its own, while others attack.

    python heartbeat.py <url> <key> <pid of the server> [<pulse, as JSON>]

It prints a line for each beat: what was asked, when it was answered, how long it took, and how much
processor time the server's loop used meanwhile. The last is what a neighbour really waits for: a
machine that is busy with other work stretches the time on the clock, and not that.
"""

from __future__ import annotations

import http.client
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Ask:
    """A request, sent so many times in a row."""

    name: str
    sql: str
    rows: list[dict[str, Any]]
    """The right answer."""
    params: list[Any] = field(default_factory=list)
    times: int = 1


@dataclass(frozen=True)
class Pulse:
    """Requests that are sent round and round, with a pause after each."""

    asks: list[Ask]
    pause_seconds: float

    def text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, text: str) -> Pulse:
        found = json.loads(text)
        return cls([Ask(**each) for each in found["asks"]], found["pause_seconds"])

    def __iter__(self) -> Iterator[Ask]:
        while True:
            for ask in self.asks:
                for _ in range(ask.times):
                    yield ask


POINT_READ = Ask("read", "select name from beats where id = ?", [{"name": "seven"}], [7])
POINT_READS = Pulse([POINT_READ], 0.01)


def main(url: str, key: str, pid: int, pulse: Pulse = POINT_READS) -> None:
    address = urlsplit(url)
    assert address.hostname is not None
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=120)
    for ask in pulse:
        body = json.dumps({"sql": ask.sql, "params": ask.params})
        began, used = time.monotonic(), loop_seconds(pid)
        connection.request("POST", "/v1/query", body, headers)
        answer = connection.getresponse()
        content = json.loads(answer.read())
        ended = time.monotonic()
        good = content["success"] and content["rows"] == ask.rows
        status = answer.status if good or answer.status != 200 else -1
        print(ask.name, ended, ended - began, loop_seconds(pid) - used, status, flush=True)
        time.sleep(pulse.pause_seconds)


def loop_seconds(pid: int) -> float:
    """Processor time of the thread that the server's loop runs in."""
    nanoseconds = Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]
    return int(nanoseconds) / 1e9


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), *map(Pulse.read, sys.argv[4:]))
