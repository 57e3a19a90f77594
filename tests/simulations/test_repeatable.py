"""The first seeds pass and reach what they must. The same seed gives the same trace: twice in a
process, in fresh ones, under any hash seed.

By day a sample of these is run, drawn by the seed of the tests, of which some are repeated; at
night all seeds that it takes to reach everything.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from simulations.campaign import SEEDS_TO_REACH_ALL, Summary, results_of
from simulations.determinism import Exhausted, run_repeatably
from simulations.results import Result
from simulations.run import plan_for, simulate
from tests.sampling import NIGHTLY, drawn

ROOT = Path(__file__).parents[2]
ALL = range(1, 1 + SEEDS_TO_REACH_ALL)
SEEDS = ALL if NIGHTLY else drawn(ALL, 8)
REPEATED = SEEDS if NIGHTLY else drawn(SEEDS, 2)

HASH_SEEDS = ("0", "4242")

DIGESTS = """
from simulations.run import plan_for, simulate
for seed in {seeds}:
    print(simulate(plan_for(seed)).digest)
"""


def share_of(hash_seed: str) -> list[int]:
    return list(REPEATED[HASH_SEEDS.index(hash_seed) :: len(HASH_SEEDS)])


@pytest.fixture(scope="module")
def fresh_processes() -> Iterator[dict[str, subprocess.Popen[str]]]:
    """They run beside the campaign, which computes the same meanwhile."""
    processes = {}
    for hash_seed in HASH_SEEDS:
        program = DIGESTS.format(seeds=share_of(hash_seed))
        processes[hash_seed] = subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            stdout=subprocess.PIPE,
            text=True,
        )
    yield processes
    for process in processes.values():
        assert process.stdout is not None
        process.stdout.close()
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def campaign(fresh_processes: object) -> list[Result]:
    """The results of the first seeds, from processes of which each runs many."""
    plans = [plan_for(seed) for seed in SEEDS]
    return list(results_of(plans, os.cpu_count() or 1))


@pytest.fixture(scope="module")
def digests(campaign: list[Result]) -> dict[int, str]:
    return {result.plan.seed: result.digest for result in campaign}


@pytest.fixture(scope="module")
def summary(campaign: list[Result]) -> Summary:
    summary = Summary()
    for result in campaign:
        summary.add(result)
    return summary


@pytest.mark.long
def test_a_campaign_passes(summary: Summary) -> None:
    assert [str(result) for result in summary.failures] == []


@pytest.mark.nightly
def test_a_campaign_reaches_every_point_it_must(summary: Summary) -> None:
    assert summary.missed == []


@pytest.mark.long
def test_the_same_seed_gives_the_same_trace_in_one_process(digests: dict[int, str]) -> None:
    for seed in [*SEEDS[::7], *SEEDS[::10]]:
        assert simulate(plan_for(seed)).digest == digests[seed]


@pytest.mark.long
@pytest.mark.parametrize("hash_seed", HASH_SEEDS)
def test_the_same_seed_gives_the_same_trace_in_a_fresh_process(
    hash_seed: str, digests: dict[int, str], fresh_processes: dict[str, subprocess.Popen[str]]
) -> None:
    output, _ = fresh_processes[hash_seed].communicate()
    assert fresh_processes[hash_seed].returncode == 0
    assert output.split() == [digests[seed] for seed in share_of(hash_seed)]


@pytest.mark.long
def test_different_seeds_give_different_traces(digests: dict[int, str]) -> None:
    assert len(set(digests.values())) == len(digests) == len(SEEDS)


def test_a_deadlock_ends_by_the_virtual_deadline() -> None:
    with pytest.raises(Exhausted, match=r"10\.0 virtual seconds"):
        run_repeatably(1, trio.sleep_forever, virtual_seconds_max=10.0, steps_max=1000)


def test_a_livelock_ends_by_the_limit_of_steps() -> None:
    async def spin() -> None:
        while True:
            await trio.lowlevel.checkpoint()

    with pytest.raises(Exhausted, match=r"10\d\d steps"):
        run_repeatably(1, spin, virtual_seconds_max=10.0, steps_max=1000)


def test_asking_the_machine_for_the_time_fails_loudly() -> None:
    import time

    async def ask() -> None:
        time.time()

    with pytest.raises(AssertionError, match=r"time\.time was called"):
        run_repeatably(1, ask, virtual_seconds_max=1.0, steps_max=1000)
    assert time.time() > 0, "the trip-wire is gone when the run is"
