"""Nodes that share families: one at a time shows each, and nothing acknowledged is missing."""

from __future__ import annotations

import pytest

from simulations.campaign import SEEDS_TO_REACH_ALL, ProgressBar, run_campaign
from simulations.nodes import NODES, NODES_SOMETIMES
from simulations.run import plan_for, simulate
from tests.sampling import NIGHTLY

SEEDS = SEEDS_TO_REACH_ALL if NIGHTLY else 8


@pytest.mark.long
def test_one_node_at_a_time_shows_a_family_with_all_that_was_acknowledged() -> None:
    plans = [plan_for(seed, NODES) for seed in range(1, SEEDS + 1)]
    summary = run_campaign(plans, 1, ProgressBar(SEEDS))
    assert [str(result) for result in summary.failures] == []
    assert summary.transactions > 50 * SEEDS
    assert summary.points == NODES_SOMETIMES
    if NIGHTLY:
        assert summary.missed == []
    assert len(summary.missed) < len(NODES_SOMETIMES) / 2


@pytest.mark.long
def test_a_run_is_repeated_by_its_seed() -> None:
    plan = plan_for(3, NODES, "storm")
    assert simulate(plan).digest == simulate(plan).digest
