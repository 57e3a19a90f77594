"""Campaigns of faults from the command line: their options, what they print, what they leave."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import SystemRandom

import trio

Outcome = tuple[object, list[str]]
"""A report, and the problems that were found."""


def campaign_parser(module: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m {module}")
    parser.add_argument("--faults", type=int, default=100, help="how many are caused")
    parser.add_argument("--seed", type=int, help="of a run that is to be repeated")
    return parser


def chosen_seed(options: argparse.Namespace) -> int:
    seed: int = SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    return seed


def run_campaign(name: str, run: Callable[[Path], Awaitable[Outcome]]) -> bool:
    """Run it in a folder of its own, which is left if there are problems; False if there are."""
    folder = Path(tempfile.mkdtemp(prefix=f"qserver-{name}-"))
    report, problems = trio.run(run, folder)
    if sys.stdout.isatty():
        print()
    print(report, flush=True)
    if problems:
        print(f"{name}: {problems[0]}\nthe data are left in {folder}", flush=True)
        return False
    shutil.rmtree(folder)
    return True


class Lines:
    """On a terminal drawn over itself; elsewhere now and then."""

    _last = 0.0

    def __call__(self, line: str) -> None:
        if sys.stdout.isatty():
            print(f"\r\x1b[K{line}", end="", flush=True)
        elif abs(trio.current_time() - self._last) >= 10:  # each part has its own clock
            self._last = trio.current_time()
            print(line, flush=True)


tell = Lines()
