"""Open transactions: who owns each, who uses it now, and when it ends.

    open ─► held ─► use, release, use, release … ─► ended
                     the next use waits                by commit, DELETE or ROLLBACK; when it was
                     for the one before                idle or open for too long, or is too large;
                                                       when its key or session ends, its database
                                                       is closed, or the service stops

A transaction belongs to the key or session that opened it; for any other caller it does not exist.
It counts as a user of its database, which therefore stays open. A transaction that must end while
it is in use ends after that use. Nothing survives the process except answers of commits that
changed something, which are stored in the databases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import ceil
from typing import Final, Literal, TypeAlias

import msgspec
import trio

from qserver.control.commit_answers import CommitAnswers
from qserver.control.databases import OpenDatabase
from qserver.control.records import Grant
from qserver.control.tokens import Mint
from qserver.engine.work import before
from qserver.errors import DatabaseUnavailable, TooManyOpen, TransactionNotFound
from qserver.limits import (
    OPEN_IDLE_SECONDS,
    OPEN_SECONDS_MAX,
    OPEN_SWEEP_SECONDS,
)
from qserver.query.open_transaction import OpenTransaction

PREFIX: Final = "txn_"

End: TypeAlias = Literal["committed", "conflicted", "rolled_back", "expired", "too_large", "closed"]
ENDS: Final[tuple[End, ...]] = (
    "committed", "conflicted", "rolled_back", "expired", "too_large", "closed"
)  # fmt: skip


class OpenTransactionsStatistics(msgspec.Struct, frozen=True):
    held: int
    failed: int
    bytes: int
    opened: int
    ended: dict[End, int]
    oldest_seconds: float


class Held:
    """An open transaction and its owner. `release` once after each use."""

    __slots__ = (
        "_free",
        "_registry",
        "born",
        "created_at",
        "end",
        "id",
        "idle_seconds",
        "key_id",
        "notify",
        "opened",
        "organization_id",
        "session_id",
        "transaction",
        "used",
        "waiting",
    )

    def __init__(
        self,
        registry: OpenTransactions,
        name: str,
        grant: Grant,
        opened: OpenDatabase,
        transaction: OpenTransaction,
        idle_seconds: float,
        created_at: float,
    ) -> None:
        self._registry = registry
        self.id = name
        self.organization_id = grant.organization_id
        self.key_id = grant.key_id
        self.session_id = grant.session_id
        self.opened = opened
        self.transaction = transaction
        self.idle_seconds = idle_seconds
        self.created_at = created_at
        """Seconds since 1970."""
        self.born = self.used = trio.current_time()
        self.waiting = 0
        self.end: End | None = None
        """How it has to end, or has ended."""
        self.notify: Callable[[], None] | None = None
        """Called when it has to end and is in use: its user may keep it for long."""
        self._free = trio.Semaphore(1, max_value=1)  # a lock that another task may release

    @property
    def is_used(self) -> bool:
        return self._free.value == 0

    def expires(self) -> float:
        """Return when it will have been idle, or open, for too long, by Trio's clock."""
        return min(self.used + self.idle_seconds, self.born + OPEN_SECONDS_MAX)

    def expires_at(self) -> float:
        """Return the same in seconds since 1970."""
        return self.created_at + self.expires() - self.born

    def use_nowait(self) -> bool:
        """Begin a use, unless another is under way."""
        if self.is_used:
            return False
        self._free.acquire_nowait()
        return True

    async def use(self, deadline: float) -> Held:
        """Begin a use after those before it; raise if the transaction has ended by then."""
        self.waiting += 1
        try:
            await before(deadline, self._free.acquire)
        finally:
            self.waiting -= 1
        if self.end is not None:
            self.release()
            raise not_found(self.id)
        return self

    def release(self) -> None:
        """End a use; ends the transaction too if that is due."""
        self.used = trio.current_time()
        if self.transaction.is_over and self.end is None:
            self.end = "too_large" if self.transaction.failed else "rolled_back"
        if self.end is not None:
            self._registry.forget(self)
        self._free.release()

    def close(self) -> None:
        """End it because its database is being closed."""
        self._registry.finish(self, "closed")

    def __repr__(self) -> str:
        return f"open transaction {self.id}, {'used' if self.is_used else 'idle'}"


class OpenTransactions:
    """Start `run` in a nursery: it ends transactions that are open for too long."""

    def __init__(self, mint: Mint, now: Callable[[], float]) -> None:
        self._mint = mint
        self._now = now
        self._held: dict[str, Held] = {}
        self.answers = CommitAnswers(now)
        self._of_organization: Counter[str] = Counter()
        self._opened = 0
        self._ended: Counter[End] = Counter()

    async def run(self) -> None:
        while True:
            await trio.sleep(OPEN_SWEEP_SECONDS)
            self.sweep()
            self.answers.sweep()

    def sweep(self) -> None:
        """End transactions that were idle or open for too long."""
        now = trio.current_time()
        for held in list(self._held.values()):
            if held.expires() <= now:
                self.finish(held, "expired")

    def count(self, organization_id: str) -> int:
        return self._of_organization.get(organization_id, 0)

    def of_organization(self, organization_id: str) -> list[Held]:
        """Return its transactions that have not ended."""
        every = [each for each in self._held.values() if each.organization_id == organization_id]
        return [each for each in every if each.end is None]

    def check_room(self, grant: Grant) -> None:
        """Raise if the organization has as many open transactions as it may have."""
        most = grant.limits.open_transactions
        if self.count(grant.organization_id) < most:
            return
        self.sweep()
        own = [
            held.expires()
            for held in self._held.values()
            if held.organization_id == grant.organization_id
        ]
        if len(own) >= most:
            first = min(own, default=trio.current_time())
            raise TooManyOpen(
                f"the organization has at most {most} open transactions",
                hint="Commit or DELETE those that are not needed.",
                retry_after_seconds=max(1, ceil(first - trio.current_time())),
            )

    def hold(
        self,
        grant: Grant,
        opened: OpenDatabase,
        transaction: OpenTransaction,
        idle_seconds: float | None = None,
    ) -> Held:
        """Keep a transaction for its owner, with its database; it takes over the caller's use."""
        self.check_room(grant)
        if opened.is_closing:
            raise DatabaseUnavailable("the database is being closed", hint="Try again.")
        now = self._now()
        name = self._mint.id(PREFIX + opened.id.partition("_")[2], now)
        idle = OPEN_IDLE_SECONDS if idle_seconds is None else idle_seconds
        held = Held(self, name, grant, opened, transaction, idle, now)
        self._held[name] = held
        self._of_organization[grant.organization_id] += 1
        self._opened += 1
        opened.held.add(held)
        return held

    def find(self, grant: Grant, name: str) -> Held:
        """Return the caller's transaction of that id; raise TransactionNotFound without one."""
        held = self._held.get(name)
        if (
            held is None
            or held.end is not None
            or held.key_id != grant.key_id
            or held.session_id != grant.session_id
        ):
            raise not_found(name)
        if held.expires() <= trio.current_time() and not (held.is_used or held.waiting):
            self.finish(held, "expired")
            raise not_found(name)
        return held

    def finish(self, held: Held, end: End) -> None:
        """End a transaction now, or after the use under way; `expired`: only if it is idle."""
        if end == "expired" and (held.is_used or held.waiting):
            return
        if held.end is None:
            held.end = end
        if not held.is_used:
            self.forget(held)
        elif held.notify is not None:
            held.notify()

    def finish_key(self, key_id: str) -> None:
        self._finish_where(lambda held: held.key_id == key_id)

    def finish_session(self, session_id: str) -> None:
        self._finish_where(lambda held: held.session_id == session_id)

    def _finish_where(self, wanted: Callable[[Held], bool]) -> None:
        for held in [each for each in self._held.values() if wanted(each)]:
            self.finish(held, "closed")

    def forget(self, held: Held) -> None:
        """Free what an ended transaction holds; a second call does nothing."""
        if self._held.pop(held.id, None) is None:
            return
        assert held.end is not None, "it ends somehow"
        self._ended[held.end] += 1
        self._of_organization[held.organization_id] -= 1
        if not self._of_organization[held.organization_id]:
            del self._of_organization[held.organization_id]
        held.opened.held.discard(held)
        held.transaction.release()
        held.opened.release()

    def statistics(self) -> OpenTransactionsStatistics:
        every = self._held.values()
        now = trio.current_time()
        return OpenTransactionsStatistics(
            len(every),
            sum(held.transaction.failed for held in every),
            sum(held.transaction.bytes for held in every),
            self._opened,
            {end: self._ended[end] for end in ENDS},
            max((now - held.born for held in every), default=0.0),
        )

    def __repr__(self) -> str:
        return f"{len(self._held)} open transactions"


def database_of(name: str) -> str | None:
    """Return the database id in a transaction's id, if it has the right form."""
    parts = name.split("_")
    return f"db_{parts[1]}" if len(parts) == 3 and name.startswith(PREFIX) else None


def not_found(name: str) -> TransactionNotFound:
    return TransactionNotFound(
        f"there is no open transaction {name!r}",
        detail="It may have been committed, rolled back or idle for too long, the server"
        " restarted, or its database is on another node now.",
        hint="Open a new one with POST /v1/transaction/open.",
    )
