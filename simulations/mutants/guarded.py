"""Planted bugs in `if_version`, and in answers that are swept and stored anew."""

from __future__ import annotations

from typing import Final

from qserver.engine import stored_answers
from qserver.query import unchanged
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
