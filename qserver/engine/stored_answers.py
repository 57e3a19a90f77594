"""Answers that are stored by the commit that they are about.

    store_answer, in the transaction ─► the coordinator stamps the version ─► one log record
    find_answer ◄─ the same request again: a client that lost its answer, also after a crash

An answer is an entry of the engine's own tree (ANSWERS_TREE), written by the transaction itself. So
it is durable exactly when the change is. Looking for it is a read like any other: it is part of the
footprint, and of two transactions that store an answer under one name the second conflicts, runs
again, and finds the first one's.

The name and the fingerprint are chosen by the caller: who may ask for the answer, and which request
it answers. The answer is bytes around the version, because only the coordinator knows the version.

The tree belongs to no table: no statement sees it, and no export, feed or diff has it. A backup
has it, as it has the whole log.
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
    """Return the text of an answer, whose commit has made this version."""
    return b"%b%d%b" % (answer.head, version, answer.tail)


def find_answer(reader: Transaction | Snapshot, name: bytes, now: float) -> StoredAnswer | None:
    """Return the answer that is stored under a name and has not expired."""
    row = reader.get_entry(ANSWERS_TREE, (name,))
    if row is None:
        return None
    answer = StoredAnswer(*row)
    return answer if now < answer.expires else None


def store_answer(transaction: Transaction, name: bytes, answer: StoredAnswer) -> None:
    """Store an answer with the transaction's writes, if and when they are committed."""
    transaction.put_entry(ANSWERS_TREE, (name,), msgspec.structs.astuple(answer))


def stamp_answers(transaction: Transaction, version: int) -> None:
    """Set the version that the transaction's commit makes in the answers that it stores."""
    answers = transaction.writes[ANSWERS_TREE]
    for key, row in answers.items():
        if row is not None and row[-1] == UNSTAMPED:
            answers[key] = (*row[:-1], version)


def forget_answers(transaction: Transaction, names: list[bytes], now: float) -> None:
    """Delete those of the named answers that have expired."""
    for name in names:
        row = transaction.get_entry(ANSWERS_TREE, (name,))
        if row is not None and StoredAnswer(*row).expires <= now:
            transaction.put_entry(ANSWERS_TREE, (name,), None)
