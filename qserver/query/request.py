"""What one request takes from outside: time, chance, a deadline, sequence values.

All of it is captured once per request and reused on every retry: the time and the seed are fixed,
and drawn sequence values are remembered, see `sequence_values`. So a transaction stays a pure
function of snapshot and request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import trio

from qserver.durability.page_cache import PageCache
from qserver.engine.advisory_locks import Key, Lock
from qserver.engine.disposal import PIECE_ENTRIES, dispose
from qserver.engine.sequence_states import ROW_IDS
from qserver.engine.sequences import Sequences
from qserver.engine.work import FOREVER, before, timed_out
from qserver.engine.yielding import yield_to_others
from qserver.errors import Forbidden, QserverError, ReadOnlyTransaction
from qserver.functions.context import Context
from qserver.limits import (
    STATEMENT_MEMORY_BYTES_MAX,
    TRANSACTION_MEMORY_BYTES_MAX,
    VALUE_BYTES_MAX,
)
from qserver.query.catalog.answers import CatalogAnswers
from qserver.query.listening import NOTHING, send
from qserver.query.memory_pool import MemoryPool
from qserver.query.permissions import EVERYTHING, Allowed
from qserver.query.results import Once
from qserver.query.sequence_values import DrawnValues, NeedsSequenceValues, SequenceValues
from qserver.query.server_facts import ConnectedSession, ServerFacts, SessionActivity
from qserver.query.session import NeedsSession, Session, portal_named
from qserver.query.session_locks import SessionLocks
from qserver.query.settings.values import DEFAULTS, Scope
from qserver.query.sql_port import WritableDatabase
from qserver.query.statement_counting import statement_row
from qserver.query.statement_statistics import DatabaseStatements, StatementNumbers
from qserver.query.storage_quota import StorageQuota
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from qserver.values.identifiers import PUBLIC, catalog_key
from qserver.values.notices import NOTICES_MAX, Notice
from qserver.values.schema import Table

if TYPE_CHECKING:
    from random import Random


@dataclass(slots=True)
class LongReadsPort:
    """Where reads go that turn out to be long: by default they stay."""

    give_away: Callable[[int], None] = lambda version: None
    """Raises if another process is to read instead, at this version or a later one."""


@dataclass(frozen=True, slots=True)
class RequestEnvironment:
    """The sources of what requests capture."""

    now: Callable[[], float]
    """Seconds since 1970."""
    clock: Callable[[], float]
    """The clock of deadlines."""
    chance: Random
    sequences: Sequences | None
    """None if the database can only be read."""
    pool: MemoryPool | None = None
    value_bytes_most: int = VALUE_BYTES_MAX
    pages: PageCache | None = None
    quota: StorageQuota = field(default_factory=StorageQuota)
    long_reads: LongReadsPort = field(default_factory=LongReadsPort)
    writer: WritableDatabase | None = None
    """None if the database can only be read."""
    server: ServerFacts = field(default_factory=ServerFacts)
    statements: DatabaseStatements | None = None
    """The counters of statements of the database."""

    def request(
        self,
        timeout_ms: float | None = None,
        allowed: Allowed = EVERYTHING,
        request_id: str | None = None,
        once: Once | None = None,
        session: Session | None = None,
        counts: bool = True,
    ) -> Request:
        about = timeout_ms, allowed, request_id, once, session
        return Request(self, self.now(), *about, counts=counts)


class Request(msgspec.Struct, eq=False):  # one for every request, and a Struct is cheap to make
    """One request, for as many runs as it takes."""

    environment: RequestEnvironment
    time: float
    """When it began: seconds since 1970."""
    timeout_ms: float | None = None
    allowed: Allowed = EVERYTHING
    id: str | None = None
    """The caller's name for it, which the log gets, too."""
    once: Once | None = None
    """Set if it is applied once, however often it is sent."""
    session: Session | None = None
    """What its statements leave for those after them; see `NeedsSession`."""
    drawn: dict[int, DrawnValues] | None = None
    """The values drawn from sequences, by the number of their states."""
    sets_done: int = 0
    sleeps_done: int = 0
    writes_back_done: int = 0
    dry_run: bool = False
    changes: bool = False
    """Whether its last run has begun a statement that may change or define something."""
    counts: bool = True
    """Whether its runs are counted in the statistics of statements."""
    is_step: bool = False
    """Whether it is a step of an open transaction, whose commit checks what has waited for it."""
    statements: list[StatementNumbers] | None = None
    """What is known of statements, if one of its runs has asked for that."""
    statements_reset: set[int] | None = None
    """Those of which it has been forgotten."""
    notices: list[Notice] | None = None
    """What its last run has to tell beside its answer."""
    _stop: Callable[[], None] | None = None
    """Ends a wait that has begun, before its deadline."""
    _seed: int | None = None
    _deadline: float | None = None

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(self.time, UTC)

    @property
    def scope(self) -> Scope | None:
        """What its session has set that plans depend on."""
        return None if self.session is None else self.session.scope

    def over(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot as its session sees it."""
        return snapshot if self.session is None else self.session.over(snapshot)

    @property
    def sender(self) -> int:
        """The number of its session, 0 without one."""
        return 0 if self.session is None else self.session.number

    @property
    def zone(self) -> tzinfo | None:
        """The time zone of its session; None for UTC."""
        return None if self.session is None else self.session.settings.zone

    @property
    def deadline(self) -> float:
        """The deadline by Trio's clock.

        The clock is first read where the request waits, would yield, or has to be planned:
        everything before is short, and most requests end there.
        """
        if self._deadline is None:
            wanted = self.timeout_ms
            self._deadline = FOREVER if wanted is None else self.environment.clock() + wanted / 1000
        return self._deadline

    def extend(self, seconds: float) -> None:
        """Move the deadline by time that the request did not use."""
        self._deadline = self.deadline + seconds

    def cancel(self) -> None:
        """Let it end where it would end by its deadline; a commit that was sent goes on."""
        if self.timeout_ms is not None:
            self._deadline = self.environment.clock()
        if self._stop is not None:
            self._stop()

    async def wait_for(self, what: Callable[[], Awaitable[None]]) -> None:
        """Wait for something between two runs; `cancel` ends it."""
        with trio.CancelScope() as scope:
            self._stop = scope.cancel
            try:
                await what()
            finally:
                self._stop = None
        if scope.cancelled_caught:
            raise timed_out()

    async def sleep(self, seconds: float) -> None:
        """Sleep for a statement, which the next run does not repeat."""
        await self.wait_for(partial(trio.sleep, seconds))
        self.sleeps_done += 1

    def limit(self, timeout_ms: float | None) -> None:
        """Let the deadline come so soon, unless it is nearer."""
        if timeout_ms is None:
            return
        wanted = self.environment.clock() + timeout_ms / 1000
        if self.deadline > wanted:
            self.timeout_ms, self._deadline = timeout_ms, wanted

    def begin_again(self) -> None:
        """Count the time from now on."""
        self._deadline = None

    def take_time_of(self, other: Request) -> None:
        """Have the deadline of another request, which this one works for."""
        self.timeout_ms, self._deadline = other.timeout_ms, other.deadline

    def note_committed(self) -> None:
        """Lift the deadline: an answer about committed changes must not say that they failed."""
        self.timeout_ms, self._deadline = None, FOREVER

    def random(self) -> Random:
        """Return a generator that is the same in every run of the request."""
        chance = self.environment.chance
        if self._seed is None:
            self._seed = chance.getrandbits(64)
        return type(chance)(self._seed)

    def check(self) -> None:
        """Raise if the deadline has passed; called between pages."""
        if self.timeout_ms is not None and self.environment.clock() >= self.deadline:
            raise timed_out()

    def pause(self) -> Callable[[], Awaitable[None]] | None:
        """Return what a reading request yields to let others run: a pause up to the deadline."""
        if self.timeout_ms is None:
            return None
        return partial(before, self.deadline, yield_to_others)

    async def supply(self, needs: NeedsSequenceValues) -> None:
        """Do what a run cannot wait for, before the next run; up to the deadline."""
        self.check()
        try:
            await before(self.deadline, needs.supply)
        except QserverError as error:
            error.statement = needs.statement
            raise

    async def ask_statements(self, counted: DatabaseStatements) -> None:
        self.statements = await counted.rows_of_all()

    async def reset_statements(self, counted: DatabaseStatements, number: int) -> None:
        await counted.reset_all(number)
        self.statements_reset = {*(self.statements_reset or ()), number}

    def give_back_unused(self, everything: bool = False) -> None:
        """Give back values that were drawn ahead and that the last run has not used.

        `everything`: also what it has used, after a dry run.
        """
        sequences = self.environment.sequences
        for drawn in (self.drawn or {}).values():
            if everything:
                drawn.at = 0
            assert sequences is not None
            drawn.give_back(sequences)


class RequestContext(Context):
    """The context of one run. Rarely used values are made on first use."""

    _now: datetime | None = None
    _random: Random | None = None
    _sequences: SequenceValues | None = None
    _sleeps = 0
    drawn_number: int | None = None
    _objects: CatalogAnswers | None = None
    memory_bytes_most = STATEMENT_MEMORY_BYTES_MAX
    user = "qserver"

    @property
    def pool(self) -> MemoryPool | None:  # type: ignore[override]
        return self._request.environment.pool

    @property
    def value_bytes_most(self) -> int:  # type: ignore[override]
        return self._request.environment.value_bytes_most

    pages: PageCache | None

    def __init__(self, request: Request, transaction: Transaction | Snapshot) -> None:
        self._request = request
        self._transaction = transaction
        self.pages = request.environment.pages

    def key_of_cursor(self, name: str, table: Table) -> tuple[Any, ...]:
        """Return the key of the row on which a cursor of the session stands."""
        return portal_named(self._request.session, name).current_key(table)

    def asked_by(self) -> tuple[Allowed, str | None]:
        """Return whose request it is, and its id, if it has one."""
        return self._request.allowed, self._request.id

    def let_go(self, container: Any) -> None:
        if len(container) > PIECE_ENTRIES:
            dispose((container,))

    def free_large(self) -> None:
        """Free large containers in pieces; their memory returns to the pool after that."""
        assert self.large is not None
        containers, pool = self.large.values(), self.pool
        if pool is None:
            dispose(containers)
        else:
            dispose(containers, partial(pool.give_back, self._pooled))
            self._pooled = 0
        self.large = None

    @property
    def transaction_bytes_most(self) -> int:  # type: ignore[override]
        most = TRANSACTION_MEMORY_BYTES_MAX
        return most if self.pages is None else min(most, self.pages.most // 4)

    def check(self) -> None:
        self._request.check()

    def limit(self, timeout_ms: int | None) -> None:
        """Bound the statement that begins by statement_timeout."""
        self._request.limit(timeout_ms)

    @property
    def database(self) -> str:  # type: ignore[override]
        return self._request.environment.server.database

    @property
    def started(self) -> datetime:
        return datetime.fromtimestamp(self._request.environment.server.started, UTC)

    def setting(self, name: str, missing_ok: bool = False) -> str | None:
        session = self._request.session
        return (DEFAULTS if session is None else session.settings).shown(name, missing_ok)

    def set_setting(self, name: str, value: str | None, is_local: bool) -> str | None:
        session = self._request.session
        if session is None:
            raise NeedsSession
        session.set(name, None if value is None else [value], is_local)
        return session.settings.shown(name)

    def give_notice(self, notice: Notice) -> None:
        notices = self._request.notices
        if notices is None:
            notices = self._request.notices = []
        if len(notices) < NOTICES_MAX:
            notices.append(notice)

    def notify(self, channel: str, payload: str) -> None:
        transaction = self._transaction
        assert isinstance(transaction, Transaction), "a query that notifies is a transaction"
        self._request.allowed.check_write()
        send(self._request.sender, transaction, channel, payload)

    def listening(self) -> frozenset[str]:
        session = self._request.session
        listening = None if session is None else session.listening
        return NOTHING if listening is None else listening.committed

    @property
    def session_number(self) -> int:  # type: ignore[override]
        return self._request.sender

    def notification_usage(self) -> float:
        writer = self._request.environment.writer
        return 0.0 if writer is None else writer.channels.usage

    def lock(self, key: Key, *, shared: bool, of_transaction: bool, waits: bool) -> bool:
        """Take an advisory lock; a wait for it is between two runs."""
        request = self._request
        request.allowed.check_write()
        locks, lock = self._own_locks(of_transaction), Lock(key, shared)
        if locks.take(lock, of_transaction):
            return True
        if waits:
            raise NeedsSequenceValues(partial(request.wait_for, partial(locks.wait, lock)))
        return False

    def sleep(self, seconds: float) -> None:
        """Sleep between two runs: each run sleeps as often as the one before, and once more.

        Nothing is held meanwhile but what the request has held before. NaN is no time.
        """
        request = self._request
        if not seconds > 0:
            return
        self._sleeps += 1
        if self._sleeps > request.sleeps_done:
            raise NeedsSequenceValues(partial(request.sleep, seconds))

    def cancel_session(self, number: int) -> bool:
        found = self._session_of(number)
        if found is not None:
            found.cancel()
        return found is not None

    def terminate_session(self, number: int) -> bool:
        found = self._session_of(number)
        if found is not None:
            found.terminate()
        return found is not None

    def _session_of(self, number: int) -> ConnectedSession | None:
        self._request.allowed.check_write()
        found = self._request.environment.server.connected().get(number)
        if found is None:
            return None
        doing = found.session.activity()
        if not self._request.allowed.may_see(doing.key_id, doing.session_id):
            raise Forbidden(
                f"the connection {number} is that of another key",
                hint="Use the key of that connection, or one with the scope admin.",
            )
        return found.session

    def transaction_number(self, *, draws: bool) -> int | None:
        """Return a number that no other transaction has; steps of one have the same."""
        request = self._request
        holder: RequestContext | Session = self
        if request.is_step and request.session is not None:
            holder = request.session
        if holder.drawn_number is None and draws:
            holder.drawn_number = self.sequences.draw(ROW_IDS)
        return holder.drawn_number

    @property
    def statement_text(self) -> str | None:  # type: ignore[override]
        found = self._own_activity()
        return None if found is None else found.query

    @property
    def client_address(self) -> str | None:  # type: ignore[override]
        found = self._own_activity()
        return None if found is None else found.client or None

    def _own_activity(self) -> SessionActivity | None:
        """Return what the connection does that sent the statement; None of an HTTP request."""
        found = self._request.environment.server.connected().get(self._request.sender)
        return None if found is None else found.session.activity()

    def blockers_of(self, number: int) -> tuple[int, ...]:
        locks = self._request.environment.server.locks
        return () if locks is None else locks.blockers_of(number)

    def unlock(self, key: Key, *, shared: bool) -> bool:
        session = self._request.session
        if session is None or session.locks is None:
            return False
        found = session.locks.unlock(Lock(key, shared))
        self._settle(session.locks)
        return found

    def unlock_all(self) -> None:
        session = self._request.session
        if session is not None and session.locks is not None:
            session.locks.unlock_all()
            self._settle(session.locks)

    def _settle(self, locks: SessionLocks) -> None:
        """Release at once where nothing can undo it; otherwise the end of the request does."""
        if not isinstance(self._transaction, Transaction):
            locks.settle()

    def _own_locks(self, of_transaction: bool) -> SessionLocks:
        session, writer = self._request.session, self._request.environment.writer
        if session is None:
            raise NeedsSession
        if not of_transaction:
            session.check_lasts("a lock of the session")
        if writer is None:
            raise ReadOnlyTransaction("locks are taken at the server that writes this database")
        if session.locks is None:
            session.locks = SessionLocks(writer.advisory_locks, session.number)
        return session.locks

    def statement_rows(self, show_text: bool) -> Iterable[tuple[Any, ...]]:
        """Return them as all processes know them, for which the statement waits once."""
        counted = self._request.environment.statements
        if counted is None:
            return ()
        found = self._request.statements
        if found is None:
            raise NeedsSequenceValues(partial(self._request.ask_statements, counted))
        return [statement_row(each, show_text) for each in found]

    def reset_statements(self, number: int) -> None:
        request = self._request
        request.allowed.check_write()
        counted = request.environment.statements
        if counted is not None and number not in (request.statements_reset or ()):
            raise NeedsSequenceValues(partial(request.reset_statements, counted, number))

    def schemas(self) -> tuple[str, ...]:
        session = self._request.session
        path = (DEFAULTS if session is None else session.settings).path
        return tuple(each for each in path if self._has_schema(each))

    def _has_schema(self, name: str) -> bool:
        if name in (PUBLIC, "pg_catalog", "information_schema"):
            return True
        return self._transaction.find_definition(catalog_key(name, "")) is not None

    def next_row_id(self) -> int:
        return self.sequences.draw(ROW_IDS)

    def next_temporary_row_id(self) -> int:
        numbers = self._transaction.catalog.temporary
        assert numbers is not None, "only its session sees a temporary table"
        return numbers.next_row_id()

    @property
    def now(self) -> datetime:  # type: ignore[override]
        if self._now is None:
            self._now = self._request.now
        return self._now

    @property
    def random(self) -> Random:  # type: ignore[override]
        if self._random is None:
            self._random = self._request.random()
        return self._random

    @property
    def objects(self) -> CatalogAnswers:  # type: ignore[override]
        reader, session = self._transaction, self._request.session
        if isinstance(reader, Transaction):
            reader.whole_catalog_seen = True
        found = self._objects
        if (
            found is None
            or found.world.catalog is not reader.catalog
            or found.world.settings is not (DEFAULTS if session is None else session.settings)
        ):
            environment = self._request.environment
            about = self.pages, session, environment.server, environment.sequences
            found = self._objects = CatalogAnswers(reader, *about)
        return found

    @property
    def sequences(self) -> SequenceValues:  # type: ignore[override]
        if self._sequences is None:
            self._sequences = SequenceValues(self._request, self._transaction)
        return self._sequences
