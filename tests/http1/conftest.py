"""A clock for deadlines of connections that are to pass, but not before the client has its turn."""

from __future__ import annotations

import pytest

from tests.steady_clock import SteadyClock


@pytest.fixture
def steady_clock() -> SteadyClock:
    """A test that takes it has Trio's clock go by it."""
    return SteadyClock()
