"""Programs over large tables, and over tables of small pages, give what PostgreSQL gives."""

from __future__ import annotations

from random import SystemRandom

import pytest

from tests.differential.engines import Postgres
from tests.differential.fixed import programs_agree
from tests.differential.large.programs import LargeProgram
from tests.given import GIVEN

SEED = 2
"""Of a program of small pages, a large one, and one more."""


@pytest.mark.long
async def test_programs_over_large_tables_give_what_postgresql_gives(postgres: Postgres) -> None:
    assert {LargeProgram(SEED).small, LargeProgram(SEED + 1).small} == {True, False}
    await programs_agree(postgres, SEED, large=True)


@pytest.mark.skipif(
    "QSERVER_FRESH_SEEDS" not in GIVEN,
    reason="a new seed may find what nobody has broken; set QSERVER_FRESH_SEEDS=1 to look for it",
)
async def test_large_programs_of_a_fresh_seed_agree_too(postgres: Postgres) -> None:
    seed = SystemRandom().randrange(1_000_000_000)
    print(f"seed {seed}: .venv/bin/python -m tests.differential --large --seed {seed}")
    await programs_agree(postgres, seed, large=True)


def test_a_seed_draws_the_same_large_program_again() -> None:
    def texts(seed: int) -> list[str]:
        return [drawn.step.sql for drawn in LargeProgram(seed).steps()]

    assert texts(5) == texts(5)
    assert texts(5) != texts(6)
