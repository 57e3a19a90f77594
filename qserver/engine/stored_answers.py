"""Stores the answer of a request in the same commit as its writes, for idempotent retries.

    store_answer, in the transaction ─► the coordinator stamps the version ─► one log record
    find_answer ◄─ the same request again: a client that lost its answer, also after a crash

An answer is an entry of the engine's own tree (ANSWERS_TREE), written by the transaction itself, so
it is durable exactly when the writes are. Looking it up is a read like any other and part of the
footprint: of two transactions that store an answer under one name the second conflicts, runs again,
and finds the answer of the first.

The caller chooses the name (who may ask for the answer) and the fingerprint (which request it
answers). The answer is two byte strings around the version, which only the coordinator knows.

The tree belongs to no table: no statement, export, feed or diff shows it. Backups contain it.
"""

from __future__ import annotations

import msgspec

from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from qserver.storage.writes import ANSWERS_TREE

UNSTAMPED = -1
"""The version of an answer before its commit."""


class StoredAnswer(msgspec.Struct, frozen=True, gc=False):
    fingerprint: bytes
    """A digest of the request."""
    expires: float
    """Seconds since 1970."""
    head: bytes
    """The text of the answer before its version."""
    tail: bytes
    version: int = UNSTAMPED

    @property
    def text(self) -> bytes:
        assert self.version != UNSTAMPED, "an answer leaves after its commit"
        return text_of(self, self.version)


def text_of(answer: StoredAnswer, version: int) -> bytes:
    """Return the text of an answer whose commit made this version."""
    return b"%b%d%b" % (answer.head, version, answer.tail)


def find_answer(reader: Transaction | Snapshot, name: bytes, now: float) -> StoredAnswer | None:
    """Return the unexpired answer under a name."""
    row = reader.get_entry(ANSWERS_TREE, (name,))
    if row is None:
        return None
    answer = StoredAnswer(*row)
    return answer if now < answer.expires else None


def store_answer(transaction: Transaction, name: bytes, answer: StoredAnswer) -> None:
    """Add an answer to the transaction's writes."""
    transaction.put_entry(ANSWERS_TREE, (name,), msgspec.structs.astuple(answer))


def stamp_answers(transaction: Transaction, version: int) -> None:
    """Set the version of the commit in the answers that the transaction stores."""
    answers = transaction.writes[ANSWERS_TREE]
    for key, row in answers.items():
        if row is not None and row[-1] == UNSTAMPED:
            answers[key] = (*row[:-1], version)


def forget_answers(transaction: Transaction, names: list[bytes], now: float) -> None:
    """Delete the named answers that have expired."""
    for name in names:
        row = transaction.get_entry(ANSWERS_TREE, (name,))
        if row is not None and StoredAnswer(*row).expires <= now:
            transaction.put_entry(ANSWERS_TREE, (name,), None)
