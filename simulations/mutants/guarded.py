"""Planted bugs in `if_version`, and in answers that are swept and stored anew."""

from __future__ import annotations

from typing import Final

from qserver.engine import answer_sweeper, stored_answers
from qserver.query import unchanged
from qserver.storage.snapshot import Snapshot
from simulations.mutants.mutant import Mutant, edited

GUARDED: Final = ("sql_guarded",)

MUTANTS: Final = (
    Mutant(
        "guard_what_was_read_alone",
        "a change of the table between the check of if_version and the commit is no conflict",
        GUARDED,
        (
            edited(
                unchanged.run_unchanged,
                "transaction.ranges.append(ScannedRange(table.id, None, None, None))",
                "pass",
            ),
        ),
    ),
    Mutant(
        "guard_one_version_late",
        "if_version accepts a table that has changed in the very next version",
        GUARDED,
        (edited(unchanged._check, "if changed > version:", "if changed > version + 1:"),),
    ),
    Mutant(
        "guard_against_earlier_rounds_alone",
        "if_version does not see what the coordinator has run before it in the same round",
        GUARDED,
        (
            edited(
                unchanged.run_unchanged,
                "any(tree in transaction.earlier for tree in trees)",
                "False",
            ),
        ),
    ),
    Mutant(
        "guard_rows_alone",
        "if_version does not see that a definition has changed",
        GUARDED,
        (
            edited(
                Snapshot.last_change,
                "return max(rows, self.catalog.last_change_of(table.key))",
                "return rows",
            ),
        ),
    ),
    Mutant(
        "guard_no_reads",
        "a request that only reads is answered whatever has changed since if_version",
        GUARDED,
        (edited(unchanged.check_reads, "isinstance(definition, Table)", "False"),),
    ),
    Mutant(
        "sweep_a_moment_early",
        "the sweeper deletes answers that are kept for another moment",
        GUARDED,
        (
            edited(answer_sweeper._pass, "world.now(), policy", "world.now() + 0.1, policy"),
            edited(stored_answers.forget_answers, "expires <= now", "expires <= now + 0.1"),
        ),
    ),
    Mutant(
        "sweep_what_was_stored_since",
        "the sweeper deletes an answer by what it read, though its name was used again since",
        GUARDED,
        (
            edited(
                stored_answers.forget_answers,
                ".expires <= now",
                ".expires <= now + 1000",
            ),
        ),
    ),
    Mutant(
        "find_what_has_expired",
        "an answer is found for as long as the sweeper has not come by",
        GUARDED,
        (edited(stored_answers.find_answer, "now < answer.expires", "now < answer.expires + 0.2"),),
    ),
)
