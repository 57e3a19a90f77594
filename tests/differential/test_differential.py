"""Random programs give on qserver what they give on PostgreSQL, but for the named differences.

More fixed seeds are in `test_fixed_seeds_….py`: tests are shared out to processes file by file.
"""

from __future__ import annotations

from pathlib import Path
from random import SystemRandom

import pytest

from tests.differential.accepted import RULES
from tests.differential.campaign import Campaign
from tests.differential.engines import Postgres
from tests.differential.fixed import programs_agree
from tests.differential.kept import kept
from tests.given import GIVEN


@pytest.mark.long
async def test_programs_of_a_fixed_seed_give_what_postgresql_gives(postgres: Postgres) -> None:
    await programs_agree(postgres, 1)


@pytest.mark.skipif(
    "QSERVER_FRESH_SEEDS" not in GIVEN,
    reason="a new seed may find what nobody has broken; set QSERVER_FRESH_SEEDS=1 to look for it",
)
async def test_programs_of_a_fresh_seed_give_what_postgresql_gives(postgres: Postgres) -> None:
    seed = SystemRandom().randrange(1_000_000_000)
    print(f"seed {seed}: .venv/bin/python -m tests.differential --seed {seed}")
    await programs_agree(postgres, seed)


@pytest.mark.long
async def test_programs_that_once_differed_do_not_any_more(postgres: Postgres) -> None:
    programs = kept()
    assert programs
    for seed, steps in programs:
        differences = await Campaign(postgres).replay(steps)
        assert not differences, f"seed {seed}\n" + "\n".join(map(str, differences))


def test_rules_have_names_of_their_own() -> None:
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)


def test_the_docs_name_the_release_of_the_oracle(postgres: Postgres) -> None:
    ((release,),) = postgres.run("SHOW server_version").rows
    for page in ("sql.md", "contributing.md"):
        text = (Path("docs") / page).read_text(encoding="utf-8")
        assert str(release) in text, f"{page} does not say that the oracle is {release}"
