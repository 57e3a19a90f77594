"""Chooses workloads for a campaign: those that a change touches, and those with rare points.

    files ─► planted bugs in the same file ─► the workloads that notice them
          └► else those in the same folder   (nobody has planted a bug there yet)
    runs  ─► points that few of them reached ─► the workloads that reached those

Planted bugs are what is known about which workload sees which code. A general campaign goes round:
of 150 runs each workload has four or five, and a bug that shows in one run of thirty stays hidden.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import cycle, islice
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any, Final

from simulations.mutants import MUTANTS
from simulations.workloads import WORKLOADS

ROOT: Final = Path(__file__).parent.parent


def changed_files(since: str) -> list[str]:
    """Return the files that differ from a commit, and those that git does not know yet."""
    commands = (
        ("git", "diff", "--name-only", since, "--"),
        ("git", "ls-files", "--others", "--exclude-standard"),
    )
    found: list[str] = []
    for command in commands:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        found += done.stdout.splitlines()
    return found


def workloads_touched(files: Iterable[str]) -> list[str]:
    """Return the workloads that see the code of these files, those first that see the most."""
    seen: Counter[str] = Counter()
    for file in files:
        seen += _noticing().get(file) or _noticing_in_folder(file)
    return [name for name, _ in seen.most_common()]


def _noticing() -> Mapping[str, Counter[str]]:
    """Return by file: how many of the planted bugs in it each workload notices."""
    noticing: dict[str, Counter[str]] = {}
    for mutant in MUTANTS:
        for file in {_file_of(owner) for owner, _, _ in mutant.changes}:
            noticing.setdefault(file, Counter()).update(mutant.workloads)
    for name, workload in WORKLOADS.items():
        noticing[_file_of(workload)] = Counter([name])
    return noticing


def _noticing_in_folder(file: str) -> Counter[str]:
    folder = PurePosixPath(file).parent
    found: Counter[str] = Counter()
    if folder.parts[:1] == ("qserver",):
        for each, workloads in _noticing().items():
            if PurePosixPath(each).parent == folder:
                found += workloads
    return found


def _file_of(owner: Any) -> str:
    module = owner.__name__ if isinstance(owner, ModuleType) else owner.__module__
    return module.replace(".", "/") + ".py"


def shared_out(worth: Mapping[str, float], runs: int) -> list[str]:
    """Return a workload for each run: each as often as its part of the worth says."""
    total = sum(worth.values())
    if not total:
        return list(islice(cycle(WORKLOADS), runs))
    given: Counter[str] = Counter()
    chosen = []
    for number in range(1, runs + 1):
        name = max(worth, key=lambda each: (worth[each] / total * number - given[each], each))
        given[name] += 1
        chosen.append(name)
    return chosen


def rarity(reached: Mapping[tuple[str, str], int]) -> dict[str, float]:
    """Return what a run of each workload is worth, from the runs of each that reached a point.

    A point that many runs reached is worth little to each; one that a single run reached is worth
    as much as everything common together.
    """
    runs: Counter[str] = Counter()
    for (_, point), times in reached.items():
        runs[point] += times
    worth: dict[str, float] = dict.fromkeys(WORKLOADS, 0.0)
    for (workload, point), times in reached.items():
        worth[workload] += times / runs[point] ** 2
    return worth
