"""CORS: which web pages may call. There are no cookies, so a page has only the key it was given."""

from __future__ import annotations

from typing import Final

from qserver.web.statuses import Pairs

EXPOSED: Final = (
    b"x-request-id, ratelimit, ratelimit-policy, retry-after, etag, location, idempotency-replayed"
)
ALLOWED: Final = (
    b"authorization, content-type, accept, x-database, x-transaction, x-min-version,"
    b" x-request-id, idempotency-key, if-none-match, last-event-id, neon-connection-string,"
    b" neon-raw-text-output, neon-array-mode, neon-pool-opt-in, neon-batch-isolation-level,"
    b" neon-batch-read-only, neon-batch-deferrable"
)
METHODS: Final = b"GET, HEAD, POST, PATCH, DELETE, OPTIONS"
MAX_AGE_SECONDS: Final = b"86400"


class Cors:
    def __init__(self, origins: tuple[str, ...]) -> None:
        self._all = "*" in origins
        self._origins = frozenset(origin.encode() for origin in origins)

    def answer(self, origin: bytes | None) -> Pairs:
        """The headers of an ordinary answer to a page of that origin."""
        if self._all:
            if origin is None:
                return []
            return [
                (b"access-control-allow-origin", b"*"),
                (b"access-control-expose-headers", EXPOSED),
            ]
        if origin not in self._origins or origin is None:
            return [(b"vary", b"Origin")]
        return [
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", EXPOSED),
            (b"vary", b"Origin"),
        ]

    def preflight(self, origin: bytes | None) -> Pairs:
        """The additional headers of an answer to OPTIONS."""
        if not self._all and origin not in self._origins:
            return []
        return [
            (b"access-control-allow-methods", METHODS),
            (b"access-control-allow-headers", ALLOWED),
            (b"access-control-max-age", MAX_AGE_SECONDS),
        ]
