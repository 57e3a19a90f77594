"""A session: what statements leave behind for those after them.

    an HTTP request         a session of its own, if a statement or the field `settings` needs one
    an open transaction     one session from its beginning to its end
    a connection            one session, which its transactions share

Settings are transactional: `begin` remembers them, `commit` ends SET LOCAL, `roll_back` returns to
what was remembered. Savepoints keep `settings`, which is an immutable value, and put it back.

Prepared statements are not: they last as long as the session. Portals, and with them cursors, end
with the transaction or the savepoint that they were opened in; those WITH HOLD outlive a commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from qserver.engine.work import Step, WorkSteps
from qserver.errors import FeatureNotSupported, InvalidCursorName
from qserver.query.deferred_keys import DeferredKeys, Modes
from qserver.query.listening import NOTHING, Listening
from qserver.query.memory_pool import MemoryPool
from qserver.query.named_statement import NamedStatement, NamedStatements
from qserver.query.portals import Fetcher, Portal
from qserver.query.session_locks import SessionLocks, Taken
from qserver.query.settings.values import (
    DEFAULT_MODES,
    DEFAULTS,
    Scope,
    Settings,
    scope_of,
    settings_from,
)
from qserver.query.temporary import TemporarySchema
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from qserver.values.temporary import TEMPORARY
from qserver.values.zones import SESSION_ZONE

SessionState: TypeAlias = tuple[
    Settings, Modes, tuple[Any, ...], frozenset[Portal], frozenset[str], Taken
]
"""Settings, modes of constraints, changes that are to be checked, portals, channels, locks."""

Moment: TypeAlias = tuple[
    SessionState, tuple[tuple[str, SessionState], ...], tuple[tuple[Portal, int], ...]
]


Beginning: TypeAlias = tuple[Moment, tuple[NamedStatement, ...], dict[str, Portal]]


class NeedsSession(Exception):  # for the caller of the body, not for users
    """A statement leaves something behind, and its request has no session."""


class Session:
    __slots__ = (
        "_before",
        "_closed",
        "_locks_before",
        "_savepoints",
        "deferred",
        "drawn_number",
        "lasts",
        "listening",
        "locks",
        "number",
        "portals",
        "serves_several",
        "settings",
        "statements",
        "temporary",
        "told",
    )

    def __init__(self, given: Mapping[str, Any] | None = None, *, lasts: bool = True) -> None:
        """`given` are settings by name, to which RESET goes back.

        `lasts`: it goes on after the request that it is made for.
        """
        self.lasts = lasts
        self.serves_several = lasts
        """Whether a statement may follow that sees what this one leaves."""
        self.temporary: TemporarySchema | None = None
        """Its temporary relations, once it has made one."""
        self.statements = NamedStatements()
        """Prepared statements."""
        self.portals: dict[str, Portal] = {}
        self._closed: list[Portal] | None = None
        """In a step, the portals that it has closed: it may have to run once more."""
        self.settings: Settings = settings_from(given) if given else DEFAULTS
        self._before = self.settings
        self._savepoints: list[tuple[str, SessionState]] = []
        self.deferred = DeferredKeys()
        """The foreign keys that the transaction checks at its end."""
        self.drawn_number: int | None = None
        """The number of its transaction, once that was asked for."""
        self.number = 0
        """By which others know it: pg_backend_pid(). It is that of a connection, or 0."""
        self.told: Callable[[], None] | None = None
        """Called when a listener has heard something; None if the session cannot listen."""
        self.listening: Listening | None = None
        self.locks: SessionLocks | None = None
        """Its advisory locks."""
        self._locks_before: Taken = ()

    # --- settings ---

    def set(self, name: str, values: Iterable[str] | None, is_local: bool = False) -> None:
        """SET a setting, or RESET it if there are no values, from now on.

        What later transactions begin with changes nothing of the one that runs.
        """
        settings = self.settings
        for each, default in DEFAULT_MODES.items():
            if name.lower() == default:
                settings = settings.set(each, [settings.value(each)])
        self._change(settings.set(name, values, is_local))

    def reset_all(self) -> None:
        self._change(self.settings.reset_all())

    def _change(self, settings: Settings) -> None:
        self.settings = settings
        SESSION_ZONE.set(settings.zone)  # for the statements after this one; see `in_session`

    @property
    def path(self) -> tuple[str, ...]:
        """The schemas in which names are looked for: temporary relations first."""
        path = self.settings.path
        if self.temporary is None or TEMPORARY in path:
            return path
        return (TEMPORARY, *path)

    @property
    def scope(self) -> Scope | None:
        """What plans depend on beside the text of their statement."""
        if self.temporary is None:
            return self.settings.scope
        return scope_of(self.path, self.settings.value("timezone"))

    # --- what lasts longer than a statement ---

    def serve(self, statements: int) -> None:
        """Begin a request of so many statements."""
        self.serves_several = self.lasts or statements > 1

    def over(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot as the session sees it."""
        return snapshot if self.temporary is None else self.temporary.over(snapshot)

    def open_temporary(self, transaction: Transaction, pool: MemoryPool | None) -> None:
        """Let the transaction make a temporary relation."""
        if not self.serves_several:
            raise FeatureNotSupported(
                "a temporary relation would end with this request, before anything could use it",
                hint="Send it among the statements of POST /v1/transaction, open a transaction with"
                " POST /v1/transaction/open, or connect as a client of PostgreSQL.",
            )
        if self.temporary is None:
            self.temporary = TemporarySchema(pool if self.lasts else None)
        self.temporary.open(transaction)

    # --- what lasts longer than a request ---

    def check_lasts(self, what: str) -> None:
        """Refuse a statement that leaves something for a later request, if there is none."""
        if not self.lasts:
            raise FeatureNotSupported(
                f"{what} needs a session, and this one ends with its request",
                hint="Open a transaction with POST /v1/transaction/open, or connect as a client"
                " of PostgreSQL.",
            )

    def close_portal(self, name: str) -> None:
        portal = self.portals.pop(name)
        if self._closed is None:
            portal.close()
        else:
            self._closed.append(portal)

    def close_portals(self, kept: Callable[[Portal], bool] = lambda portal: False) -> None:
        """Close all portals, except for some."""
        for name, portal in list(self.portals.items()):
            if not kept(portal):
                self.close_portal(name)

    def make_way(self, request: Fetcher | None = None) -> WorkSteps:
        """Let portals keep their rows in memory before something changes them."""
        for portal in list(self.portals.values()):
            yield from portal.stand_aside(request)

    def hold(self, request: Fetcher | None = None) -> WorkSteps:
        """Let cursors WITH HOLD keep their rows, before the transaction ends."""
        for portal in list(self.portals.values()):
            if portal.hold:
                yield from portal.stand_aside(request)

    def discard(self) -> None:
        """Forget everything: DISCARD ALL."""
        self.reset_all()
        self.statements.clear()
        self.close_portals()
        if self.listening is not None:
            self.listening.close()
        if self.locks is not None:
            self.locks.close()

    def end(self) -> None:
        """Forget everything, also what DISCARD ALL leaves to its transaction."""
        self.discard()
        self.statements.close()
        if self.temporary is not None:
            self.temporary.release()

    # --- transactions ---

    def begin(self) -> None:
        """Remember what a rollback goes back to."""
        self._before, self.drawn_number = self.settings, None
        self._savepoints.clear()
        self.deferred = DeferredKeys()
        if self.locks is not None:
            self._locks_before = self.locks.taken

    def commit(self) -> None:
        """End the transaction; `hold` has run if there are cursors WITH HOLD."""
        self.end_local()
        if self.temporary is not None:
            self.temporary.commit()
        if self.portals:
            self.close_portals(lambda portal: portal.hold)
            for portal in self.portals.values():
                portal.is_held = True
        if self.listening is not None:
            self.listening.commit()
        if self.locks is not None:
            self.locks.end_transaction()
        self.begin()

    def end_local(self) -> None:
        """End what was set for the transaction."""
        self.settings = self.settings.committed()

    def begin_commit(self) -> None:
        """Prepare for the commit of the transaction, which is sent now."""
        if self.listening is not None:
            self.listening.begin_commit()

    def roll_back(self) -> None:
        """Forget what the transaction has set."""
        self.settings, self.drawn_number = self._before, None
        self._savepoints.clear()
        self.deferred = DeferredKeys()
        if self.temporary is not None:
            self.temporary.roll_back()
        if self.portals:
            self.close_portals(lambda portal: portal.is_held)
        if self.listening is not None:
            self.listening.roll_back()
        if self.locks is not None:
            self.locks.end_transaction()

    def begin_again(self) -> None:
        """Go back to how it was before the transaction: that failed at once, or runs anew."""
        self.roll_back()
        if self.locks is not None:
            self.locks.taken = self._locks_before

    def settle(self) -> None:
        """Release the locks and portals that are no longer there: a request has ended."""
        if self.locks is not None:
            self.locks.settle()
        closed, self._closed = self._closed or (), None
        for portal in closed:
            portal.close()

    def _state(self) -> SessionState:
        portals = frozenset(self.portals.values())
        names = NOTHING if self.listening is None else self.listening.names
        taken = () if self.locks is None else self.locks.taken
        changes = tuple(self.deferred.changes)
        return self.settings, self.deferred.modes, changes, portals, names, taken

    def _return_to(self, state: SessionState) -> None:
        settings, self.deferred.modes, changes, portals, names, taken = state
        self.deferred.changes = list(changes)
        if self.portals:
            self.close_portals(portals.__contains__)
        if self.listening is not None:
            self.listening.names = names
        if self.locks is not None:
            self.locks.taken = taken
        self._change(settings)

    def begin_step(self) -> Beginning:
        """Return what `repeat_step` returns to; until `settle`, portals can be opened again."""
        self._closed = []
        return self.moment(), tuple(self.statements), dict(self.portals)

    def repeat_step(self, beginning: Beginning, pool: MemoryPool | None) -> None:
        """Go back to where the step began, also in what no rollback undoes: it runs once more."""
        moment, statements, portals = beginning
        assert self._closed is not None
        self.portals.update(portals)
        self._closed = [each for each in self._closed if each not in portals.values()]
        self.statements.return_to(statements, pool)
        self.go_back_to(moment)

    def moment(self) -> Moment:
        """Return what `go_back_to` returns to, within the transaction."""
        positions = tuple([(each, each.position) for each in self.portals.values()])
        return self._state(), tuple(self._savepoints), positions

    def go_back_to(self, moment: Moment) -> None:
        state, savepoints, positions = moment
        self._return_to(state)
        self._savepoints[:] = savepoints
        for portal, position in positions:
            portal.position = position

    def set_savepoint(self, name: str) -> None:
        self._savepoints.append((name, self._state()))

    def release(self, name: str) -> None:
        self._drop_savepoints(name)

    def roll_back_to(self, name: str) -> None:
        kept = () if self.locks is None else self.locks.of_session
        self._return_to(self._drop_savepoints(name))
        if self.locks is not None:  # those of the session stay
            of_transaction = [each for each in self.locks.taken if each.of_transaction]
            self.locks.taken = (*of_transaction, *kept)
        self.set_savepoint(name)

    def _drop_savepoints(self, name: str) -> SessionState:
        """Drop the newest savepoint of that name and those after it; return its state."""
        while True:
            last, state = self._savepoints.pop()
            if last == name:
                return state

    def __repr__(self) -> str:
        return f"a session with {self.settings!r}"


def in_session(session: Session, steps: WorkSteps) -> WorkSteps:
    """Run steps with the time zone of the session, which they may change."""
    resume: Callable[[Any], Step] = steps.send
    value: Any = None
    try:
        while True:
            token = SESSION_ZONE.set(session.settings.zone)
            try:
                step = resume(value)
            finally:
                SESSION_ZONE.reset(token)
            try:
                resume, value = steps.send, (yield step)
            except Exception as error:
                resume, value = steps.throw, error
    except StopIteration as end:
        return end.value
    finally:
        value = None  # an error leads to this frame, and to the snapshot that the work reads
        steps.close()


def as_transaction(session: Session, steps: WorkSteps, is_undone: bool = False) -> WorkSteps:
    """Run the steps of a whole transaction; what it sets holds afterwards if it succeeds."""
    session.begin()
    try:
        done = yield from in_session(session, steps)
        if is_undone:
            session.begin_again()
        session.commit()
    except BaseException:
        session.begin_again()
        raise
    finally:
        session.settle()
    return done


def run_in_session(
    session: Session, body: Callable[[Transaction], WorkSteps], transaction: Transaction
) -> WorkSteps:
    """Run a body, perhaps not for the first time: each run begins with the same settings."""
    session.begin_again()
    base = transaction.snapshot
    if session.temporary is not None:
        session.temporary.lay(transaction)
    done = yield from in_session(session, body(transaction))
    if session.temporary is not None:
        yield from session.temporary.take_out(transaction, base)
    return done


def portal_named(session: Session | None, name: str) -> Portal:
    found = None if session is None else session.portals.get(name)
    if found is None:
        raise InvalidCursorName(f'cursor "{name}" does not exist')
    return found
