"""GET /v2: a connection that speaks PostgreSQL's protocol inside a WebSocket from then on.

    Neon's `Pool`, `Client` ── binary frames ──► http1 ── Upgrade ──► tunnel ── bytes ──► pgwire

What the handshake of a WebSocket asks for is in RFC 6455, section 4.2.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from functools import partial
from hashlib import sha1
from typing import Final

from qserver.errors import InvalidRequest, NotFound, QserverError
from qserver.http1 import Answer, Client, IncomingBody, Respond, Upgrade, Values
from qserver.web.calls import Endpoint, Facts, Refusal

PATH: Final = "/v2"
VERSION: Final = b"13"
_SUFFIX: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""What RFC 6455 appends to a client's key."""


class TunnelEndpoint(Endpoint):
    """Lets a connection speak PostgreSQL's protocol from now on."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts, f"GET {PATH}")
        self._refusal = Refusal(facts, f"GET {PATH}", partial(_refusal, facts))

    def handle(
        self, body: bytes | IncomingBody, client: Client, respond: Respond, values: Values
    ) -> Answer:
        tunnel = self.service.tunnel
        if tunnel is None or _why_not(self.headers) is not None:
            return self._refusal.handle(body, client, respond, values)
        key = self.headers[b"sec-websocket-key"].strip()
        accepted = b64encode(sha1(key + _SUFFIX, usedforsecurity=False).digest())
        name = "" if client is None else client[0]
        request_id = values.get(b"x-request-id", b"").decode("latin-1") or self.next_id()
        self.metrics.count(101, 0.0)
        return Upgrade(
            (
                (b"Upgrade", b"websocket"),
                (b"Connection", b"Upgrade"),
                (b"Sec-WebSocket-Accept", accepted),
            ),
            partial(tunnel, name),
            request_id,
        )


def _why_not(headers: Values) -> str | None:
    """What is wrong with the head of a handshake."""
    if headers.get(b"upgrade", b"").strip().lower() != b"websocket":
        return f"GET {PATH} is for WebSockets"
    if b"upgrade" not in headers.get(b"connection", b"").lower():
        return "a WebSocket begins with the header Connection: Upgrade"
    if headers.get(b"sec-websocket-version", b"").strip() != VERSION:
        return "a WebSocket of version 13 is spoken here (Sec-WebSocket-Version)"
    try:
        key = b64decode(headers.get(b"sec-websocket-key", b""), validate=True)
    except binascii.Error:
        key = b""
    if len(key) != 16:
        return "Sec-WebSocket-Key is no base64 of 16 bytes"
    return None


def _refusal(facts: Facts) -> QserverError:
    wrong = _why_not(facts.headers)
    if wrong is not None:
        return InvalidRequest(wrong, hint="Neon's driver sends what is needed.")
    return NotFound(
        "PostgreSQL's protocol is not spoken here", hint="Set QSERVER_PG_PORT to switch it on."
    )
