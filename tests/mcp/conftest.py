"""A real server with databases of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from qserver.client import Client
from tests.cli.real_server import KEY, real_server

_NUMBERS = count(1)


@pytest.fixture(scope="package")
def url() -> Iterator[str]:
    """The address of a real server."""
    with real_server() as address:
        yield address


@pytest.fixture
def shop(url: str) -> Iterator[Client]:
    """A client of a database with a few tables, which is empty of anything else."""
    name = f"shop{next(_NUMBERS)}"
    with Client(url, KEY) as maker:
        maker.create_database(name)
    with Client(url, KEY, name) as client:
        client.transaction(
            [
                "CREATE TABLE authors (id INTEGER PRIMARY KEY, name TEXT)",
                "CREATE TABLE books (id INTEGER PRIMARY KEY, title TEXT,"
                " author INTEGER REFERENCES authors ON DELETE CASCADE)",
                "INSERT INTO authors VALUES (1, 'Ada'), (2, NULL)",
                "INSERT INTO books SELECT i, 'book ' || i, 1 FROM generate_series(1, 300) i",
            ]
        )
        yield client
