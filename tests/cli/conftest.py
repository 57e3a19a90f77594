"""The fake server and the real one, for tests that take them as arguments."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.real_server import real_server
from tests.client.fake_server import FakeServer


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as running:
        yield running


@pytest.fixture(scope="package")
def url() -> Iterator[str]:
    """The address of a real server."""
    with real_server() as address:
        yield address
