"""The collector for tests that hold a statement to how long it keeps the loop."""

from __future__ import annotations

import pytest

from qserver.engine.collector import settle_collector


@pytest.fixture(scope="module")
def collector_settled() -> None:
    """The cyclic collector does not look again at what earlier tests have left."""
    settle_collector()
