"""Decides whether a request that failed is sent again, and when; no I/O.

    nothing was sent (08001)                              again
    the server says when to come back (429, 503, 409)     again, then
    no answer came (08006)                                again, if that cannot apply it twice
    anything else                                         raised

A request may be repeated if it only reads, has an Idempotency-Key, or commits an open transaction:
the server answers that again. Pauses grow, and have some chance in them, so that the clients of a
server that restarts do not come back all at once.
"""

from __future__ import annotations

from random import random
from typing import Final

from qserver.client.failures import ConnectionFailed, ConnectionLost
from qserver.client.requests import Request
from qserver.errors import Applied, DatabaseUnavailable, QserverError

PAUSE_SECONDS_MIN: Final = 0.05
PAUSE_SECONDS_MAX: Final = 5.0

_COME_BACK: Final = frozenset({409, 429, 503})
"""Statuses that say when, if they have a Retry-After."""


class Trials:
    """The tries of one request, or of one stream since it last got something."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._began: float | None = None
        self._tries = 0

    def succeed(self) -> None:
        self._began, self._tries = None, 0

    def pause_after(self, error: QserverError, request: Request, now: float) -> float | None:
        """Seconds until the request is sent again; None: the error is the answer."""
        if not may_send_again(error, request):
            return None
        if self._began is None:
            self._began = now
        pause = min(PAUSE_SECONDS_MAX, PAUSE_SECONDS_MIN * 2**self._tries) * (0.5 + random())
        pause = max(pause, float(vars(error).get("retry_after_seconds", 0)))
        self._tries += 1
        return pause if now + pause <= self._began + self._seconds else None


def may_send_again(error: QserverError, request: Request) -> bool:
    if not request.is_whole:
        return False  # its rows are used up
    if isinstance(error, ConnectionFailed):
        return True
    says_when = "retry_after_seconds" in vars(error) and vars(error)["http_status"] in _COME_BACK
    if says_when and error.applied is not Applied.UNKNOWN:
        return True
    lost = isinstance(error, ConnectionLost | DatabaseUnavailable) or says_when
    return lost and request.is_repeatable
