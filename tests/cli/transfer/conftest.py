"""A real server for the whole folder, which keeps nothing, and empty databases for each test."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from qserver.client import Client

ROOT = Path(__file__).parent.parent.parent.parent
KEY = "svc_k_0123456789abcdef0123"
NUMBERS = count(1)

MakeClient = Callable[[], Client]


@pytest.fixture(scope="package")
def url() -> Iterator[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("QSERVER_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "qserver", "serve", "--port", "0", "--data", ":memory:"],
        cwd=ROOT,
        env={**clean, "QSERVER_API_KEY": KEY},
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stderr is not None
        found = None
        while found is None:
            found = re.search(r"http://[\d.:]+", process.stderr.readline())
        yield found.group()
        process.terminate()
        process.stderr.read()


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
