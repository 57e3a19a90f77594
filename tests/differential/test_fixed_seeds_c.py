"""Programs of fixed seeds give what PostgreSQL gives: a share of them, see `test_differential`."""

from __future__ import annotations

import pytest

from tests.differential.engines import Postgres
from tests.differential.fixed import programs_agree, share


@pytest.mark.long
@pytest.mark.parametrize("seed", share(2))
async def test_programs_of_a_fixed_seed_give_what_postgresql_gives(
    postgres: Postgres, seed: int
) -> None:
    await programs_agree(postgres, seed)
