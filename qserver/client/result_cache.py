"""Answers of queries by URL that the client keeps, each with its tag.

    read ─► the tag of the kept answer ─► server ─┬─ 304: the kept answer still holds
                                                  └─ 200: the new one is kept instead

The server decides each time whether an answer holds, so what `read` returns is never old. The cache
holds bodies as they came: a caller may do as it likes with the rows that it was given.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Any, Final

from qserver.client.answers import success_of
from qserver.client.requests import Kept, Request

NOT_MODIFIED: Final = 304
_ENTRY_BYTES: Final = 1000
"""What an entry takes beside its body, about."""


class ResultCache:
    """At most so many bytes of answers; the one that was longest not asked for goes first."""

    def __init__(self, bytes_most: int) -> None:
        self.bytes = 0
        self._bytes_most = bytes_most
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._lock = Lock()  # a client may be used by several threads

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, request: Request) -> Kept | None:
        if not request.cacheable:
            return None
        with self._lock:
            kept = self._kept.get(request.path)
            if kept is not None:
                self._kept.move_to_end(request.path)
            return kept

    def answer(
        self,
        request: Request,
        kept: Kept | None,
        status: int,
        headers: Mapping[str, str],
        body: bytes,
    ) -> dict[str, Any]:
        """The object of an answer: of the kept one if the server says that it holds."""
        if status == NOT_MODIFIED and kept is not None:
            return {**success_of(200, {}, kept.body), "unchanged": True}
        found = success_of(status, headers, body)
        tag = headers.get("etag")
        if request.cacheable and tag is not None:
            self._keep(request.path, Kept(tag, body))
        return found

    def _keep(self, path: str, kept: Kept) -> None:
        size = _size(path, kept)
        with self._lock:
            before = self._kept.pop(path, None)
            if before is not None:
                self.bytes -= _size(path, before)
            if size > self._bytes_most:
                return
            self._kept[path] = kept
            self.bytes += size
            while self.bytes > self._bytes_most:
                self.bytes -= _size(*self._kept.popitem(last=False))


def _size(path: str, kept: Kept) -> int:
    return _ENTRY_BYTES + len(path) + len(kept.body)
