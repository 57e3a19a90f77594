"""`make differential`: random programs on PostgreSQL and on qserver, compared."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from random import SystemRandom

import trio

from tests.differential.campaign import Campaign, Failure, Report
from tests.differential.engines import NoOracle, opened_postgres
from tests.differential.kept import keep


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential")
    parser.add_argument("--statements", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, help="stop after so long instead")
    parser.add_argument("--seed", type=int, help="of the first program")
    parser.add_argument("--large", action="store_true", help="tables of thousands of rows")
    parser.add_argument("--replay", action="store_true", help="the program of --seed alone")
    parser.add_argument("--no-shrink", action="store_true", help="show differences as they came")
    parser.add_argument("--no-keep", action="store_true", help="do not write what is found")
    options = parser.parse_args()
    seed = SystemRandom().randrange(1_000_000_000) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    try:
        report = trio.run(run, seed, _limit(options), options.large, not options.no_shrink)
    except NoOracle as error:
        print(f"there is no PostgreSQL package for this platform: {error}")
        return 2
    if sys.stdout.isatty():
        print("\r\x1b[K", end="")
    if not options.no_keep:
        for failure in report.failures:
            keep(failure)
    print(report)
    return 1 if report.failures else 0


async def run(seed: int, enough: Callable[[Report], bool], large: bool, shrink: bool) -> Report:
    with opened_postgres() as postgres:
        campaign = Campaign(postgres, large=large, shrink=shrink, tell=tell)
        return await campaign.run(seed, enough)


def show(failure: Failure, large: bool) -> None:
    print(f"\n=== seed {failure.seed}")
    for step in failure.steps[:-1]:
        print(f"{step.sql};")
    print(failure.difference)
    print(f"replay: {replay(failure.seed, large)}", flush=True)


def replay(seed: int, large: bool) -> str:
    return f".venv/bin/python -m tests.differential {'--large ' * large}--replay --seed {seed}"


def _limit(options: argparse.Namespace) -> Callable[[Report], bool]:
    if options.replay:
        return lambda report: report.total > 0
    if options.seconds is not None:
        return _Clock(options.seconds)
    return lambda report: report.total >= options.statements


class _Clock:
    """So many seconds from when it is first asked: starting PostgreSQL does not count."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end: float | None = None

    def __call__(self, report: Report) -> bool:
        if self._end is None:
            self._end = time.monotonic() + self._seconds
        return time.monotonic() > self._end


def tell(report: Report, seed: int) -> None:
    """What was found; then a line, on a terminal drawn over itself, elsewhere now and then."""
    for failure in report.failures:
        if failure.seed == seed:
            show(failure, report.large)
    line = f"{report.total} statements, {len(report.failures)} differences, seed {seed}"
    if sys.stdout.isatty():
        print(f"\r\x1b[K{line}", end="", flush=True)
    elif seed % 50 == 0:
        print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
