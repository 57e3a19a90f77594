"""A session, from the first byte of its client to the last: one generator, without I/O.

    startup ─► ready ─┬─ Query ───────────────────► ReadyForQuery
      │         ▲     └─ Parse, Bind, … Sync ─────► ReadyForQuery
      │         │            └─ an error: passes over all up to Sync
      ▼         └──────────────────────────────────────┘
     end

It reads messages from `frames`, writes answers to `out`, and yields where it has to wait (`waits`).
Who drives it does what it waits for, and nothing else; so tests drive it byte by byte.
"""

from __future__ import annotations

from time import perf_counter

from qserver.errors import (
    FeatureNotSupported,
    IdleInTransaction,
    ProtocolViolation,
    QserverError,
    QueryCanceled,
    SessionEnded,
)
from qserver.pgwire import messages
from qserver.pgwire.executing import Executing
from qserver.pgwire.extended import Extended
from qserver.pgwire.messages import BrokenFrames, MessageTooLong
from qserver.pgwire.problems import problem
from qserver.pgwire.simple import answer
from qserver.pgwire.startup import Arrival, enter
from qserver.pgwire.state import State
from qserver.pgwire.waits import INPUT, Fatal, Waits

_EXTENDED = frozenset(
    {messages.PARSE, messages.BIND, messages.DESCRIBE, messages.EXECUTE, messages.CLOSE,
     messages.FLUSH, messages.SYNC}
)  # fmt: skip

_RUNS = frozenset({messages.QUERY, messages.BIND, messages.EXECUTE})
RUNS_AT_ONCE = 32
"""Messages about statements that have arrived together, and come before others have a turn."""


class Session:
    def __init__(self, state: State) -> None:
        self.state = state
        self._executing = Executing(state)
        self._extended = Extended(self._executing)
        self._skips = False
        """Whether messages are passed over until Sync."""
        self._kind = 0
        """The type of the message that is handled."""
        self.is_idle = False
        """Whether it waits for the first byte of a message, outside of everything."""

    def run(self, arrival: Arrival | None = None) -> Waits[None]:
        """Serve the client to its end. `arrival`: it has entered in another process."""
        state = self.state
        try:
            if (yield from enter(state, arrival)):
                yield from self._serve()
        except Fatal as fatal:
            self._write_fatal(fatal.error)
        except QserverError as error:
            self._write_fatal(error)
        except GeneratorExit:
            raise
        except Exception as error:
            self._write_fatal(state.host.known(error))
        finally:
            self._executing.close()
            state.close()

    def _write_fatal(self, error: QserverError) -> None:
        self.state.out += problem(self.state.host.known(error), "FATAL")

    def _serve(self) -> Waits[None]:
        state, extended, frames = self.state, self._extended, self.state.frames
        state.out += state.block.ready()
        burst = 0
        while True:
            frame = frames.next()
            if frame is None:
                self._check_ending()
                self.is_idle, burst = True, 0
                yield INPUT
                self.is_idle = False
                continue
            kind, body = frame
            if kind in _RUNS:
                burst += 1
                if burst % RUNS_AT_ONCE == 0:
                    yield None
            if kind == messages.TERMINATE:
                return
            if self._skips and kind != messages.SYNC:
                continue
            self._kind = kind
            try:
                if extended.waiting is not None and kind != messages.SYNC:
                    yield from self._timed(extended.run_waiting(), perf_counter())
                steps = self._handle(kind, body)
                if steps is not None:
                    yield from steps
            except (Fatal, BrokenFrames, MessageTooLong):
                raise
            except GeneratorExit:
                raise
            except Exception as error:
                self._failed(error)

    def _check_ending(self) -> None:
        """End the session if it has to, and nothing would be lost by that."""
        state = self.state
        if state.ending is not None:
            raise Fatal(state.ending)
        if state.block.must_end:
            raise Fatal(
                SessionEnded("the transaction was ended by the server", hint="Connect again.")
            )
        if state.host.is_draining and state.block.transaction is None:
            raise Fatal(state.host.stopping())

    def _handle(self, kind: int, body: bytes) -> Waits[None] | None:
        """Handle a message; return what is left to do, if that may have to wait."""
        extended = self._extended
        if kind == messages.BIND:
            began = perf_counter()
            again = extended.round_trips.begin(body, self.state.frames)
            if again is not None:
                self._kind = messages.SYNC
                return self._ending(extended.repeat(*again), began)
            if extended.bind(body, self.state.frames):  # all of a round trip, and so Sync
                self._kind = messages.SYNC
                return self._sync()
        elif kind == messages.EXECUTE:
            return extended.execute(body)
        elif kind == messages.SYNC:
            return self._sync()
        elif kind == messages.QUERY:
            began = perf_counter()
            return self._ending(answer(self._executing, messages.read_query(body)), began)
        elif kind == messages.PARSE:
            return extended.parse(body)
        elif kind == messages.DESCRIBE:
            extended.describe(body)
        elif kind == messages.CLOSE:
            extended.close(body)
        elif kind == messages.FUNCTION_CALL:
            raise FeatureNotSupported("function calls are not supported: write SELECT f(…)")
        elif kind == messages.PASSWORD:
            raise Fatal(ProtocolViolation("a password was not asked for"))
        # COPY messages behind a COPY that has failed, and Flush: everything is sent anyway.
        return None

    def _sync(self) -> Waits[None] | None:
        extended = self._extended
        began = None if extended.waiting is None else perf_counter()
        return self._ending(extended.sync(), began)

    def _ending(self, steps: Waits[None] | None, began: float | None) -> Waits[None] | None:
        """End a round trip, when what is left of it is done; return that."""
        if steps is not None:
            return self._ending_later(steps, began)
        if began is not None:
            self.state.host.count(None, perf_counter() - began)
        self._skips = False
        self._ready()
        return None

    def _ending_later(self, steps: Waits[None], began: float | None) -> Waits[None]:
        yield from steps
        self._ending(None, began)

    def _timed(self, steps: Waits[None], began: float) -> Waits[None]:
        """Count a statement, and how long it took."""
        yield from steps
        self.state.host.count(None, perf_counter() - began)

    def _ready(self) -> None:
        state = self.state
        state.request, state.was_canceled = None, False
        settings = state.settings
        if settings.has_changed:
            for name, value in settings.changes():
                state.out += messages.parameter_status(name, value)
        if settings.session.listening is not None:
            state.hold_heard()
            state.tell()
        state.out += state.block.ready()

    def _failed(self, error: Exception) -> None:
        """Tell the client of an error, and undo what it undoes."""
        kind, state, block = self._kind, self.state, self.state.block
        known = state.host.known(error)
        if isinstance(known, QueryCanceled) and state.was_canceled:
            known = QueryCanceled("canceling statement due to user request")
        state.host.count(known, 0.0)
        state.tell_notices()
        state.out += problem(known, where=error.where if isinstance(error, QserverError) else None)
        self._extended.waiting = None
        if block.transaction is None or block.is_implicit:
            self._executing.close_portals()
            block.roll_back()
        else:
            block.fail()
        if kind in (messages.QUERY, messages.SYNC):
            self._skips = False
            self._ready()
        else:
            self._skips = kind in _EXTENDED
            if kind == messages.FUNCTION_CALL:
                self._ready()


def idle_in_transaction() -> IdleInTransaction:
    return IdleInTransaction("terminating connection due to idle-in-transaction timeout")
