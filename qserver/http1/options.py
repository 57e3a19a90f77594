"""Everything that can be chosen about a server: where it listens, and what it puts up with.

The defaults are in `qserver/limits.py`. A test gives small values, and so needs no long waits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from qserver import limits


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """How a server listens and what its clients may do. Immutable; shared by all connections."""

    host: str = "127.0.0.1"
    """An address or a name; a name may stand for several addresses, all are listened on."""
    port: int = 0
    """0: the kernel chooses one."""
    backlog: int = limits.CONNECTIONS_BACKLOG_MAX
    reuse_address: bool = True
    """SO_REUSEADDR: a server may start again while connections of the last one still fade."""

    certificate: Path | None = None
    """A PEM file with the chain; with it the port speaks TLS, and nothing else."""
    key: Path | None = None
    """A PEM file with the private key, unless it is in the same file as the certificate."""

    connections_max: int = limits.CONNECTIONS_MAX
    """One more gets a 503 with `Retry-After`, and is closed."""
    header_seconds: float = limits.HEADER_SECONDS_MAX
    """From the first byte of a request, or the opening of the connection, to the end of its head:
    longer is a 408, or for a connection that never said anything just the end."""
    idle_seconds: float = limits.IDLE_SECONDS_MAX
    """Between an answer and the next request of the same connection."""
    body_seconds: float = limits.BODY_SECONDS_MAX
    """In so much time at least `BODY_PROGRESS_BYTES_MIN` more of a body must come, else 408."""
    send_seconds: float = limits.SEND_SECONDS_MAX
    """A reader that takes nothing at all for so long is cut off."""
    drain_seconds: float = limits.DRAIN_SECONDS_MAX
    """For requests that are under way when the server is to stop."""
    shutdown_seconds: float = limits.SHUTDOWN_SECONDS_MAX
    """For the application's own shutdown after that."""
    linger_seconds: float = limits.LINGER_SECONDS_MAX
    """How long what a refused client still sends is thrown away, so that it can read why."""

    line_bytes_max: int = limits.REQUEST_LINE_BYTES_MAX
    headers_bytes_max: int = limits.HEADERS_BYTES_MAX
    headers_count_max: int = limits.HEADERS_COUNT_MAX
    body_bytes_max: int = limits.REQUEST_BODY_BYTES_MAX

    access_log: Callable[[str], None] | None = None
    """Gets one line for each request."""
