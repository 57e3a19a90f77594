"""Heads that were seen before, on whatever connection, each with the endpoint that serves it.

Clients send the same head again and again, to the letter. To parse it is to check it, and it is a
pure function of the bytes; so is the endpoint (see `application`).
"""

from __future__ import annotations

from qserver.http1.application import Application, Endpoint
from qserver.http1.head import Head, parse_head
from qserver.http1.options import ServerOptions
from qserver.limits import HEADS_KEPT_MAX

HEAD_KEPT_BYTES_MAX = 2048
"""A longer head is parsed each time: it is rare, and they are kept whole."""


class Heads:
    def __init__(self, application: Application, options: ServerOptions) -> None:
        self._application = application
        self._options = options
        self.kept: dict[bytes, tuple[Head, Endpoint]] = {}

    def find(self, raw: bytes) -> tuple[Head, Endpoint]:
        """For a head that is not kept; raises `Refusal` when it is none."""
        head = parse_head(raw, self._options)
        found = head, self._application.endpoint(head.request)
        if len(raw) <= HEAD_KEPT_BYTES_MAX:
            if len(self.kept) >= HEADS_KEPT_MAX:
                self.kept.clear()
            self.kept[raw] = found
        return found
