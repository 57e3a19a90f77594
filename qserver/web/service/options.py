"""The options of our own HTTP/1.1 server, as the settings say."""

from __future__ import annotations

from pathlib import Path

from qserver.config import Settings
from qserver.http1 import ServerOptions
from qserver.web.service.log_lines import access_writer


def server_options(settings: Settings) -> ServerOptions:
    certificate, key = settings.tls_certificate, settings.tls_key
    return ServerOptions(
        host=settings.host,
        port=settings.port,
        certificate=None if certificate is None else Path(certificate),
        key=None if key is None else Path(key),
        connections_max=settings.connections_max,
        header_seconds=settings.header_timeout_s,
        idle_seconds=settings.idle_timeout_s,
        drain_seconds=settings.drain_timeout_s,
        access_log=access_writer(settings.log_format) if settings.access_log else None,
    )
