"""`make powerloss`: let the power fail, and kill, at every operation on the real files."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random, SystemRandom
from typing import Final

from tests.powerloss.bugs import BUGS
from tests.powerloss.campaign import Campaign, Report
from tests.powerloss.family import audit_family
from tests.powerloss.journal import build_library

LIVES: Final = ("first", "second", "third")
AGAIN, KILLS, ERRORS = 4, 6, 4
"""Starts, kills and failing operations of a round."""
FAMILY_EVERY: Final = (10, 25)
"""Of so many operations on branches one meets a power failure: each takes a start of all of it."""
FAMILY_KILLS: Final = 3


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.powerloss")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, help="of a run that is to be repeated")
    parser.add_argument("--bug", choices=list(BUGS), help="plant a bug, to see that it is found")
    options = parser.parse_args()
    seed = SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    total = Report()
    until = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory(prefix="qserver-powerloss-", dir=memory()) as folder:
        library = build_library(Path(folder))
        for report in rounds(library, Path(folder) / "round", Random(seed), options.bug):
            total.add(report)
            if total.problems or time.monotonic() > until:
                break
            print(str(total).splitlines()[0], flush=True)
    print(total)
    if total.problems:
        print(f"repeat with SEED={seed}")
    return 1 if total.problems else 0


def rounds(library: Path, place: Path, chance: Random, bug: str | None) -> Iterator[Report]:
    """Reports without end; the first already has something of everything."""
    while True:
        number = chance.randrange(1 << 30)
        lucks = ("nothing", "all", number, number + 1)
        lives = Campaign(library, place, bug=bug, lucks=lucks)
        yield lives.run(LIVES)
        for left, promises in chance.sample(lives.left, AGAIN):
            again = Campaign(library, place, bug=bug, lucks=("nothing", number))
            yield again.run_again(left, promises)
        for _ in range(KILLS):
            killed = Campaign(library, place, bug=bug)
            at = chance.randrange(1, lives.report.operations)
            yield killed.run_killed(LIVES, at, chance.random() < 0.5)
        for _ in range(ERRORS):
            failing = Campaign(library, place, bug=bug, lucks=("nothing", number))
            yield failing.run(LIVES, fail_at=chance.randrange(1, lives.report.operations))
        yield Campaign(library, place, bug=bug, lucks=lucks).run(["backup", "copy"])
        branches = Campaign(
            library,
            place,
            bug=bug,
            lucks=("nothing", number),
            audit=audit_family,
            every=chance.randint(*FAMILY_EVERY),
        )
        yield branches.run(["family"])
        for _ in range(FAMILY_KILLS):
            killed = Campaign(library, place, bug=bug, audit=audit_family)
            at = chance.randrange(1, branches.report.operations)
            yield killed.run_killed(["family"], at, chance.random() < 0.5)
        longer = Campaign(library, place, bug=bug, lucks=("nothing", number))
        yield longer.run([f"long-{number}", "again"])


def memory() -> Path | None:
    """Thousands of folders are made and opened: in memory, where there is a place for that."""
    place = Path("/dev/shm")
    return place if place.is_dir() else None


if __name__ == "__main__":
    sys.exit(main())
