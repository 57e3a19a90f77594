"""Planted bugs in open transactions: steps, savepoints, the commit and its answer."""

from __future__ import annotations

from typing import Final

from qserver.engine import conflict_origin
from qserver.engine.gateway import Gateway
from qserver.query.open_transaction import OpenTransaction
from qserver.query.savepoints import ListedSavepoints
from qserver.storage.stepped import Savepoint, SteppedTransaction, StepTransaction
from simulations.mutants.mutant import Mutant, edited

OPEN: Final = ("sql_open",)

MUTANTS: Final = (
    Mutant(
        "commit_what_was_read_unseen",
        "an open transaction commits without a look at the keys that it has read",
        OPEN,
        (
            edited(
                Gateway._send,
                "transaction.load_written()",
                "transaction.load_written()\n    transaction.keys = {}",
            ),
        ),
    ),
    Mutant(
        "forget_reads_with_the_writes",
        "ROLLBACK TO takes the reads back, too, although the client has seen them",
        OPEN,
        (
            edited(
                SteppedTransaction.roll_back_to,
                "there.catalog, there.catalog_changes",
                "there.catalog, there.catalog_changes\n    whole.keys, whole.ranges = {}, []",
            ),
        ),
    ),
    Mutant(
        "remember_the_last_value",
        "a savepoint remembers what a key held before its last write, not before its first",
        OPEN,
        (edited(Savepoint.remember, "if key not in before:", "if True:"),),
    ),
    Mutant(
        "release_and_forget",
        "the writes after a released savepoint are not undone by an earlier one",
        OPEN,
        (edited(SteppedTransaction.release, "if at:", "if False:"),),
    ),
    Mutant(
        "roll_back_what_joined_alone",
        "ROLLBACK TO in a list of statements keeps what was written since the last savepoint",
        OPEN,
        (edited(ListedSavepoints.perform, "self._step.go_on()", "pass"),),
    ),
    Mutant(
        "blame_the_last_of_the_version",
        "a conflict names the last request of the version, whatever that has written",
        OPEN,
        (
            edited(
                conflict_origin._request_of,
                "if place.is_in(each.keys, each.names):",
                "if each.request_id is not None:",
            ),
        ),
    ),
    Mutant(
        "blame_the_last_change_of_the_table",
        "a conflict names the last version of the table, whatever that has written",
        OPEN,
        (
            edited(
                conflict_origin.find_origin,
                "place.is_in(_keys(record, place), record.catalog_changes)",
                "place.tree in dict(record.trees)",
            ),
        ),
    ),
    Mutant(
        "commit_although_failed",
        "an open transaction that has failed can be committed",
        OPEN,
        (edited(OpenTransaction.check_active, "raise in_failed()", "pass"),),
    ),
    Mutant(
        "write_through",
        "a step writes into the whole, so a step that fails leaves what it wrote",
        OPEN,
        (
            edited(
                StepTransaction.report_reads,
                "whole.whole_catalog_seen |=",
                "for tree, changes in self.writes.items():\n"
                "        whole.writes.setdefault(tree, {}).update(changes)\n"
                "    whole.whole_catalog_seen |=",
            ),
        ),
    ),
    Mutant(
        "answer_later",
        "the answer of a commit is not part of the commit",
        OPEN,
        (edited(OpenTransaction._committing, "if answer is not None:", "if answer is None:"),),
    ),
)
