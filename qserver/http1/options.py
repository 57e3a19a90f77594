"""The options of a server: where it listens, and which limits its clients have.

The defaults are in `qserver/limits.py`. Tests use small values to avoid long waits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from qserver import limits


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """Where a server listens and what its clients may do. Immutable; shared by all connections."""

    host: str = "127.0.0.1"
    """An address or a name. The server listens on all addresses of a name."""
    port: int = 0
    """0: the kernel chooses."""
    backlog: int = limits.CONNECTIONS_BACKLOG_MAX
    reuse_address: bool = True
    """SO_REUSEADDR: a server can restart while connections of the last one are in TIME_WAIT."""

    certificate: Path | None = None
    """A PEM file with the chain. If given, the port speaks only TLS."""
    key: Path | None = None
    """A PEM file with the private key, unless the certificate's file holds it."""

    connections_max: int = limits.CONNECTIONS_MAX
    """A connection past the limit gets a 503 with `Retry-After`."""
    header_seconds: float = limits.HEADER_SECONDS_MAX
    """From the first byte of a request, or the opening of the connection, to the end of its head.
    After that the client gets a 408, or just the end if it never sent a byte.
    """
    idle_seconds: float = limits.IDLE_SECONDS_MAX
    """Between an answer and the next request of the same connection."""
    body_seconds: float = limits.BODY_SECONDS_MAX
    """In this time at least `BODY_PROGRESS_BYTES_MIN` more of a body must arrive, else 408."""
    send_seconds: float = limits.SEND_SECONDS_MAX
    """A client that reads nothing for this long is disconnected."""
    drain_seconds: float = limits.DRAIN_SECONDS_MAX
    """For requests in progress when the server stops."""
    drain_body_seconds: float = 1.0
    """For the next part of a body that is arriving then."""
    shutdown_seconds: float = limits.SHUTDOWN_SECONDS_MAX
    """For the application's own shutdown after that."""
    linger_seconds: float = limits.LINGER_SECONDS_MAX
    """How long the server drops a refused client's input, so that the client can read why."""

    line_bytes_max: int = limits.REQUEST_LINE_BYTES_MAX
    headers_bytes_max: int = limits.HEADERS_BYTES_MAX
    headers_count_max: int = limits.HEADERS_COUNT_MAX
    body_bytes_max: int = limits.REQUEST_BODY_BYTES_MAX

    access_log: Callable[[str], None] | None = None
    """Called with one line for each request."""
