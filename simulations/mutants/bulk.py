"""Planted bugs in rows in bulk: what is applied, how often, and what is told."""

from __future__ import annotations

from typing import Final

from qserver.query.bulk import BulkInsert
from qserver.web.bulk import bulk
from simulations.mutants.mutant import Mutant, edited

BULK: Final = ("sql_bulk",)

MUTANTS: Final = (
    Mutant(
        "look_for_the_answer_of_rows_before_and_not_again",
        "rows in bulk look for their answer in the durable snapshot alone",
        BULK,
        (
            edited(
                bulk.BulkCall._insert,
                "sql.stored_answer(transaction.transaction, name)",
                "sql.stored_answer(transaction.transaction.snapshot, name)",
            ),
        ),
    ),
    Mutant(
        "take_other_rows_for_the_same",
        "the name of a stored answer is enough, whatever rows are sent",
        BULK,
        (edited(bulk._repeated, "known.fingerprint != body.fingerprint", "False"),),
    ),
    Mutant(
        "commit_the_rows_before_the_wrong_one",
        "a row that is wrong ends the rows, and those before it are kept",
        BULK,
        (
            edited(
                BulkInsert.add,
                "error.row = batch.first",
                "error.row, self._transaction.failed = batch.first, False; await self.commit()",
            ),
        ),
    ),
    Mutant(
        "count_rows_from_their_half",
        "the number of a wrong row forgets the rows before its half",
        BULK,
        (edited(BulkInsert.add, "rows[half:], batch.first + half", "rows[half:], batch.first"),),
    ),
    Mutant(
        "store_the_answer_after_the_rows",
        "the answer of rows in bulk is stored by a commit of its own",
        BULK,
        (
            edited(
                BulkInsert.commit,
                "outcome = await run(self._sql.committing(transaction, self._options, answer,"
                " request_id))",
                "outcome = await run(self._sql.committing(transaction, self._options, None,"
                " request_id))\n"
                "    if answer is not None:\n"
                "        after = await self._sql.open()\n"
                "        await run(self._sql.committing(after, self._options, answer))\n"
                "        after.release()",
            ),
        ),
    ),
)
