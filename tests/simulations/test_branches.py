"""Families of branches on simulated disks: sound in all runs, and planted bugs are found."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

import simulations.branches as family
from qserver.durability.branch_log import BranchLog
from qserver.durability.branch_log import begin_branch as begin
from qserver.durability.kept import Kept
from qserver.durability.port import Log
from qserver.engine.checkpointer import Checkpointer
from simulations.branches import Process, simulate_family

SEEDS = 10
SEEDS_UNTIL_CAUGHT = 40


def test_branches_hold_what_they_must_whatever_fails() -> None:
    runs = [simulate_family(seed) for seed in range(SEEDS)]
    assert [(run.seed, run.problems) for run in runs if run.problems] == []
    assert sum(run.crashes for run in runs) > 2 * SEEDS
    assert sum(run.made for run in runs) > 4 * SEEDS and sum(run.deleted for run in runs) > SEEDS


def forget_what_a_branch_needs(plant: pytest.MonkeyPatch) -> None:
    """A checkpoint is found, and not pinned."""

    async def pin(self: Checkpointer, name: str, version: int) -> Kept | None:
        kept = self.saved.base_of(version)
        return kept if kept is not None and kept.version else None

    plant.setattr(Checkpointer, "pin", pin)


def copy_the_log_to_its_end(plant: pytest.MonkeyPatch) -> None:
    """A branch sees commits of its parent that came later."""

    async def longer(own: Log, log: Log, parent: str, kept: Kept | None, version: int) -> None:
        while records := await log.read(version, 1000):
            version = records[-1][0]
        await begin(own, log, parent, kept, version)

    plant.setattr(family, "begin_branch", longer)


def look_in_the_file_of_the_parent_first(plant: pytest.MonkeyPatch) -> None:
    """A page of the parent is taken for the branch's own of the same number."""

    def load(self: BranchLog, numbers: Sequence[int]) -> dict[int, bytes]:
        found = self.parent.load(numbers)
        rest = [number for number in numbers if number not in found]
        return found | (self.own.load(rest) if rest else {})

    plant.setattr(BranchLog, "load", load)


def forget_the_record_before_the_pin(plant: pytest.MonkeyPatch) -> None:
    """A crash between the two leaves a pin that nobody lets go."""

    async def remove(self: family.Family, process: Process, name: str) -> None:
        await process.close(name)
        self._disks.pop(name, None)
        parent = self.members.pop(name).parent
        assert parent is not None
        await (await process.open(parent)).unpin_checkpoint(name)

    plant.setattr(family.Family, "_remove", remove)


@pytest.mark.parametrize(
    "bug",
    [
        forget_what_a_branch_needs,
        copy_the_log_to_its_end,
        look_in_the_file_of_the_parent_first,
        forget_the_record_before_the_pin,
    ],
)
def test_a_planted_bug_is_caught(
    bug: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    bug(monkeypatch)
    assert any(simulate_family(seed).problems for seed in range(SEEDS_UNTIL_CAUGHT))
