"""Looks at settings: may somebody come in, or listen, who should not?"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address
from typing import Final

from qserver.cli.doctor.finding import Finding, ok, problem, warning
from qserver.config import Settings

_LOCAL_NAMES: Final = ("localhost", "")
_TLS: Final = "Set QSERVER_TLS_CERTIFICATE and its key, or listen on 127.0.0.1 behind a proxy."


def is_local(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host in _LOCAL_NAMES or host.endswith(".localhost")


def look_at_exposure(settings: Settings) -> Iterator[Finding]:
    has_tls, here = settings.tls_certificate is not None, is_local(settings.host)
    if has_tls or here:
        how = "with TLS" if has_tls else "for this machine alone"
        yield ok("address", f"it listens on {settings.host}:{settings.port}, {how}")
    else:
        text = f"it listens on {settings.host}:{settings.port} without TLS: keys can be read"
        yield warning("address", text, _TLS)
    if settings.pg_port is not None:
        yield _of_pg_port(settings, has_tls)
    if settings.open_signup and not here:
        change = "Set QSERVER_OPEN_SIGNUP=0, unless strangers are to have databases."
        yield warning("signup", "anybody may make an organization", change)
    if settings.cors_origins == ("*",) and not here:
        change = "Name the origins of your pages in QSERVER_CORS_ORIGINS, if there are any."
        yield warning("origins", "pages of any origin may call with a key that they have", change)
    if settings.trust_forwarded and not here and not has_tls:
        change = "Only with a proxy in front that sets it: else callers choose their own address."
        yield warning("addresses of callers", "X-Forwarded-For is believed", change)


def _of_pg_port(settings: Settings, has_tls: bool) -> Finding:
    if settings.pg_plaintext and not has_tls:
        change = "Set QSERVER_PG_PLAINTEXT=0, or give the server a certificate."
        return problem("postgres", "clients of PostgreSQL come from afar without TLS", change)
    how = "with TLS" if has_tls else "from this machine alone"
    return ok("postgres", f"clients of PostgreSQL are served at {settings.pg_port}, {how}")
