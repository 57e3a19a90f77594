"""For tests that hold a statement to how long it keeps the loop: the collector and the clock."""

from __future__ import annotations

import pytest

from qserver.engine.collector import settle_collector
from tests.known_work import WorkClock


@pytest.fixture(scope="module")
def collector_settled() -> None:
    """The cyclic collector does not look again at what earlier tests have left."""
    settle_collector()


@pytest.fixture
def work_clock() -> WorkClock:
    """A test that takes it has Trio's clock go by it."""
    return WorkClock()
