"""Random programs give on qserver what they give on PostgreSQL, but for the named differences."""

from __future__ import annotations

import os
from collections.abc import Iterator
from random import SystemRandom

import pytest

from tests.differential.accepted import RULES
from tests.differential.campaign import Campaign, Report
from tests.differential.engines import NoOracle, Postgres, opened_postgres
from tests.differential.kept import kept

FIXED_SEED = 1
STATEMENTS = 350


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    try:
        with opened_postgres() as opened:
            yield opened
    except NoOracle as error:
        pytest.skip(f"there is no PostgreSQL package for this platform: {error}")


async def campaign(postgres: Postgres, seed: int) -> Report:
    """Bounded by statements, not by time: on a busy machine it takes longer, no more."""
    enough = STATEMENTS
    return await Campaign(postgres).run(seed, lambda report: report.total >= enough)


def told(report: Report) -> str:
    return "\n\n".join(
        "\n".join([f"seed {failure.seed}", *(step.sql for step in failure.steps[:-1])])
        + f"\n{failure.difference}"
        for failure in report.failures
    )


async def test_programs_of_a_fixed_seed_give_what_postgresql_gives(postgres: Postgres) -> None:
    report = await campaign(postgres, FIXED_SEED)
    print(report)
    assert not report.failures, told(report)
    assert report.share() > 0.6, "most statements must succeed and show something"


@pytest.mark.skipif(
    "QSERVER_FRESH_SEEDS" not in os.environ,
    reason="a new seed may find what nobody has broken; set QSERVER_FRESH_SEEDS=1 to look for it",
)
async def test_programs_of_a_fresh_seed_give_what_postgresql_gives(postgres: Postgres) -> None:
    seed = SystemRandom().randrange(1_000_000_000)
    print(f"seed {seed}: .venv/bin/python -m tests.differential --seed {seed}")
    report = await campaign(postgres, seed)
    assert not report.failures, f"base seed {seed}\n{told(report)}"


async def test_programs_that_once_differed_do_not_any_more(postgres: Postgres) -> None:
    programs = kept()
    assert programs
    for seed, steps in programs:
        differences = await Campaign(postgres).replay(steps)
        assert not differences, f"seed {seed}\n" + "\n".join(map(str, differences))


def test_rules_have_names_of_their_own() -> None:
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)
