"""Reads the events of the changes of a database; no I/O.

change … ─► version ─► change … ─► version ─► …
└── a Version, when all of it has arrived; its number is where the next stream begins
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from qserver.client.events import EndlessStream, Event, decoded
from qserver.client.python_values import Row
from qserver.client.requests import Request


class Version(NamedTuple):
    """What a version has changed; each change is an object as the API has it."""

    version: int
    changes: list[dict[str, Any]]


class VersionsOfFeed(EndlessStream):
    """The state of a stream of changes: `version` is the last one that the caller got."""

    ended = "the stream of changes ended"
    go_on = "Go on with `version` as the next `since`."

    def __init__(self, behind: Callable[[int], Request], since: int) -> None:
        super().__init__(behind(since))
        self._behind = behind
        self.version: int = since
        self._changes: list[dict[str, Any]] = []

    def resumed(self) -> VersionsOfFeed:
        return VersionsOfFeed(self._behind, self.version)

    def seen(self, item: Version) -> bool:
        self.version = item.version
        return bool(item.changes)

    @property
    def has_begun(self) -> bool:
        """There may be nothing to read for long."""
        return True

    def event(self, event: Event) -> list[Row]:
        kind, data = event
        if kind == b"change":
            self._changes.append(decoded(data))
        elif kind == b"version":
            version = Version(decoded(data)["version"], self._changes)
            self._changes = []
            return [version]
        else:
            super().event(event)
        return []
