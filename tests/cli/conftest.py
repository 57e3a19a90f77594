"""The fake server, for tests that take it as an argument."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.client.fake_server import FakeServer


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as running:
        yield running
