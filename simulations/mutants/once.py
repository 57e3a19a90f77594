"""Planted bugs in what makes a request be applied once, and in when tables were last changed."""

from __future__ import annotations

from typing import Final

from qserver.durability import checkpoint
from qserver.durability.recovery import Replay
from qserver.engine import answer_sweeper, stored_answers
from qserver.engine.coordinator import Coordinator
from qserver.query import idempotency
from qserver.storage.ranges import RangedTree
from simulations.mutants.mutant import Mutant, edited

ONCE: Final = ("sql_once",)

MUTANTS: Final = (
    Mutant(
        "look_for_the_answer_before_and_not_again",
        "a request looks for its answer in the durable snapshot alone",
        ONCE,
        (edited(idempotency.run_once, "stored(once, transaction, now)", "None"),),
    ),
    Mutant(
        "number_the_answer_by_what_was_read",
        "a stored answer has the version behind the one that its transaction read",
        ONCE,
        (
            edited(
                Coordinator.prepare,
                "stamp_answers(transaction, newest.version + 1)",
                "stamp_answers(transaction, transaction.snapshot.version + 1)",
            ),
        ),
    ),
    Mutant(
        "sweep_what_has_not_expired",
        "the sweeper deletes answers a day early",
        ONCE,
        (
            edited(answer_sweeper._expired, ".expires <= now", ".expires <= now + 100_000"),
            edited(stored_answers.forget_answers, ".expires <= now", ".expires <= now + 100_000"),
        ),
    ),
    Mutant(
        "take_another_request_for_the_same",
        "the name of a stored answer is enough, whatever the request says",
        ONCE,
        (edited(idempotency.stored, "found.fingerprint != once.fingerprint", "False"),),
    ),
    Mutant(
        "store_the_answer_of_short_work_alone",
        "work that was run again stores no answer",
        ONCE,
        (
            edited(
                idempotency.run_once,
                "store_answer(transaction, once.name, answer)",
                "transaction.retries or store_answer(transaction, once.name, answer)",
            ),
        ),
    ),
    Mutant(
        "date_a_tree_by_its_checkpoint",
        "after a restart every table was last changed by the checkpoint",
        ("bank", "sql_keys"),
        (
            edited(
                checkpoint.last_change_of,
                "tree.last_change or (checkpoint.version, checkpoint.time)",
                "(checkpoint.version, checkpoint.time)",
            ),
        ),
    ),
    Mutant(
        "keep_the_date_of_a_tree_that_is_cut",
        "a tree that is cut or joined forgets when it was last changed",
        ("range_sums", "bank"),
        (edited(RangedTree.laid_out, "self.last_change", "NEVER"),),
    ),
    Mutant(
        "date_no_definition_in_replay",
        "replay does not note when definitions were changed",
        ("definitions", "sql_definitions"),
        (edited(Replay.apply, "if changes:", "if False:"),),
    ),
)
