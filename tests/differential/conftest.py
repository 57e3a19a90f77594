"""A real PostgreSQL for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.differential.engines import NoOracle, Postgres, opened_postgres


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    try:
        with opened_postgres() as opened:
            yield opened
    except NoOracle as error:
        pytest.skip(f"there is no PostgreSQL package for this platform: {error}")
