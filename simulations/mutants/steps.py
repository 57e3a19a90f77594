"""Planted bugs in the steps of open transactions: what is undone, what stays, what was read."""

from __future__ import annotations

from typing import Final

from qserver.query.open_transaction import OpenTransaction
from qserver.storage import stepped
from qserver.storage.catalog import CatalogChanges
from qserver.storage.stepped import Savepoint, SteppedTransaction, StepTransaction
from qserver.web.statements.open_transactions import CommitCall
from simulations.mutants.mutant import Mutant, edited

STEPS: Final = ("sql_steps",)

MUTANTS: Final = (
    Mutant(
        "drop_what_was_undone",
        "ROLLBACK TO brings a dropped table back, and its rows are gone at the commit",
        STEPS,
        (
            edited(
                SteppedTransaction.roll_back_to,
                "there.catalog, there.catalog_changes",
                "there.catalog, CatalogChanges(\n        there.catalog_changes.definitions,"
                " whole.catalog_changes.dropped\n    )",
            ),
        ),
    ),
    Mutant(
        "drop_what_the_last_step_dropped",
        "of the tables that steps drop, the rows of the last step's alone are dropped",
        STEPS,
        (
            edited(
                CatalogChanges.then,
                "self.dropped + later.dropped",
                "later.dropped or self.dropped",
            ),
        ),
    ),
    Mutant(
        "define_what_came_first",
        "of two changes of a definition, by two steps, the first is committed",
        STEPS,
        (
            edited(
                CatalogChanges.then,
                "{**self.definitions, **later.definitions}",
                "{**later.definitions, **self.definitions}",
            ),
        ),
    ),
    Mutant(
        "define_what_was_undone",
        "ROLLBACK TO takes a definition back for this transaction, and not for the commit",
        STEPS,
        (
            edited(
                SteppedTransaction.roll_back_to,
                "there.catalog, there.catalog_changes",
                "there.catalog, CatalogChanges(\n        whole.catalog_changes.definitions,"
                " there.catalog_changes.dropped\n    )",
            ),
        ),
    ),
    Mutant(
        "undo_the_first_savepoint_first",
        "nested savepoints are undone from the first to the last",
        STEPS,
        (edited(stepped._undo_all, "reversed(savepoints)", "savepoints"),),
    ),
    Mutant(
        "take_over_the_later_value",
        "a released savepoint hands on what keys held when it was set, to one that knew better",
        STEPS,
        (edited(Savepoint.take_over, "before.setdefault(key, value)", "before[key] = value"),),
    ),
    Mutant(
        "release_the_first_of_several",
        "RELEASE hands on what its own savepoint knew, and not what later ones did",
        STEPS,
        (edited(SteppedTransaction.release, "for each in released:", "for each in released[:1]:"),),
    ),
    Mutant(
        "forget_what_a_list_began_with",
        "what the first statements of a list wrote is not undone by an older savepoint",
        STEPS,
        (edited(SteppedTransaction.forget_savepoint, "if at:", "if False:"),),
    ),
    Mutant(
        "count_what_was_undone",
        "the affected rows of a commit contain those that were undone",
        STEPS,
        (
            edited(
                SteppedTransaction.roll_back_to,
                "= there.affected_rows, there.bytes_written",
                "= self.affected_rows, there.bytes_written",
            ),
        ),
    ),
    Mutant(
        "forget_definitions_that_were_read",
        "definitions that a step behind a savepoint has used are not part of the footprint",
        STEPS,
        (
            edited(
                StepTransaction.report_reads,
                "whole.names_seen.update(self.names_seen)",
                "stepped.savepoints or whole.names_seen.update(self.names_seen)",
            ),
        ),
    ),
    Mutant(
        "forget_the_reads_of_a_failed_step",
        "what a step read before it failed is not part of the footprint",
        STEPS,
        (
            edited(
                OpenTransaction._perform,
                "step.report_reads()",
                "self.failed or step.report_reads()",
            ),
        ),
    ),
    Mutant(
        "take_an_error_for_nothing_read",
        "that a statement could not be planned is not part of the footprint",
        STEPS,
        (edited(OpenTransaction._fail, "step.whole_catalog_seen = True", "pass"),),
    ),
    Mutant(
        "commit_once_more",
        "a transaction whose commit may have been sent can be used again",
        STEPS,
        (edited(CommitCall.release, "if self._in_doubt and held.end is None:", "if False:"),),
    ),
    Mutant(
        "look_for_the_commit_among_what_is_durable",
        "who comes back is told that there is no transaction, though its commit is under way",
        STEPS,
        (edited(CommitCall._find_answer, "if found is not None:", "if True:"),),
    ),
    Mutant(
        "answer_a_commit_that_was_repeated_as_a_conflict",
        "a commit that is repeated finds its own writes, and stores a conflict",
        STEPS,
        (
            edited(
                CommitCall.run,
                "return self._repeat((yield self._answered_before))",
                "raise",
            ),
        ),
    ),
)
