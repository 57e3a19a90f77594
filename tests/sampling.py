"""What of a long hunt is run by day: a sample, drawn by a seed. At night everything is run.

`make nightly` sets QSERVER_NIGHTLY. Without it, tests with the marker `nightly` are left out:

    @pytest.mark.nightly                                            a test only for the night
    @pytest.mark.long                                               a tenth of these by day
    @pytest.mark.half                                               half of these
    @pytest.mark.parametrize("mutant", sampled(MUTANTS, 30), …)     30 by day, all at night
    @settings(max_examples=examples(150))                           50 by day, 150 at night

By day the seed follows from the files that are committed, so that a commit is judged by the same
tests wherever it is tested, and the next commit by others. At night, and where there is no git,
chance draws it. Hypothesis tries what the seed says too.

A run ends with its seed; QSERVER_TEST_SEED repeats the run. The seed is put into the environment,
so that all processes of a run draw the same.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from random import Random, SystemRandom
from typing import Final, TypeVar

import pytest
from _pytest.mark import ParameterSet

from tests.given import GIVEN

Thing = TypeVar("Thing")

SEEDS: Final = 1_000_000


def seed_of_the_commit(folder: Path) -> int | None:
    """A number that follows from the files of the last commit; None where there is no git."""
    try:
        command = ["git", "rev-parse", "--verify", "--quiet", "HEAD^{tree}"]
        told = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    except OSError:
        return None
    return int(told.stdout, 16) % SEEDS if told.returncode == 0 else None


def _seed() -> int:
    if given := GIVEN.get("QSERVER_TEST_SEED"):
        return int(given)
    committed = None if NIGHTLY else seed_of_the_commit(Path(__file__).parents[1])
    return SystemRandom().randrange(SEEDS) if committed is None else committed


NIGHTLY: Final = GIVEN.get("QSERVER_NIGHTLY", "") not in ("", "0")
SEED: Final = _seed()
os.environ["QSERVER_TEST_SEED"] = str(SEED)

SHARES: Final[Mapping[str, float]] = {"long": 1 / 10, "half": 1 / 2}
"""How many of the tests with a marker are run by day: of those that take a second or more, and of
those that take a third of one."""


def drawn(things: Sequence[Thing], count: int, always: Collection[Thing] = ()) -> list[Thing]:
    """Those of `always` and as many others as make `count`, in their order."""
    others = [at for at, thing in enumerate(things) if thing not in always]
    wanted = max(0, count - (len(things) - len(others)))
    chosen = set(Random(SEED).sample(others, min(wanted, len(others))))
    return [thing for at, thing in enumerate(things) if at in chosen or thing in always]


def sampled(
    things: Sequence[Thing], count: int, always: Collection[Thing] = ()
) -> list[ParameterSet]:
    """All as parameters of a test; those that are not drawn are for the night."""
    by_day = drawn(things, count, always)
    return [
        pytest.param(thing, marks=() if thing in by_day else pytest.mark.nightly)
        for thing in things
    ]


def examples(at_night: int) -> int:
    """How many Hypothesis tries: by day a third."""
    return at_night if NIGHTLY else -(-at_night // 3)


def left_for_the_night(item: pytest.Item) -> bool:
    """Whether a test is not run by day. Of those that take long the seed draws a share, unless the
    developer names files: then it is these that are to be run."""
    if NIGHTLY:
        return False
    if item.get_closest_marker("nightly") is not None:
        return True
    if item.config.args_source is pytest.Config.ArgsSource.ARGS:
        return False
    share = min((SHARES.get(marker.name, 1.0) for marker in item.iter_markers()), default=1.0)
    return Random(f"{SEED} {item.nodeid}").random() >= share
