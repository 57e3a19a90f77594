"""Heads that were seen before, on whatever connection, with what was found out about them.

Clients say the same head again and again, to the letter. To parse it is to check it, and it is a
pure function of the bytes; so is the lane that it may take (see `asgi.Lane`).
"""

from __future__ import annotations

from qserver.limits import HEADS_KEPT_MAX
from qserver.web.http1.asgi import Lane, Lanes
from qserver.web.http1.head import Head, parse_head
from qserver.web.http1.options import ServerOptions

HEAD_KEPT_BYTES_MAX = 2048
"""A longer head is parsed each time: it is rare, and they are kept whole."""


class Heads:
    def __init__(self, options: ServerOptions, scheme: str, lanes: Lanes | None) -> None:
        self._options = options
        self._scheme = scheme
        self._lanes = lanes
        self._heads: dict[bytes, Head] = {}
        self._taken: dict[bytes, tuple[Head, Lane]] = {}

    def find(self, raw: bytes) -> Head:
        """The head, checked; raises `Refusal` when it is not one."""
        head = self._heads.get(raw)
        if head is None:
            head = parse_head(raw, self._options)
            if len(raw) <= HEAD_KEPT_BYTES_MAX:
                self._keep(raw, head)
        return head

    def lane(self, raw: bytes) -> tuple[Head, Lane] | None:
        """The lane of a head that was found before, if it has one."""
        return self._taken.get(raw)

    def _keep(self, raw: bytes, head: Head) -> None:
        if len(self._heads) >= HEADS_KEPT_MAX:
            self._heads.clear()
            self._taken.clear()
        self._heads[raw] = head
        if self._lanes is None or not _is_plain(head):
            return
        lane = self._lanes({"scheme": self._scheme, "headers": head.headers, **head.scope})
        if lane is not None:
            self._taken[raw] = (head, lane)


def _is_plain(head: Head) -> bool:
    """Does the answer need no more than a status, a length and a body, and the connection go on?"""
    return (
        head.keep_alive
        and head.modern
        and head.length is not None
        and not head.is_head
        and not head.expects_continue
    )
