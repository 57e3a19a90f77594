"""Reads the events of a live query; no I/O.

    columns ─► row … ─► ready ─► delete … insert … version ─► delete … insert … version ─► …
               └── rows, at the version of `ready`      └── a Change, applied to `rows`

Rows are a multiset: a deleted row is one that is there, by the JSON that the server wrote. `rows`
and `version` are those of the last change that the caller got, whatever has arrived since.

A broken stream is opened again, and begins with the whole result: what differs from the one that
the caller has is the next change.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

from qserver.client.events import EndlessStream, Event, decoded
from qserver.client.failures import unexpected_answer
from qserver.client.python_values import Row, Values
from qserver.client.requests import Request


class Change(NamedTuple):
    """What a version, or several together, changed of the result."""

    version: int
    deleted: list[Row]
    inserted: list[Row]


class LiveRows(EndlessStream):
    """The state of a live query: its result at the newest version that has arrived."""

    ended = "the live query ended"
    go_on = "Open it again: it begins with the whole result."

    def __init__(
        self, request: Request, values: Values = "json", before: LiveRows | None = None
    ) -> None:
        super().__init__(request, values)
        self._before = before
        self._found: dict[bytes, list[Row]] = {}
        self._deleted: list[bytes] = []
        self._inserted: list[bytes] = []
        self._arrived: deque[tuple[list[bytes], list[bytes]]] = deque()
        """Of each change that the caller has not got yet, the rows as they came."""
        self._is_ready = False

    def resumed(self) -> LiveRows:
        """It begins with the whole result: what differs from this one is its first change."""
        return LiveRows(self.request, self.values, self if self._is_ready else self._before)

    @property
    def has_begun(self) -> bool:
        return self._is_ready

    @property
    def rows(self) -> list[Row]:
        return [row for alike in self._found.values() for row in alike]

    def event(self, event: Event) -> list[Row]:
        kind, data = event
        if kind == b"row":
            self._add(data)
        elif kind == b"insert":
            self._inserted.append(data)
        elif kind == b"delete":
            self._deleted.append(data)
        elif kind == b"ready":
            self._is_ready = True
            self.version = decoded(data)["version"]
            return self._change_since(self._before)
        elif kind == b"version":
            deleted, inserted = self._deleted, self._inserted
            self._deleted, self._inserted = [], []
            return [self._change(decoded(data)["version"], deleted, inserted)]
        else:
            super().event(event)
        return []

    def seen(self, item: Change) -> bool:
        deleted, inserted = self._arrived.popleft()
        for data in deleted:
            self._remove(data)
        for data in inserted:
            self._add(data)
        self.version = item.version
        return True

    def _change(self, version: int, deleted: list[bytes], inserted: list[bytes]) -> Change:
        self._arrived.append((deleted, inserted))
        return Change(version, self._rows_of(deleted), self._rows_of(inserted))

    def _change_since(self, before: LiveRows | None) -> list[Row]:
        """What differs from the result that the caller has; it is seen as a change."""
        self._before = None
        if before is None:
            return []
        now, self._found = self._found, before._found
        deleted, inserted = _less(self._found, now), _less(now, self._found)
        if not deleted and not inserted:
            return []
        assert self.version is not None, "`ready` has it"
        return [self._change(self.version, deleted, inserted)]

    def _rows_of(self, many: list[bytes]) -> list[Row]:
        return [self.row(data) for data in many]

    def _add(self, data: bytes) -> None:
        self._found.setdefault(data, []).append(self.row(data))

    def _remove(self, data: bytes) -> None:
        alike = self._found.get(data)
        if not alike:
            raise unexpected_answer(200, data)
        alike.pop()
        if not alike:
            del self._found[data]


def _less(rows: dict[bytes, list[Row]], others: dict[bytes, list[Row]]) -> list[bytes]:
    """What a multiset has and another one has not."""
    return [
        data for data, alike in rows.items() for _ in range(len(alike) - len(others.get(data, ())))
    ]


class LiveResult:
    """The properties of a live query, for both flavours."""

    _reader: Any

    @property
    def rows(self) -> list[Row]:
        """The result at `version`, in no particular order."""
        found: list[Row] = self._reader.rows.rows
        return found
