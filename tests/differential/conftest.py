"""A real PostgreSQL for the tests of a process, and a fresh database for those of a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.differential.engines import NoOracle, Postgres, fresh_database, started_postgres


@pytest.fixture(scope="session")
def server() -> Iterator[Any]:
    try:
        with started_postgres() as started:
            yield started
    except NoOracle as error:
        pytest.skip(f"there is no PostgreSQL package for this platform: {error}")


@pytest.fixture(scope="module")
def postgres(server: Any) -> Iterator[Postgres]:
    with fresh_database(server) as opened:
        yield opened
