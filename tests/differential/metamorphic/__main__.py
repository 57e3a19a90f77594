"""`make metamorphic`: random queries, each in many ways that must agree."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from random import SystemRandom
from time import monotonic

import trio

from tests.differential.metamorphic.campaign import LITERALS_OF_SHAPE, Campaign, Failure, Report
from tests.differential.metamorphic.cases import case_to_line
from tests.differential.metamorphic.shrinking import ATTEMPTS_MAX, Shrinker

KEPT = Path(__file__).with_name("kept.jsonl")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential.metamorphic")
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--seed", type=int, help="the first seed; without it, a fresh one")
    parser.add_argument("--shape", type=int, help="only this shape of the one seed")
    parser.add_argument("--all", action="store_true", help="go on after a difference")
    parser.add_argument("--literals", type=int, default=LITERALS_OF_SHAPE, help="of each shape")
    parser.add_argument("--attempts", type=int, default=ATTEMPTS_MAX, help="to shrink a case")
    options = parser.parse_args()
    seed = SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    progress = Progress()
    failed = False
    while True:
        campaign = Campaign(progress.tell, options.literals)
        campaign.report.queries = progress.done
        if options.shape is not None:
            trio.run(campaign.run_seed, seed, None, options.shape)
        else:
            trio.run(campaign.run, seed, options.queries)
        progress.end(campaign.report)
        failure = campaign.report.failure
        if failure is None:
            return int(failed)
        failed = True
        tell_failure(failure, options.attempts)
        if not options.all:
            return 1
        progress.done, seed = campaign.report.queries, failure.seed + 1


def tell_failure(failure: Failure, attempts_most: int) -> None:
    """The case is told, and kept, as small as it gets."""
    print(f"\n{failure.difference}\n", flush=True)
    shrinker = Shrinker(attempts_most)
    smaller = trio.run(shrinker.shrink, failure.case)
    print(f"shrunk in {shrinker.attempts} attempts to\n")
    print(f"{smaller.script()}\n\n{smaller.question}\n")
    with KEPT.open("a") as file:
        file.write(case_to_line(smaller) + "\n")
    print(f"replay: make metamorphic SEED={failure.seed} SHAPE={failure.shape}")
    print(f"The case was added to {KEPT.name}: the tests ask it again.", flush=True)


class Progress:
    """One line: drawn over itself on a terminal, elsewhere one every two thousand queries."""

    def __init__(self) -> None:
        self.done = 0
        self._began = monotonic()
        self._executions = 0
        self._told = -1

    def tell(self, report: Report) -> None:
        step = report.queries // (20 if sys.stdout.isatty() else 2_000)
        if step == self._told:
            return
        self._told = step
        rate = (self._executions + report.executions) / (monotonic() - self._began)
        line = f"{report}, {rate:.0f} executions/s"
        if sys.stdout.isatty():
            print(f"\r\x1b[K{line}", end="", flush=True)
        else:
            print(line, flush=True)

    def end(self, report: Report) -> None:
        if sys.stdout.isatty():
            print()
        print(report, flush=True)
        self._executions += report.executions


if __name__ == "__main__":
    sys.exit(main())
