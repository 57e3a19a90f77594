"""Random queries agree in all ways; what once differed is asked again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.differential.metamorphic.campaign import Campaign, Report
from tests.differential.metamorphic.cases import Case, case_from_line, case_to_line, outcome_of
from tests.differential.metamorphic.shrinking import Shrinker
from tests.sampling import NIGHTLY, SEED

KEPT = [
    case_from_line(line) for line in Path(__file__).with_name("kept.jsonl").read_text().splitlines()
]
FIXED_SEED = 20_000 if NIGHTLY else 20_001
"""The first has a huge table, and takes as long as thousands of others."""

LITERALS = 6


async def asked(seed: int, queries: int) -> Report:
    print(f"make metamorphic SEED={seed}")
    report = await Campaign(literals_of_shape=LITERALS).run(seed, queries)
    assert report.failure is None, f"seed {report.failure.seed}\n{report.failure}"
    return report


@pytest.mark.long
async def test_random_queries_agree_in_all_ways() -> None:
    report = await asked(FIXED_SEED, 450)
    assert report.queries >= 450
    assert report.errors < report.queries / 5, "queries that raise an error compare nothing"
    assert len(report.asked) > 120, "few pairs of a relation and a way were tried"


@pytest.mark.long
async def test_random_queries_of_a_fresh_seed_agree_in_all_ways() -> None:
    await asked(100_000 + SEED, 300 if NIGHTLY else 80)


@pytest.mark.parametrize("case", KEPT, ids=lambda case: str(case.seed))
async def test_what_once_differed_agrees(case: Case) -> None:
    outcome = await outcome_of(case)
    assert not outcome.difference, outcome.difference


def test_a_case_is_kept_whole() -> None:
    for case in KEPT:
        assert case_from_line(case_to_line(case)) == case


@pytest.mark.long
async def test_the_same_seed_asks_the_same() -> None:
    reports = [await Campaign(literals_of_shape=2).run(7, 8) for _ in range(2)]
    assert reports[0] == reports[1]


async def test_a_case_that_holds_is_not_shrunk() -> None:
    shrinker = Shrinker()
    assert await shrinker.shrink(KEPT[0]) == KEPT[0]
    assert shrinker.attempts == 0
