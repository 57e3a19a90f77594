"""Planted bugs in followers that take over: what came since, checkpoints and pins, one writer."""

from __future__ import annotations

from typing import Final

from qserver.durability.recovery import has_checkpoints_of
from qserver.engine.database import Database
from qserver.replication.copies import CatchUp
from qserver.replication.replicated_logs import ReplicatedLogs
from simulations.mutants.mutant import Mutant, edited
from simulations.replicated import REPLICATED

HOSTS: Final = (REPLICATED,)

MUTANTS: Final = (
    Mutant(
        "take_over_without_what_came_since",
        "a database begins with what was followed, and reads no records behind it",
        HOSTS,
        (
            edited(
                Database._recovered,
                "return await recover_from(known, self._log, may_save=True)",
                "return known",
            ),
        ),
    ),
    Mutant(
        "take_over_with_pins_that_nobody_knows",
        "a database begins with what was followed, though its file has other checkpoints or pins",
        HOSTS,
        (
            edited(
                has_checkpoints_of,
                "return with_empty(found) == with_empty(saved.kept)",
                "return True",
            ),
        ),
    ),
    Mutant(
        "pin_behind_the_back_of_a_follower",
        "a branch pins in the file of a parent that is followed, whose checkpoints do not know it",
        HOSTS,
        (edited(CatchUp._branch, "self.running.get(branch.parent)", "None"),),
    ),
    Mutant(
        "own_what_is_still_followed",
        "a process opens a family while its followers still write the files",
        HOSTS,
        (edited(ReplicatedLogs._join, "await self.followed.end(root)", "pass"),),
    ),
)
