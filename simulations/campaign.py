"""Many runs: over several processes, with a progress bar, failures kept, and points counted."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final, TextIO

from simulations.nodes import NODES, NODES_SOMETIMES
from simulations.observations import SOMETIMES
from simulations.replicated import REPLICATED, REPLICATED_SOMETIMES
from simulations.results import Plan, Result, Verdict
from simulations.run import plan_for, simulate

SEEDS_FILE: Final = Path(__file__).with_name("seeds.txt")
SEEDS_TO_REACH_ALL: Final = 150
"""A campaign of so many seeds, over all workloads, must reach every point of `SOMETIMES`."""

POINTS: Final[Mapping[str | None, tuple[str, ...]]] = MappingProxyType(
    {REPLICATED: REPLICATED_SOMETIMES, NODES: NODES_SOMETIMES}
)
"""By workload: what campaigns of it alone must reach."""


@dataclass(slots=True)
class Summary:
    runs: int = 0
    transactions: int = 0
    faults: int = 0
    crashes: int = 0
    reached: dict[str, int] = field(default_factory=dict)
    reaching: dict[tuple[str, str], int] = field(default_factory=dict)
    """By workload and point: in how many runs it was reached."""
    failures: list[Result] = field(default_factory=list)
    points: tuple[str, ...] = SOMETIMES
    """What must be reached."""

    def add(self, result: Result) -> None:
        self.runs += 1
        self.transactions += result.transactions
        self.faults += len(result.struck)
        self.crashes += result.crashes
        for point, times in result.reached.items():
            self.reached[point] = self.reached.get(point, 0) + times
            place = result.plan.workload, point
            self.reaching[place] = self.reaching.get(place, 0) + 1
        if result.verdict is not Verdict.PASSED:
            self.failures.append(result)

    @property
    def missed(self) -> list[str]:
        return [point for point in self.points if point not in self.reached]

    def __str__(self) -> str:
        return (
            f"{self.runs} runs, {self.transactions} transactions, {self.faults} faults,"
            f" {self.crashes} crashes, {len(self.failures)} failures,"
            f" {len(self.points) - len(self.missed)} of {len(self.points)} points reached"
        )


def run_campaign(
    plans: list[Plan], jobs: int, progress: ProgressBar, summary: Summary | None = None
) -> Summary:
    """Run all plans; the summary does not depend on the number of processes.

    `summary`: that of other runs before, which goes on.
    """
    if summary is None:
        workloads = {plan.workload for plan in plans}
        only = workloads.pop() if len(workloads) == 1 else None
        summary = Summary(points=POINTS.get(only, SOMETIMES))
    for result in results_of(plans, jobs):
        summary.add(result)
        progress.show(summary.runs, len(summary.failures))
    return summary


def results_of(plans: list[Plan], jobs: int) -> Iterator[Result]:
    """Run all plans, in several processes; the results come in the order of the plans."""
    if jobs == 1 or len(plans) < 2 * jobs:
        yield from map(simulate, plans)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(simulate, plans, chunksize=4)


class ProgressBar:
    """A progress line on a terminal; silent elsewhere."""

    def __init__(self, total: int, stream: TextIO = sys.stderr) -> None:
        self._total = total
        self._stream = stream
        self._visible = stream.isatty()

    def show(self, done: int, failures: int) -> None:
        if self._visible:
            filled = 40 * done // max(self._total, 1)
            bar = "█" * filled + "░" * (40 - filled)
            failed = f", {failures} failed" if failures else ""
            end = "\n" if done == self._total else ""
            self._stream.write(f"\r{bar} {done}/{self._total}{failed}{end}")
            self._stream.flush()


def kept_plans(path: Path = SEEDS_FILE) -> list[Plan]:
    """Return the runs that once failed, one a line: seed, workload, profile, `#` and a remark."""
    plans = []
    for line in path.read_text().splitlines():
        words = line.split("#")[0].split()
        if words:
            seed, workload, profile = words
            plans.append(plan_for(int(seed), workload, profile))
    return plans


def keep(results: Iterable[Result], path: Path = SEEDS_FILE) -> None:
    """Add failing runs to the file, so that the tests replay them from now on."""
    known = {(p.seed, p.workload, p.profile.name) for p in kept_plans(path)}
    with path.open("a") as file:
        for result in results:
            plan = result.plan
            name = (plan.seed, plan.workload, plan.profile.name)
            if name not in known:
                known.add(name)
                problem = result.problems[0] if result.problems else result.verdict.name
                file.write(f"{name[0]} {name[1]} {name[2]}  # {problem[:80]}\n")
