"""A real server for the tests of each file; a database of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from qserver.dbapi import Connection
from tests.dbapi.served import client_of, connected, served
from tests.web.contract.servers import Server

NUMBERS = count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("dbapi")
    with served(folder) as running:
        yield running


@pytest.fixture
def database(server: Server) -> Iterator[str]:
    name = f"test{next(NUMBERS)}"
    with client_of(server) as client:
        client.create_database(name)
        yield name
        client.delete_database(name)


@pytest.fixture
def connection(server: Server, database: str) -> Iterator[Connection]:
    connection = connected(server, database)
    yield connection
    connection.close()
