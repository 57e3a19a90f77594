"""A client with one point query after the other, in a process of its own, while others attack.

    python heartbeat.py <url> <key> <pid of the server>

It prints a line for each beat: when it was answered, how long it took, and how much processor time
the server's loop used meanwhile. The last is what a neighbour really waits for: a machine that is
busy with other work stretches the time on the clock, and not that.
"""

from __future__ import annotations

import http.client
import json
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

PAUSE_SECONDS = 0.01


def main(url: str, key: str, pid: int) -> None:
    address = urlsplit(url)
    assert address.hostname is not None
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    body = json.dumps({"sql": "select name from beats where id = ?", "params": [7]})
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=120)
    while True:
        began, used = time.monotonic(), loop_seconds(pid)
        connection.request("POST", "/v1/query", body, headers)
        answer = connection.getresponse()
        content = json.loads(answer.read())
        ended = time.monotonic()
        good = content.get("rows") == [{"name": "seven"}]
        line = (ended, ended - began, loop_seconds(pid) - used, answer.status if good else -1)
        print(*line, flush=True)
        time.sleep(PAUSE_SECONDS)


def loop_seconds(pid: int) -> float:
    """Processor time of the thread that the server's loop runs in."""
    nanoseconds = Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]
    return int(nanoseconds) / 1e9


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
