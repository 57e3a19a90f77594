"""Forms that are multiplied by places give on qserver what they give on PostgreSQL.

A part of each grid, which a fixed seed draws; `python -m tests.differential.enumerated` runs all.
"""

from __future__ import annotations

import pytest

from tests.differential.engines import Postgres
from tests.differential.enumerated.grids import differences
from tests.differential.enumerated.modules import GRIDS
from tests.sampling import NIGHTLY

MOST = 250 if NIGHTLY else 120
"""Statements of a grid that are tried."""
SHOWN = 20


@pytest.mark.long
@pytest.mark.parametrize("name", GRIDS)
async def test_every_form_gives_in_every_place_what_postgresql_gives(
    postgres: Postgres, name: str
) -> None:
    for grid in GRIDS[name]:
        found = await differences(postgres, grid.drawn(1, MOST))
        assert not found, f"{len(found)} differences\n" + "\n".join(map(str, found[:SHOWN]))
