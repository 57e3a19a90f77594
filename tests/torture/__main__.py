"""`make torture`: kill the server many times, and tell what became of what it had promised."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from random import SystemRandom

import trio

from tests.torture.campaign import Campaign
from tests.torture.deaths import BUGS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, help="of a run that is to be repeated")
    parser.add_argument("--bug", choices=BUGS, help="plant a bug, to see that it is found")
    options = parser.parse_args()
    seed = SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="qserver-torture-"))
    campaign = Campaign(folder, seed, options.kills, bug=options.bug, tell=tell)
    report = trio.run(campaign.run)
    if sys.stdout.isatty():
        print()
    print(report)
    if report.problems:
        print(f"the data are left in {folder}")
        return 1
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    return 0


def tell(line: str) -> None:
    """On a terminal drawn over itself; elsewhere now and then."""
    if sys.stdout.isatty():
        print(f"\r\x1b[K{line}", end="", flush=True)
    elif line.split()[0].endswith("0"):
        print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
