"""A clock for deadlines of connections that are to pass, but not before the client has its turn."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from qserver.http1 import connection, context, incoming
from tests.steady_clock import SteadyClock


@pytest.fixture
def steady_clock(monkeypatch: pytest.MonkeyPatch) -> SteadyClock:
    """A test that takes it has Trio's clock, and that of the server, go by it."""
    clock = SteadyClock()
    monkeypatch.setattr(connection, "monotonic", clock.current_time)
    for module in (context, incoming):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=clock.current_time))
    return clock
