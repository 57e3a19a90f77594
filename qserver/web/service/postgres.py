"""The listener for clients of PostgreSQL, on the service that HTTP serves."""

from __future__ import annotations

import logging
import secrets
import socket
from dataclasses import replace
from functools import partial
from ipaddress import ip_address
from typing import Final

from qserver.config import Settings
from qserver.engine.arrivals import Arrivals
from qserver.errors import QserverError
from qserver.http1 import ServerOptions, Transport, bind_now, tls_context
from qserver.pgwire import Host, Listener, end_point_of
from qserver.web.service.options import server_options
from qserver.web.service.processes import Mover
from qserver.web.service.service import Service, ServiceState
from qserver.web.statuses import status_of

ROUTE: Final = "postgres"
"""The name of its statements among the routes of metrics."""
LOOPBACK: Final = "127.0.0.1"
ALPN: Final = "postgresql"
logger: Final = logging.getLogger("qserver")


def pg_options(settings: Settings) -> ServerOptions:
    """Where clients of PostgreSQL are awaited: without TLS on this machine alone."""
    assert settings.pg_port is not None
    options = replace(server_options(settings), port=settings.pg_port)
    is_private = settings.tls_certificate is not None or settings.pg_plaintext
    if is_private or is_loopback(options.host):
        return options
    logger.warning(
        "clients of PostgreSQL can only come from this machine: without a certificate keys would"
        " cross the network as they are (QSERVER_PG_PLAINTEXT=1 allows that)"
    )
    return replace(options, host=LOOPBACK)


def bind_postgres(settings: Settings) -> list[socket.socket]:
    """Bind the sockets; none if the port is not set."""
    return [] if settings.pg_port is None else bind_now(pg_options(settings))


def new_postgres(service: Service, settings: Settings, mover: Mover | None) -> Listener:
    options = pg_options(settings)
    encryption = tls_context(options, ALPN)
    metrics = service.metrics
    route = metrics.of_route(ROUTE)

    def count(error: QserverError | None, seconds: float) -> None:
        route.count(200 if error is None else status_of(error), seconds)

    host = Host(
        plane=service.plane,
        secrets=secrets.token_bytes,
        known=service.known,
        count=count,
        is_starting=lambda: service.state is ServiceState.STARTING,
        end_point=None if options.certificate is None else end_point_of(options.certificate),
        has_tls=encryption is not None,
        takes_plaintext=settings.pg_plaintext,
    )
    service.postgres = host.statistics
    listener = Listener(
        host,
        options,
        encryption,
        batch=service.world.batch,
        turns=Arrivals(),
        mover=mover,
        report=logger.warning,
    )
    service.tunnel = partial(_through_websocket, listener)
    return listener


async def _through_websocket(
    listener: Listener, client: str, transport: Transport, arrived: bytes
) -> None:
    from qserver.web.neon.tunnel import Tunnel  # few need it, and it takes a while

    await listener.serve(Tunnel(transport, arrived), client)


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
