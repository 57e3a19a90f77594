"""`make hostile`: attack a real server for as long as asked, and tell how its neighbours fared."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import takewhile
from pathlib import Path
from random import Random, SystemRandom

import trio

from qserver.engine.collector import settle_collector
from tests.hostile import side_by_side
from tests.hostile.attacks import ATTACKS
from tests.hostile.siege import ATTACKERS, Siege
from tests.hostile.statement_sweep import Run, drawn, measured
from tests.hostile.sweep import Step, steps
from tests.known_work import STEP_SECONDS as KNOWN_STEP_SECONDS
from tests.known_work import step_seconds
from tests.sql.databases import opened_sql

SWEEP_SECONDS = 300.0
"""How long the sweep of the catalogue goes on, where nothing else is asked for."""

STEP_SECONDS_MOST = 0.1
"""Processor time of a step, on a machine of its own."""

WORST_SHOWN = 10


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile")
    parser.add_argument("--seconds", type=float, help="how long; without it, each attack once")
    parser.add_argument("--seed", type=int, help="of the order of attacks")
    parser.add_argument("--match", default="", help="only attacks whose names have this in them")
    parser.add_argument("--attackers", type=int, default=ATTACKERS, help="how many at once")
    parser.add_argument(
        "--side-by-side", action="store_true", help="beside a hostile organization, and alone"
    )
    options = parser.parse_args()
    if options.side_by_side:
        return compare(options.match)
    seed = SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    attacks = [attack for attack in ATTACKS if options.match in attack.name]
    if not attacks:
        parser.error(f"no attack has {options.match!r} in its name")
    Random(seed).shuffle(attacks)
    slow = sweep(seed, options.seconds or SWEEP_SECONDS) if not options.match else []
    if options.seconds is not None:
        attacks *= 1 + int(options.seconds)
    print(f"seed {seed}, {len(ATTACKS)} kinds of attack", flush=True)
    with tempfile.TemporaryDirectory(prefix="qserver-hostile-") as folder:
        siege = Siege(Path(folder), tell, options.attackers)
        report = siege.run(attacks, options.seconds or float("inf"))
    if sys.stdout.isatty():
        print()
    print(report)
    return tell_problems([*report.problems(), *slow])


def compare(match: str) -> int:
    """Measure what an organization waits beside a hostile one, and alone."""
    print(side_by_side.HEADING, flush=True)
    with tempfile.TemporaryDirectory(prefix="qserver-hostile-") as folder:
        found = side_by_side.compare(Path(folder), partial(print, flush=True), match)
    print(side_by_side.verdict(found))
    return tell_problems(side_by_side.problems(found))


def tell_problems(problems: list[str]) -> int:
    for problem in problems:
        print(f"PROBLEM: {problem}")
    return 1 if problems else 0


def sweep(seed: int, seconds: float) -> list[str]:
    """Call everything with long values, then run statements, for so long each; what is too slow."""
    calls = _until(seconds, steps(Random(seed)))
    slow = _judged("calls of functions, operators, aggregates, casts and orders", calls)
    runs = trio.run(_runs, seed, seconds)
    return slow + _judged("statements with aggregates, windows and keys", runs)


async def _runs(seed: int, seconds: float) -> list[Run]:
    until = time.monotonic() + seconds
    found: list[Run] = []
    async with opened_sql() as database:
        settle_collector()
        for what, sql in drawn(Random(seed)):
            run = await measured(database, what, sql)
            if run.seconds > STEP_SECONDS_MOST:  # it may have waited for something else
                again = await measured(database, what, sql)
                run = min(run, again, key=lambda each: each.seconds)
            found.append(run)
            if time.monotonic() > until:
                break
    return found


def _until(seconds: float, found: Iterator[Step]) -> list[Step]:
    until = time.monotonic() + seconds
    return list(takewhile(lambda _: time.monotonic() < until, found))


def _judged(what: str, found: Sequence[Step | Run]) -> list[str]:
    pace = step_seconds() / KNOWN_STEP_SECONDS
    print(f"known work takes {pace:.2f} times as long as on a machine of its own")
    worst = sorted(found, key=lambda step: -step.seconds)
    print(f"{len(found)} {what}; the slowest:")
    for step in worst[:WORST_SHOWN]:
        print(f"  {step}", flush=True)
    slow = [step for step in worst if step.seconds > STEP_SECONDS_MOST * max(pace, 1.0)]
    return [f"a step of {step}" for step in slow]


def tell(line: str) -> None:
    """On a terminal drawn over itself."""
    if sys.stdout.isatty():
        print(f"\r\x1b[K{line[:100]}", end="", flush=True)
    else:
        print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
