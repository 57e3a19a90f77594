"""Hosts that take a family from each other: sound in all runs, and what nodes change is noticed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulations.campaign import SEEDS_TO_REACH_ALL, ProgressBar, run_campaign
from simulations.faults import make_profile
from simulations.replicated import REPLICATED, REPLICATED_SOMETIMES
from simulations.results import Plan
from simulations.run import plan_for, simulate
from tests.sampling import NIGHTLY

SEEDS = SEEDS_TO_REACH_ALL if NIGHTLY else 16


@pytest.mark.long
def test_nothing_acknowledged_is_lost_and_one_host_writes() -> None:
    plans = [plan_for(seed, REPLICATED) for seed in range(1, SEEDS + 1)]
    summary = run_campaign(plans, 1, ProgressBar(SEEDS))
    assert [str(result) for result in summary.failures] == []
    assert summary.crashes > SEEDS
    assert summary.points == REPLICATED_SOMETIMES
    if NIGHTLY:
        assert summary.missed == []
    assert len(summary.missed) < len(REPLICATED_SOMETIMES) / 2


@pytest.mark.long
def test_a_run_is_repeated_by_its_seed() -> None:
    plan = plan_for(3, REPLICATED, "storm")
    assert simulate(plan).digest == simulate(plan).digest


@pytest.mark.parametrize("seed", range(1, 5))
def test_a_message_that_the_nodes_replace_is_noticed_by_whoever_reads_it(seed: int) -> None:
    profile = make_profile("storm", seed)
    faults = profile.probabilities | {"acknowledged_replaced": 1.0, "election": 0.03}
    result = simulate(Plan(seed, REPLICATED, replace(profile, probabilities=faults)))
    unfit = "the replicated log does not fit together"
    wrong = [each for each in result.problems if unfit not in each and "RuntimeError" not in each]
    assert wrong == []
