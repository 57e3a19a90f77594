"""Random SQL/JSON paths find on qserver what they find on PostgreSQL."""

from __future__ import annotations

import pytest

from tests.differential.engines import Postgres
from tests.differential.json_paths import compare
from tests.sampling import NIGHTLY, SEED

PATHS = 4000 if NIGHTLY else 120
SHOWN = 5


@pytest.mark.long
async def test_random_paths_find_what_they_find_in_postgresql(postgres: Postgres) -> None:
    found, counts = await compare(SEED, PATHS, postgres)
    assert not found, f"{len(found)} differences\n" + "\n".join(found[:SHOWN])
    assert counts["found"] > PATHS // 4 and counts["run"] > counts["refused"] > PATHS // 8
