"""`connect`: a connection from a URL, from keywords, or from both.

    qserver://:key@host:port/database?TimeZone=Asia/Tokyo
    └── over HTTP; over TLS it is qserver+https://, and https:// or http:// are the same

What stands behind `?` are settings of the session, as SET takes them. A keyword overrides
what the URL says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from qserver.client import Client
from qserver.dbapi.connection import Connection
from qserver.dbapi.exceptions import InterfaceError, errors_of_pep_249

PORT: Final = 8000
"""Of a URL over HTTP that names none; over TLS it is 443."""

_SECURE: Final[Mapping[str, bool]] = {
    "qserver": False,
    "qserver+http": False,
    "http": False,
    "qserver+https": True,
    "https": True,
}


def connect(
    url: str | None = None,
    *,
    host: str | None = None,
    port: int | None = None,
    database: str | None = None,
    key: str | None = None,
    https: bool | None = None,
    autocommit: bool = False,
    read_only: bool = False,
    settings: Mapping[str, str] | None = None,
) -> Connection:
    """A connection; nothing is sent yet. `settings` are those of the session, by their names.

    Without a database it is the key's own.
    """
    parts = _parts_of(url or "qserver://127.0.0.1")
    host = host or parts.hostname or "127.0.0.1"
    secure = _SECURE[parts.scheme] if https is None else https
    port = port or parts.port or (443 if secure else PORT)
    named = f"[{host}]" if ":" in host else host
    key = key or _unquoted(parts.password)
    database = database or _unquoted(parts.path.removeprefix("/"))
    given = {**dict(parse_qsl(parts.query, keep_blank_values=True)), **(settings or {})}
    with errors_of_pep_249():
        client = Client(
            f"http{'s' if secure else ''}://{named}:{port}", key, database, values="python"
        )
    return Connection(client, autocommit=autocommit, read_only=read_only, settings=given)


def _parts_of(url: str) -> SplitResult:
    """The parts; no message has the URL in it, which has the key."""
    try:
        parts = urlsplit(url)
        is_good = parts.port is None or parts.port > 0
    except ValueError:  # a port that is not a number, or unclosed brackets
        raise InterfaceError("the host or the port of the URL is wrong") from None
    if not is_good or parts.scheme not in _SECURE:
        raise InterfaceError("a URL is written as qserver://:key@host:port/database")
    if parts.username and not parts.password:
        raise InterfaceError("a key stands behind a colon: qserver://:key@host:port/database")
    if "/" in parts.path.strip("/"):
        raise InterfaceError("a URL has one name of a database, and no other path")
    return parts


def _unquoted(text: str | None) -> str | None:
    return unquote(text) if text else None
