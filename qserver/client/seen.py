"""The newest version that a client has seen of each database; no I/O.

    answers ─► note ─► the newest ─► with_token ─► X-Min-Version of reads that a replica may answer

A replica that lacks that version waits for it: such a read never goes back behind what the client
wrote or read before. Other reads see every acknowledged commit anyway, and carry nothing.

A database that was deleted and made anew counts from 0 again. Then the server refuses the version:
it is forgotten, and the read is sent as an ordinary one.
"""

from __future__ import annotations

from dataclasses import replace
from threading import Lock

from qserver.client.requests import Request


class SeenVersions:
    """By the name by which the client calls a database; the key's own has the name ""."""

    def __init__(self) -> None:
        self._newest: dict[str, int] = {}
        self._lock = Lock()  # a client may be used by several threads

    def note(self, name: str | None, version: object) -> None:
        """Note the version of an answer; without a name, it is not of a database."""
        if name is None or not isinstance(version, int):
            return
        with self._lock:
            self._newest[name] = max(version, self._newest.get(name, 0))

    def newest(self, name: str) -> int | None:
        return self._newest.get(name)

    def forget(self, name: str | None) -> None:
        if name is not None:
            with self._lock:
                self._newest.pop(name, None)

    def with_token(self, request: Request) -> Request:
        """The request, with the version that its answer must not be older than."""
        if not request.wants_token or request.versions_of is None:
            return request
        return replace(request, min_version=self.newest(request.versions_of))
