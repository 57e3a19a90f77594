"""Idempotent requests: applied once, however often they are sent.

    the newest durable snapshot has the answer ─► return it, and run nothing
    the same request is running ─► RequestInProgress
    otherwise ─► run the statements and store the answer, as one transaction

The transaction looks for the answer again, because another one may have stored it since. So even
requests that do not know of each other (the client of one has left, its commit is under way) are
applied once.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

from qserver.engine.stored_answers import (
    UNSTAMPED,
    StoredAnswer,
    find_answer,
    store_answer,
    text_of,
)
from qserver.engine.work import Step
from qserver.errors import DiskFull, IdempotencyMismatch, InvalidRequest, ProgramLimitExceeded
from qserver.limits import ANSWER_STORED_BYTES_MAX
from qserver.query.results import Answered, Body, Once, TransactionResult
from qserver.query.storage_quota import StorageQuota
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction

WITHOUT_KEY: Final = "What removes rows works without an Idempotency-Key: its answer needs room."


def stored(once: Once, reader: Transaction | Snapshot, now: float) -> StoredAnswer | None:
    """Return the stored answer of the same request; raise if it is that of another request."""
    found = find_answer(reader, once.name, now)
    if found is None:
        return None
    if found.fingerprint != once.fingerprint:
        raise mismatch()
    return found


def mismatch() -> IdempotencyMismatch:
    return IdempotencyMismatch(
        "this Idempotency-Key was used with another request",
        hint="Send a new request with a new key, and the same request as it was.",
    )


def run_once(
    once: Once, now: float, quota: StorageQuota, body: Body, transaction: Transaction
) -> Generator[Step, Any, StoredAnswer]:
    """Run the statements of a request and store their answer, unless one is stored.

    The answer has no version yet if this run has made it. It takes room, whatever the statements
    do; so without room nothing is run.
    """
    known = stored(once, transaction, now)
    if known is not None:
        return known
    check_room(quota)
    results = yield from body(transaction)
    head, tail = once.render(results, transaction.retries)
    size = len(head) + len(tail)
    if size > ANSWER_STORED_BYTES_MAX:
        raise too_long(size)
    answer = StoredAnswer(once.fingerprint, now + once.seconds, head, tail)
    store_answer(transaction, once.name, answer)
    return answer


def check_room(quota: StorageQuota) -> None:
    """Raise DiskFull if no answer may be stored."""
    try:
        quota.check()
    except DiskFull as full:
        full.hint = f"{WITHOUT_KEY} {full.hint or ''}".strip()
        raise


def answered(answer: StoredAnswer, version: int) -> TransactionResult:
    """Return the outcome of a request; `version` is that of its commit, if it made one."""
    replayed = answer.version != UNSTAMPED
    text = answer.text if replayed else text_of(answer, version)
    return TransactionResult([], version, committed=not replayed, answered=Answered(text, replayed))


def too_long(size: int) -> ProgramLimitExceeded:
    return ProgramLimitExceeded(
        f"the answer has {size} bytes, and with an Idempotency-Key"
        f" {ANSWER_STORED_BYTES_MAX} are the most",
        hint="Return fewer rows, or send the request without an Idempotency-Key.",
    )


def needs_a_change() -> InvalidRequest:
    return InvalidRequest(
        "a request that only reads takes no Idempotency-Key",
        hint="Send it without: it changes no row and no definition.",
    )
