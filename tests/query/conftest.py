"""The collector for tests that hold a statement to how long it keeps the loop."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from qserver.engine.collector import settle_collector


@pytest.fixture(scope="module")
def collector_settled() -> Iterator[None]:
    """The cyclic collector is set as it is where databases are served: what earlier tests have left
    is not looked at again."""
    before = gc.get_threshold()
    settle_collector()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)
