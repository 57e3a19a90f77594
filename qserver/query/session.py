"""A session: what statements leave behind for those after them.

    an HTTP request         a session of its own, if a statement or the field `settings` needs one
    an open transaction     one session from its beginning to its end
    a connection            one session, which its transactions share

Settings are transactional: `begin` remembers them, `commit` ends SET LOCAL, `roll_back` returns to
what was remembered. Savepoints keep `settings`, which is an immutable value, and put it back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from qserver.engine.work import Step, WorkSteps
from qserver.query.deferred_keys import DeferredKeys, Modes
from qserver.query.settings.values import DEFAULTS, Settings, settings_from
from qserver.storage.transaction import Transaction
from qserver.values.zones import SESSION_ZONE

State: TypeAlias = tuple[Settings, Modes, tuple[Any, ...]]
"""Settings, modes of constraints, and changes that are to be checked."""

Moment: TypeAlias = tuple[State, tuple[tuple[str, State], ...]]


class NeedsSession(Exception):  # for the caller of the body, not for users
    """A statement leaves something behind, and its request has no session."""


class Session:
    __slots__ = ("_before", "_savepoints", "deferred", "settings")

    def __init__(self, given: Mapping[str, Any] | None = None) -> None:
        """`given` are settings by name, to which RESET goes back."""
        self.settings: Settings = settings_from(given) if given else DEFAULTS
        self._before = self.settings
        self._savepoints: list[tuple[str, State]] = []
        self.deferred = DeferredKeys()
        """The foreign keys that the transaction checks at its end."""

    # --- settings ---

    def set(self, name: str, values: Iterable[str] | None, is_local: bool = False) -> None:
        """SET a setting, or RESET it if there are no values, from now on."""
        self._change(self.settings.set(name, values, is_local))

    def reset_all(self) -> None:
        self._change(self.settings.reset_all())

    def _change(self, settings: Settings) -> None:
        self.settings = settings
        SESSION_ZONE.set(settings.zone)  # for the statements after this one; see `in_session`

    # --- transactions ---

    def begin(self) -> None:
        """Remember what a rollback goes back to."""
        self._before = self.settings
        self._savepoints.clear()
        self.deferred = DeferredKeys()

    def commit(self) -> None:
        self.settings = self.settings.committed()
        self.begin()

    def roll_back(self) -> None:
        """Forget what the transaction has set."""
        self.settings = self._before
        self._savepoints.clear()
        self.deferred = DeferredKeys()

    def _state(self) -> State:
        return self.settings, self.deferred.modes, tuple(self.deferred.changes)

    def _return_to(self, state: State) -> None:
        settings, self.deferred.modes, changes = state
        self.deferred.changes = list(changes)
        self._change(settings)

    def moment(self) -> Moment:
        """Return what `go_back_to` returns to, within the transaction."""
        return self._state(), tuple(self._savepoints)

    def go_back_to(self, moment: Moment) -> None:
        state, savepoints = moment
        self._return_to(state)
        self._savepoints[:] = savepoints

    def set_savepoint(self, name: str) -> None:
        self._savepoints.append((name, self._state()))

    def release(self, name: str) -> None:
        self._drop_savepoints(name)

    def roll_back_to(self, name: str) -> None:
        self._return_to(self._drop_savepoints(name))
        self.set_savepoint(name)

    def _drop_savepoints(self, name: str) -> State:
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
    except BaseException:
        session.roll_back()
        raise
    if is_undone:
        session.roll_back()
    session.commit()
    return done


def run_in_session(
    session: Session, body: Callable[[Transaction], WorkSteps], transaction: Transaction
) -> WorkSteps:
    """Run a body, perhaps not for the first time: each run begins with the same settings."""
    session.roll_back()
    return (yield from in_session(session, body(transaction)))
