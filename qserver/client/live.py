"""Reads the events of a live query; no I/O.

    columns ─► row … ─► ready ─► delete … insert … version ─► delete … insert … version ─► …
               └── rows, at the version of `ready`      └── a Change, applied to `rows`

Rows are a multiset: a deleted row is one that is there, by the JSON that the server wrote.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from qserver.client.answers import Row, row_of
from qserver.client.events import EndlessStream, Event, decoded
from qserver.client.failures import unexpected_answer


class Change(NamedTuple):
    """What a version, or several together, changed of the result."""

    version: int
    deleted: list[Row]
    inserted: list[Row]


class LiveRows(EndlessStream):
    """The state of a live query: its result at the newest version that has arrived."""

    ended = "the live query ended"
    go_on = "Open it again: it begins with the whole result."

    def __init__(self) -> None:
        super().__init__()
        self._found: dict[bytes, list[Row]] = {}
        self._deleted: list[Row] = []
        self._inserted: list[Row] = []
        self._is_ready = False

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
            self._inserted.append(self._add(data))
        elif kind == b"delete":
            self._deleted.append(self._remove(data))
        elif kind == b"ready":
            self._is_ready = True
            self.version = decoded(data)["version"]
        elif kind == b"version":
            self.version = version = decoded(data)["version"]
            change = Change(version, self._deleted, self._inserted)
            self._deleted, self._inserted = [], []
            return [change]
        else:
            super().event(event)
        return []

    def _add(self, data: bytes) -> Row:
        row = row_of(decoded(data), self.columns)
        self._found.setdefault(data, []).append(row)
        return row

    def _remove(self, data: bytes) -> Row:
        alike = self._found.get(data)
        if not alike:
            raise unexpected_answer(200, data)
        row = alike.pop()
        if not alike:
            del self._found[data]
        return row


class LiveResult:
    """The properties of a live query, for both flavours."""

    _rows: Any

    @property
    def rows(self) -> list[Row]:
        """The result at `version`, in no particular order."""
        found: list[Row] = self._rows.rows
        return found
