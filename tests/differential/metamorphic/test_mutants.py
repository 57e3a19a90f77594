"""Every planted bug is caught within a bounded number of queries, and leaves no trace."""

from __future__ import annotations

import re

import pytest

from simulations.mutants.mutant import Mutant, current, planted
from tests.differential.metamorphic.mutants import MUTANTS, SEEDS, hunt
from tests.sampling import sampled

QUERIES_MAX = 600
CLUMSY = re.compile(r"(TypeError|AttributeError|NameError|KeyError|ImportError)\b")
"""What a mutation raises that was written for other code; being caught by that proves nothing."""


@pytest.mark.long
@pytest.mark.parametrize("mutant", sampled(MUTANTS, 2), ids=lambda mutant: mutant.name)
async def test_a_planted_bug_is_caught(mutant: Mutant) -> None:
    report = await hunt(mutant, SEEDS[mutant.name], QUERIES_MAX)
    assert report.failure is not None, f"{mutant.explanation}, and nobody noticed"
    assert not CLUMSY.search(report.failure.difference), report.failure.difference


def test_there_are_enough_of_them_and_each_has_a_seed() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 15
    assert set(SEEDS) == {mutant.name for mutant in MUTANTS}


def test_a_bug_is_gone_after_its_hunt() -> None:
    for mutant in MUTANTS:
        before = [current(owner, name) for owner, name, _ in mutant.changes]
        with planted(mutant):
            pass
        assert [current(owner, name) for owner, name, _ in mutant.changes] == before
