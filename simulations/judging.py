"""Runs what a plan says in its world, and judges how it ended."""

from __future__ import annotations

from typing import Protocol

from simulations.determinism import Exhausted, run_repeatably
from simulations.results import Plan, Verdict, leaves
from simulations.sizes import sized
from simulations.world import SimulatedWorld


class Judged(Protocol):
    """A run, with what it has found wrong so far."""

    problems: list[str]
    stuck: bool

    @property
    def world(self) -> SimulatedWorld: ...

    async def main(self) -> None: ...


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
