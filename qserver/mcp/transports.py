"""Serves MCP over standard input and output, or over HTTP; both on Trio.

The package of the protocol waits through anyio, which runs on Trio's loop when it is called from
it. Over HTTP each request stands for itself and is answered with JSON: no session is held, so a
client may come back after a restart.

Over HTTP there is a second secret. Whoever may call the tools has what the server's key may do, so
without a token only this machine may call, and pages of browsers may not: the Host and Origin of a
request must be local names.
"""

from __future__ import annotations

import hmac
import sys
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from signal import SIGINT, SIGTERM
from typing import Any, Final

import trio
from hypercorn.config import Config
from hypercorn.trio import serve
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings

from qserver.client import TrioClient
from qserver.errors import InvalidRequest
from qserver.mcp.access import Access
from qserver.mcp.server import server_of

PATH: Final = "/mcp"
_LOCAL_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True)
class Place:
    """Where HTTP is served, and the token that callers have to send."""

    host: str
    port: int
    token: str | None = None


async def over_stdio(client: TrioClient, may_change: bool) -> None:
    """Until the client closes our standard input."""
    async with client:
        server = server_of(Access(client, may_change))
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())


async def over_http(client: TrioClient, may_change: bool, place: Place) -> None:
    """Until it is interrupted; it says where it listens."""
    require_token(place)
    config = Config()
    host = f"[{place.host}]" if ":" in place.host else place.host
    config.bind = [f"{host}:{place.port}"]
    config.errorlog = config.accesslog = None
    async with client:
        server = server_of(Access(client, may_change))
        app: Any = server.streamable_http_app(
            streamable_http_path=PATH,
            stateless_http=True,
            json_response=True,
            transport_security=_hosts(place),
        )
        guarded = app if place.token is None else Guarded(app, place.token)
        async with trio.open_nursery() as nursery:
            listen = partial(serve, guarded, config, shutdown_trigger=_interrupted)
            bound = await nursery.start(listen)
            for url in bound:
                sys.stderr.write(f"qserver mcp listens at {url}{PATH}\n")
            sys.stderr.flush()


async def _interrupted() -> None:
    """A signal that asks us to end; what is under way ends first."""
    with trio.open_signal_receiver(SIGINT, SIGTERM) as signals:
        async for _ in signals:
            return


def require_token(place: Place) -> None:
    if place.token is None and not _is_local(place.host):
        raise InvalidRequest(
            f"without a token only this machine may call, and {place.host} is for others",
            hint="Set QSERVER_MCP_TOKEN, which callers send as Authorization: Bearer …, or listen"
            " at 127.0.0.1.",
        )


class Guarded:
    """The application, for requests that carry the token."""

    def __init__(self, app: Any, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and not self._may(scope["headers"]):
            headers = [
                (b"www-authenticate", b"Bearer"),
                (b"connection", b"close"),
            ]  # its body is unread
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": b"a Bearer token is needed\n"})
            return
        await self._app(scope, receive, send)

    def _may(self, headers: list[tuple[bytes, bytes]]) -> bool:
        given = [value for name, value in headers if name == b"authorization"]
        return len(given) == 1 and hmac.compare_digest(given[0], self._expected)


def _hosts(place: Place) -> TransportSecuritySettings:
    """With a token, any name of this machine will do: a page of a browser does not have it."""
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=place.token is None,
        allowed_hosts=[f"{name}:*" for name in _LOCAL_NAMES],
        allowed_origins=[f"http://{name}:*" for name in _LOCAL_NAMES],
    )


def _is_local(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
