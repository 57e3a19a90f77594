"""Empty databases of a real server, for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pytest

from qserver.client import Client
from tests.cli.real_server import KEY

NUMBERS = count(1)

MakeClient = Callable[[], Client]


@pytest.fixture
def empty_database(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeClient]:
    """Makes a database and a client of it; commands find the same server."""
    monkeypatch.setenv("QSERVER_URL", url)
    monkeypatch.setenv("QSERVER_API_KEY", KEY)
    clients: list[Client] = []

    def make() -> Client:
        client = Client(url, KEY, f"d{next(NUMBERS)}")
        clients.append(client)
        assert client.database is not None
        client.create_database(client.database)
        return client

    yield make
    for client in clients:
        assert client.database is not None
        client.delete_database(client.database)
        client.close()
