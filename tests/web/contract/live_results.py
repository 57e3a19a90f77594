"""The reader of a live query: applies its events to a multiset."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from qserver.limits import KEEP_ALIVE_SECONDS
from tests.web.contract.connections import Event, OpenStream
from tests.web.contract.servers import Client


def multiset(rows: list[Any]) -> Counter[str]:
    return Counter(json.dumps(row, sort_keys=True) for row in rows)


class LiveResult:
    """A live query over a socket. After `until`, `result` is the result at `version`."""

    def __init__(self, client: Client, sql: str, **fields: Any) -> None:
        self.stream = OpenStream(client, sql, **({"live": True} | fields))
        self.stream.socket.settimeout(KEEP_ALIVE_SECONDS - 2)  # a keep-alive would hide a silence
        self._events = self.stream.events()
        self.result: Counter[str] = Counter()
        self.version = 0
        self.versions: list[int] = []
        columns = next(self._events)
        assert columns.kind == "columns", columns
        for event in self._events:
            if event.kind == "ready":
                self.version = event.data["version"]
                assert event.data["row_count"] == self.result.total()
                assert columns.data["version"] == self.version
                return
            assert event.kind == "row", event
            self.result[json.dumps(event.data, sort_keys=True)] += 1
        raise AssertionError("it ended before it was ready")

    def __enter__(self) -> LiveResult:
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.socket.close()

    def events(self) -> Iterator[Event]:
        """Apply and hand out events."""
        for event in self._events:
            line = json.dumps(event.data, sort_keys=True)
            if event.kind == "insert":
                self.result[line] += 1
            elif event.kind == "delete":
                assert self.result[line] > 0, "only what is there is deleted"
                self.result[line] -= 1
            elif event.kind == "version":
                assert event.data["version"] > self.version
                self.version = event.data["version"]
                self.versions.append(self.version)
            yield event

    def until(self, version: int) -> None:
        """Read until the result is at this version or a later one."""
        for _ in self.events():
            if self.version >= version:
                return
        raise AssertionError("it ended")

    def error(self) -> dict[str, Any]:
        """Read to the end, which must be an error."""
        (*_, last) = self.events()
        assert last.kind == "error", last
        found: dict[str, Any] = last.data["error"]
        return found
