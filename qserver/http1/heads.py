"""Caches parsed heads of all connections, each with the endpoint that serves it.

Clients send the same head again, byte for byte. The parsed head and its endpoint are pure functions
of those bytes (see `application`): what is cached is what `parse` returns for them, no more.

A value that is another in each request would defeat this. `head.Cutter` cuts it out, for endpoints
that do not depend on it (`takes_values`).

Not done: to parse each head, and to cache only the endpoint, by what was parsed. In Python 3.11 a
point read takes 1,911 bytecode instructions and 29 µs behind its head, and may take 3 % more.

    a head of nine headers     from the cache           parsed, then its endpoint
    the same bytes again       28 instr.,  0.2 µs       879 instr., 21 µs
    another X-Request-Id       165 instr., 6 µs         1,095 instr., 24 µs

llhttp with its callback alone takes 199 and 4.5 µs, so no other parser around it would do.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from qserver.http1.application import ONLY_ID, Application, Endpoint, Varying
from qserver.http1.head import Cutter, Head, parse_head
from qserver.http1.options import ServerOptions
from qserver.limits import HEADS_KEPT_MAX

HEAD_KEPT_BYTES_MAX = 2048
"""A longer head is parsed each time: long heads are rare, and the cache stores whole heads."""


class Heads:
    def __init__(self, application: Application, options: ServerOptions) -> None:
        self._application = application
        self._options = options
        self._varying: Varying = getattr(application, "varying", ONLY_ID)
        self._cutter = Cutter(self._varying)
        self.kept: dict[bytes, tuple[Head, Endpoint]] = {}
        limits = options.headers_bytes_max, options.line_bytes_max
        self._kept_bytes_max = min(HEAD_KEPT_BYTES_MAX, *limits)

    def find(self, raw: bytes) -> tuple[Head, Endpoint]:
        """Return what `parse` returns, for bytes that are not cached as they are."""
        if len(raw) > self._kept_bytes_max:  # before it is cut: limits are for whole heads
            return self.parse(raw)
        usual, values = self._cutter.cut(raw)
        head, endpoint = self.kept.get(usual) or self._keep(usual)
        if not values:
            return head, endpoint
        is_shared: bool = getattr(endpoint, "takes_values", False)
        if not is_shared or not values.keys() <= head.values.keys():
            return self.parse(raw)
        return msgspec.structs.replace(head, values={**head.values, **values}), endpoint

    def parse(self, raw: bytes) -> tuple[Head, Endpoint]:
        """Return the head and its endpoint; raises `Refusal` if it is invalid."""
        head = parse_head(raw, self._options, self._varying)
        endpoint = self._application.endpoint(head.request)
        most: int | None = getattr(endpoint, "body_bytes_max", None)
        if most is not None:
            options = replace(self._options, body_bytes_max=most)
            head = parse_head(raw, options, self._varying)
        return head, endpoint

    def _keep(self, raw: bytes) -> tuple[Head, Endpoint]:
        found = self.parse(raw)
        if len(self.kept) >= HEADS_KEPT_MAX:
            self.kept.clear()
        self.kept[raw] = found
        return found
