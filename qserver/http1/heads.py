"""Caches parsed heads of all connections, each with the endpoint that serves it.

Clients send the same head again, byte for byte. The parsed head and its endpoint are pure functions
of those bytes (see `application`).
"""

from __future__ import annotations

from qserver.http1.application import Application, Endpoint
from qserver.http1.head import Head, parse_head
from qserver.http1.options import ServerOptions
from qserver.limits import HEADS_KEPT_MAX

HEAD_KEPT_BYTES_MAX = 2048
"""A longer head is parsed each time: long heads are rare, and the cache stores whole heads."""


class Heads:
    def __init__(self, application: Application, options: ServerOptions) -> None:
        self._application = application
        self._options = options
        self.kept: dict[bytes, tuple[Head, Endpoint]] = {}

    def find(self, raw: bytes) -> tuple[Head, Endpoint]:
        """Parse a head that is not cached; raises `Refusal` if it is invalid."""
        head = parse_head(raw, self._options)
        found = head, self._application.endpoint(head.request)
        if len(raw) <= HEAD_KEPT_BYTES_MAX:
            if len(self.kept) >= HEADS_KEPT_MAX:
                self.kept.clear()
            self.kept[raw] = found
        return found
