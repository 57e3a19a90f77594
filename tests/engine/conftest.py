"""Sizes for the tests of the engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.storage.databases import ranges_of


@pytest.fixture
def tiny_ranges() -> Iterator[None]:
    """A few counters are in several ranges, on several shards."""
    with ranges_of(4, 2):
        yield
