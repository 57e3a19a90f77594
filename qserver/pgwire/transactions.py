"""The transaction of a session.

    idle ── BEGIN ─────────────► inside ── COMMIT, ROLLBACK ──► idle
      │                            │ ▲
      └─ several statements in     ▼ │ ROLLBACK TO
         one message: implicit   failed ── COMMIT, ROLLBACK ──► idle

It is an open transaction, as over HTTP, and counts as one of its organization. The session is its
only user from beginning to end, so nothing ends it behind the session's back: whoever wants that
(its key ends, its database closes) tells the session, which ends as a whole. A commit that meets a
conflict raises 40001, because nobody can run it again here.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from itertools import pairwise
from typing import Any

from qserver.control.databases import OpenDatabase
from qserver.control.open_transactions import End, Held, OpenTransactions
from qserver.control.records import Grant
from qserver.engine.work import Step
from qserver.errors import (
    FeatureNotSupported,
    NoActiveTransaction,
    QserverError,
    SerializationFailure,
)
from qserver.pgwire import messages
from qserver.query.open_transaction import OpenTransaction
from qserver.query.results import RunOptions
from qserver.query.session import Session
from qserver.sql import ast


class Block:
    def __init__(self, registry: OpenTransactions, ended: Callable[[], None]) -> None:
        """`ended` is called when somebody else wants a transaction to end."""
        self._registry = registry
        self._ended = ended
        self._held: Held | None = None
        self.transaction: OpenTransaction | None = None
        self.is_implicit = False

    @property
    def opened(self) -> OpenDatabase:
        assert self._held is not None, "there is a transaction"
        return self._held.opened

    @property
    def is_explicit(self) -> bool:
        return self._held is not None and not self.is_implicit

    @property
    def must_end(self) -> bool:
        """Whether somebody else wants it to end."""
        return self._held is not None and self._held.end is not None

    def ready(self) -> bytes:
        """Return the ReadyForQuery of its state."""
        if self._held is None:
            return messages.IDLE
        return messages.FAILED if self._held.transaction.failed else messages.INSIDE

    def begin(
        self,
        grant: Grant,
        opened: OpenDatabase,
        *,
        read_only: bool,
        implicit: bool,
        timeout_ms: float,
        session: Session,
        bytes_most: int | None = None,
    ) -> Generator[Step, Any, None]:
        """Open a transaction. It takes over the caller's use of the database, unless it raises."""
        assert self._held is None, "there is one at a time"
        self._registry.check_room(grant)
        sql, transaction = opened.sql, None
        if bytes_most is None:
            transaction = sql.open_nowait(read_only, session=session)
        if transaction is None:
            limits = read_only, timeout_ms
            transaction = yield partial(sql.open, *limits, bytes_most=bytes_most, session=session)
        held = self._registry.hold(grant, opened, transaction)
        held.use_nowait()
        held.notify = self._ended
        self._held, self.transaction, self.is_implicit = held, transaction, implicit

    def make_explicit(self) -> None:
        self.is_implicit = False

    def fail(self) -> None:
        """Note that a statement failed: only a rollback follows."""
        if self._held is not None:
            self._held.transaction.fail()

    def commit(self, options: RunOptions) -> Generator[Step, Any, str]:
        """Commit, or roll back what has failed; return the tag. It has ended in any case."""
        held = self._held
        assert held is not None, "there is a transaction"
        transaction, end = held.transaction, "closed"
        if transaction.failed:
            self.roll_back()
            return "ROLLBACK"
        try:
            if transaction.transaction.changes_anything:
                yield from held.opened.sql.committing(transaction, options)
            else:
                yield from transaction.commit_nothing(held.opened.sql.request_of(options))
            end = "committed"
            return "COMMIT"
        except SerializationFailure:
            end = "conflicted"
            raise
        finally:
            self._end(end)  # type: ignore[arg-type]

    def roll_back(self) -> None:
        if self._held is not None:
            self._end("rolled_back")

    def _end(self, end: End) -> None:
        held, self._held, self.transaction = self._held, None, None
        assert held is not None
        held.notify = None
        if held.end is None:
            held.end = end
        held.release()


def reads_only(words: tuple[str, ...], default: bool) -> bool:
    """Return whether the words of BEGIN ask for a transaction that only reads."""
    for first, second in pairwise(words):
        if first == "read" and second in ("only", "write"):
            return second == "only"
    return default


def check_modes(node: ast.TransactionControl) -> None:
    """Refuse what a transaction cannot be; all isolation levels are serializable."""
    if "prepared" in node.words[:1]:
        raise FeatureNotSupported("transactions cannot be prepared", position=node.position + 1)


def savepoint_outside(node: ast.TransactionControl) -> QserverError:
    what = "ROLLBACK TO SAVEPOINT" if node.kind in ("rollback", "abort") else node.kind.upper()
    what = "RELEASE SAVEPOINT" if node.kind == "release" else what
    return NoActiveTransaction(f"{what} can only be used in transaction blocks")
