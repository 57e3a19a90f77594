"""Planted bugs in what branches and their parents have in common: the past, and the pins.

They are hunted in families of branches, see `simulations.branches`, not in the workloads.
"""

from __future__ import annotations

from typing import Final

from qserver.durability.lineage import segment_before, segment_of
from qserver.engine.checkpointer import Checkpointer
from simulations.branches import Family, simulate_family
from simulations.mutants.mutant import CLUMSY, Mutant, edited, planted
from simulations.mutants.shapes import LOOKED_BACK

FAMILY: Final = ("a family of branches",)

BRANCH_MUTANTS: Final = (
    Mutant(
        "end_the_past_where_the_log_begins",
        "a branch whose log begins with its own version has no past before it",
        FAMILY,
        (
            edited(
                segment_before,
                "segment.start > log.base.version",
                "segment.start >= log.base.version",
            ),
        ),
        LOOKED_BACK,
    ),
    Mutant(
        "begin_the_past_one_later",
        "of the parent's log the first record is not used",
        FAMILY,
        (edited(segment_before, "records[0][0] - 1", "records[0][0]"),),
        LOOKED_BACK,
    ),
    Mutant(
        "leave_the_first_version_to_the_parent",
        "the version with which a log begins is sought one log earlier",
        FAMILY,
        (edited(segment_of, "version < segment.start", "version <= segment.start"),),
        LOOKED_BACK,
    ),
    Mutant(
        "pin_for_the_last_branch_alone",
        "a checkpoint that is pinned again forgets for whom it was pinned before",
        FAMILY,
        (edited(Checkpointer.pin, "[*kept.names, name]", "[name]"),),
    ),
    Mutant(
        "let_go_of_the_last_pin",
        "a deleted branch removes the pin of another, and leaves its own",
        FAMILY,
        (
            edited(
                Checkpointer._let_go,
                "[each for each in kept.names if pinned or each != name]",
                "kept.names if pinned else kept.names[:-1]",
            ),
        ),
    ),
)


def hunt_in_families(mutant: Mutant, seeds: range) -> tuple[Family | None, int]:
    """Return the first family that fails with the mutant in place, and how many runs it took."""
    with planted(mutant):
        for runs, seed in enumerate(seeds, start=1):
            family = simulate_family(seed, **dict(mutant.shape))
            if family.problems:
                clumsy = [each for each in family.problems if CLUMSY.search(each)]
                assert not clumsy, f"{mutant.name} does not fit the code any more: {clumsy}"
                return family, runs
    return None, len(seeds)
