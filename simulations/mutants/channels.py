"""Planted bugs in channels: notifications too early, too late, twice, or of nobody."""

from __future__ import annotations

from typing import Final

from qserver.engine.channels import Channels
from qserver.engine.coordinator import Coordinator
from simulations.mutants.mutant import Mutant, edited

CHANNELS: Final = ("sql_channels",)

MUTANTS: Final = (
    Mutant(
        "tell_before_it_is_durable",
        "listeners hear of a transaction when its round is decided, not when it is durable",
        CHANNELS,
        (
            edited(
                Coordinator._tell,
                "answers.append((self._channels.delivery(committed.version, sent), committed))",
                "self._channels.delivery(committed.version, sent).put(committed)",
            ),
        ),
    ),
    Mutant(
        "forget_what_was_pending",
        "after a restart nobody is told of what had reached the log",
        CHANNELS,
        (edited(Channels.recovered, "if each.version <= version:", "if False:"),),
    ),
    Mutant(
        "tell_all_that_was_pending",
        "after a restart listeners are told of what the log has lost, too",
        CHANNELS,
        (edited(Channels.recovered, "if each.version <= version:", "if True:"),),
    ),
    Mutant(
        "leave_out_what_the_coordinator_runs",
        "what the coordinator has run itself is told to nobody",
        CHANNELS,
        (
            edited(
                Coordinator._run_all,
                "if transaction.notifications and type(answer) is Committed:",
                "if False:",
            ),
        ),
    ),
)
