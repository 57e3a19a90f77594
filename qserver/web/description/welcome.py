"""The text that the terminal shows once the service has started: its address, a first command."""

from __future__ import annotations

from typing import Final

from qserver import __version__
from qserver.config import Settings

ADDRESS_UNKNOWN: Final = "http://ADDRESS"
"""An ASGI application does not know the address of its server."""


def welcome(
    settings: Settings,
    first_key: str | None,
    port: int | None = None,
    pg_port: int | None = None,
) -> str:
    """The first start shows the key. The service does not store it and never shows it again.

    `port` is None under another server, which prints its own address. `pg_port` is that for clients
    of PostgreSQL, if they are served.
    """
    url = _url(settings, port)
    place = "" if url == ADDRESS_UNKNOWN else f" at {url}"
    many = f", {settings.processes} processes" if settings.processes > 1 else ""
    log = f", log on {settings.log_copies} nodes" if settings.log is not None else ""
    lines = [f"qserver {__version__}{place}, data in {settings.data}{many}{log}"]
    if settings.console and url != ADDRESS_UNKNOWN:
        lines.append(f"Console: {url}/console")
    if first_key is not None:
        lines += ["", f"Your API key, shown only now: {first_key}", "", "Try it:"]
        lines += [f"  {line}" for line in curl_lines(url, first_key)]
        if pg_port is not None:
            lines += ["", f"  {psql_line(settings, first_key, pg_port)}"]
    elif settings.api_key is None:
        lines.append("The API key was shown at the first start; QSERVER_API_KEY adds another.")
    if first_key is None and pg_port is not None:
        lines.append(f"With psql: {psql_line(settings, 'svc_k_…', pg_port)}")
    return "\n".join([*lines, ""])


def curl_lines(url: str, key: str) -> list[str]:
    return [
        f"curl {url}/v1/query -H 'Authorization: Bearer {key}' \\",
        "  -H 'Content-Type: application/json' -d '{\"sql\": \"SELECT 1 AS one\"}'",
    ]


def psql_line(settings: Settings, key: str, port: int) -> str:
    host = "localhost" if settings.host in ("0.0.0.0", "::", "") else settings.host
    encrypted = "" if settings.tls_certificate is None else "?sslmode=require"
    return f'psql "postgresql://me:{key}@{host}:{port}/main{encrypted}"'


def _url(settings: Settings, port: int | None) -> str:
    if settings.data_url is not None:
        return settings.data_url
    if port is None:
        return ADDRESS_UNKNOWN
    host = "localhost" if settings.host in ("0.0.0.0", "::", "") else settings.host
    scheme = "http" if settings.tls_certificate is None else "https"
    return f"{scheme}://{host}:{port}"
