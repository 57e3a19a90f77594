"""Caches parsed heads of all connections, each with the endpoint that serves it.

Clients send the same head again, byte for byte. The parsed head and its endpoint are pure functions
of those bytes (see `application`).

A value that is another in each request would defeat this. So an application may declare which
values vary (see `Varying`). Such a head is kept with `*` in their places, and `with_values` of its
endpoint is given those of each request; an endpoint that returns None wants all of the head. A
value with characters other than printable ASCII, or a header that is there twice, is left to the
parser.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import msgspec

from qserver.http1.application import Application, Endpoint, Varying, request_id_of
from qserver.http1.head import Head, parse_head
from qserver.http1.options import ServerOptions
from qserver.limits import HEADS_KEPT_MAX

HEAD_KEPT_BYTES_MAX = 2048
"""A longer head is parsed each time: long heads are rare, and the cache stores whole heads."""

STANDS_FOR_VALUE = b"*"


class Heads:
    def __init__(self, application: Application, options: ServerOptions) -> None:
        self._application = application
        self._options = options
        self.kept: dict[bytes, tuple[Head, Endpoint]] = {}
        varying: Varying | None = getattr(application, "varying", None)
        self._patterns = None if varying is None else _patterns(varying)
        limits = options.headers_bytes_max, options.line_bytes_max
        self._kept_bytes_max = min(HEAD_KEPT_BYTES_MAX, *limits)

    def find(self, raw: bytes) -> tuple[Head, Endpoint]:
        """Return the head and endpoint of bytes that are not cached as they are; raises `Refusal`
        if they are invalid."""
        if self._patterns is None or len(raw) > self._kept_bytes_max:
            return self._parsed(raw)
        path, header = self._patterns
        values: dict[bytes, bytes] = {}
        usual, at = b"", 0
        found = path.match(raw)
        if found is not None:
            values[b"path"] = found[1]
            usual, at = raw[: found.start(1)] + STANDS_FOR_VALUE, found.end(1)
        for match in header.finditer(raw, at):
            name = match[1].lower()
            if name in values:
                return self._parsed(raw)
            values[name] = match[2]
            usual += raw[at : match.start(2)] + STANDS_FOR_VALUE
            at = match.end(2)
        if not values:
            return self._parsed(raw)
        usual += raw[at:]
        head, endpoint = self.kept.get(usual) or self._parsed(usual)
        own: Endpoint | None = endpoint.with_values(values)  # type: ignore[attr-defined]
        return self._parsed(raw) if own is None else (_with_values(head, values), own)

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


def _patterns(varying: Varying) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """A request line with the value in its path, and a header: its name, its value."""
    names = b"|".join(map(re.escape, varying.headers))
    header = rb"\r\n(?i:(%b)):[ \t]*([!-~](?:[ -~]{0,253}[!-~])?)[ \t]*(?=\r\n)" % names
    return re.compile(rb"[A-Z]+ %b(?= HTTP/)" % varying.path), re.compile(header)


def _with_values(head: Head, values: Mapping[bytes, bytes]) -> Head:
    if b"x-request-id" in values:
        head = msgspec.structs.replace(head, request_id=request_id_of(values[b"x-request-id"]))
    if b"path" in values:
        logged = head.logged.replace(STANDS_FOR_VALUE.decode(), values[b"path"].decode())
        head = msgspec.structs.replace(head, logged=logged)
    return head
