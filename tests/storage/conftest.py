"""Sizes of pages and ranges for the tests: the real ones, and tiny ones that make deep trees of few
entries, and cut them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from qserver import limits
from qserver.storage import btree
from tests.storage.databases import ranges_of

REAL = (limits.PAGE_ENTRIES_MAX, limits.PAGE_ENTRIES_BUILT, limits.PAGE_ENTRIES_MIN)
TINY = (4, 3, 2)


def pages_of(sizes: tuple[int, int, int]) -> Iterator[int]:
    with pytest.MonkeyPatch.context() as patch:
        for name, size in zip(("MAX", "BUILT", "MIN"), sizes, strict=True):
            patch.setattr(btree, f"PAGE_ENTRIES_{name}", size)
        yield sizes[0]


@pytest.fixture(scope="module", params=[REAL, TINY], ids=["real-pages", "tiny-pages"])
def page_size(request: pytest.FixtureRequest) -> Iterator[int]:
    """The test runs twice, once with pages of each size; the value is PAGE_ENTRIES_MAX."""
    yield from pages_of(request.param)


@pytest.fixture(scope="module")
def tiny_pages() -> Iterator[None]:
    """Few entries make several pages."""
    for _ in pages_of(TINY):
        yield


@pytest.fixture(scope="module")
def tiny_ranges() -> Iterator[None]:
    """Few entries make several ranges."""
    with ranges_of(4, 2):
        yield
