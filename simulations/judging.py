"""Runs what a plan says in its world, judges how it ended, and tells what was found."""

from __future__ import annotations

from typing import Protocol

from simulations.determinism import Exhausted, run_repeatably
from simulations.results import Plan, Result, Verdict, leaves
from simulations.sizes import sized
from simulations.world import SimulatedWorld


class Judged(Protocol):
    """A run, with what it has found wrong so far."""

    problems: list[str]
    stuck: bool
    transactions: int
    crashes: int

    @property
    def world(self) -> SimulatedWorld: ...

    async def main(self) -> None: ...


def conclude(plan: Plan, run: Judged, virtual_seconds_max: float, steps_max: int) -> Result:
    """Run it to its end, and return what was found."""
    verdict = judge(plan, run, virtual_seconds_max, steps_max)
    world, trace = run.world, run.world.trace
    problems = list(dict.fromkeys(world.unexpected + run.problems))
    for problem in problems:
        trace.record(trace.ended, "world", "anomaly", problem)
    if problems and verdict is Verdict.PASSED:
        verdict = Verdict.ANOMALY
    return Result(
        plan,
        verdict,
        problems,
        trace.digest(),
        world.faults.struck,
        world.reached,
        run.transactions,
        run.crashes,
        trace.events,
    )


def judge(plan: Plan, run: Judged, virtual_seconds_max: float, steps_max: int) -> Verdict:
    """Run it to its end; what clients saw is for others to judge."""
    verdict = Verdict.PASSED
    try:
        with sized(plan.profile.sizes):
            run_repeatably(
                plan.seed, run.main, virtual_seconds_max=virtual_seconds_max, steps_max=steps_max
            )
    except Exhausted as error:
        verdict = Verdict.STUCK
        run.problems.append(str(error))
    except Exception as error:
        verdict = Verdict.BROKEN
        run.problems += leaves(error)
    finally:
        run.world.end()
    if run.stuck:
        return Verdict.STUCK
    return Verdict.BROKEN if run.world.unexpected else verdict
