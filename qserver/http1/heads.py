"""Caches parsed heads of all connections, each with the endpoint that serves it.

Clients send the same head again, byte for byte. The parsed head and its endpoint are pure functions
of those bytes (see `application`).

A header whose value is another in each request would defeat this. The application may name one
(`varying`, in lower case): such a head is kept with `*` as the value, and `with_value` of its
endpoint is given the value of each request. A value with characters other than printable ASCII, or
a header that is there twice, is left to the parser.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from qserver.http1.application import Application, Endpoint
from qserver.http1.head import Head, parse_head
from qserver.http1.options import ServerOptions
from qserver.limits import HEADS_KEPT_MAX

HEAD_KEPT_BYTES_MAX = 2048
"""A longer head is parsed each time: long heads are rare, and the cache stores whole heads."""


PLAIN_VALUE: Final = re.compile(rb"[\x20-\x7e]{1,255}")


class Heads:
    def __init__(self, application: Application, options: ServerOptions) -> None:
        self._application = application
        self._options = options
        self.kept: dict[bytes, tuple[Head, Endpoint]] = {}
        varying: bytes | None = getattr(application, "varying", None)
        self._varying = None if varying is None else b"\r\n%b:" % varying

    def find(self, raw: bytes) -> tuple[Head, Endpoint]:
        """Return the head and endpoint of bytes that are not cached as they are; raises `Refusal`
        if they are invalid."""
        varying = self._varying
        if varying is None:
            return self._parsed(raw)
        before, found, behind = raw.lower().partition(varying)
        if not found or varying in behind:
            return self._parsed(raw)
        start = len(before) + len(found)
        end = raw.index(b"\r\n", start)
        value = raw[start:end].strip(b" \t")
        if PLAIN_VALUE.fullmatch(value) is None:
            return self._parsed(raw)
        usual = b"%b*%b" % (raw[:start], raw[end:])
        head, endpoint = self.kept.get(usual) or self._parsed(usual)
        made: Endpoint = endpoint.with_value(value)  # type: ignore[attr-defined]
        return head, made

    def _parsed(self, raw: bytes) -> tuple[Head, Endpoint]:
        head = parse_head(raw, self._options)
        endpoint = self._application.endpoint(head.request)
        most: int | None = getattr(endpoint, "body_bytes_max", None)
        if most is not None:
            head = parse_head(raw, replace(self._options, body_bytes_max=most))
        found = head, endpoint
        if len(raw) <= HEAD_KEPT_BYTES_MAX:
            if len(self.kept) >= HEADS_KEPT_MAX:
                self.kept.clear()
            self.kept[raw] = found
        return found
