"""A server of its own for the tests of a file, and connections to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from qserver.client import Client
from qserver.dbapi import Connection, connect
from tests.web.contract.servers import Server, start

KEY = "svc_k_dbapi_0123456789"


@contextmanager
def served(folder: Path, **settings: str) -> Iterator[Server]:
    server = start("own", folder, {"QSERVER_API_KEY": KEY, **settings})
    try:
        yield server
    finally:
        assert server.stop() == 0, server.output


def connected(server: Server, database: str = "main", **options: object) -> Connection:
    url = f"qserver://:{KEY}@127.0.0.1:{server.port}/{database}"
    return connect(url, **options)  # type: ignore[arg-type]


def client_of(server: Server, database: str = "main") -> Client:
    return Client(server.url, KEY, database)
