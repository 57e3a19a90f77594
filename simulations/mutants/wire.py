"""Planted bugs in sessions over PostgreSQL's protocol: what is left when they fail, or are cut."""

from __future__ import annotations

from typing import Final

from qserver.pgwire.extended import Extended
from qserver.pgwire.simple import query
from qserver.pgwire.state import State
from simulations.mutants.mutant import Mutant, edited

WIRE: Final = ("sql_wire",)

MUTANTS: Final = (
    Mutant(
        "keep_the_transaction_of_a_lost_session",
        "a session that ends in a transaction does not roll back",
        WIRE,
        (edited(State.close, "self.block.roll_back()", "pass"),),
    ),
    Mutant(
        "run_each_statement_alone",
        "several statements of one Query are not one transaction",
        WIRE,
        (edited(query, "alone=False", "alone=True"),),
    ),
    Mutant(
        "acknowledge_without_a_commit",
        "Sync rolls back the messages before it, and says that all is well",
        WIRE,
        (edited(Extended._syncing, "yield from self._executing.commit()", "block.roll_back()"),),
    ),
)
