"""State that all connections of one server share."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import Protocol

import trio

from qserver.http1.addresses import Addresses
from qserver.http1.answer import HeadRenderer
from qserver.http1.application import Application
from qserver.http1.counters import Counters
from qserver.http1.heads import Heads
from qserver.http1.listening import Crowd
from qserver.http1.moving import Mover
from qserver.http1.options import ServerOptions
from qserver.http1.reactor import BatchPort, NoBatch, Reactor
from qserver.http1.turns import NoTurns, Turns

SWEEPS_PER_TIMEOUT = 8
SWEEP_SECONDS_MAX = 1.0


class OpenConnection(Protocol):
    """What the server as a whole asks of each connection."""

    address: str

    def end_if_idle(self) -> None: ...

    def end_if_rests(self) -> bool: ...

    def end_if_late(self, now: float) -> bool: ...


class ServerContext:
    """The options, the counters, the cached heads, and the set of open connections."""

    def __init__(
        self,
        application: Application,
        options: ServerOptions,
        counters: Counters,
        report: Callable[[str], None],
        batch: BatchPort | None = None,
        turns: Turns | None = None,
        mover: Mover | None = None,
        crowd: Crowd | None = None,
    ) -> None:
        self.options = options
        self.counters = counters
        self.report = report
        self.renderer = HeadRenderer()
        self.heads = Heads(application, options)
        self.reactor = Reactor(batch or NoBatch(), turns) if Reactor.available() else None
        self.turns = turns or NoTurns()
        self.mover = mover
        """None: there is one process."""
        self.crowd = crowd
        """None: nobody else accepts from the listeners."""
        self.draining = False
        self.connections: set[OpenConnection] = set()
        self.arriving: set[trio.CancelScope] = set()
        """Waits for parts of bodies."""
        self.addresses = Addresses()
        self._guests = 0
        self._empty = trio.Event()

    def add(self, connection: OpenConnection) -> None:
        self.connections.add(connection)
        self.addresses.add(connection.address, connection)
        self.counters.connections_open += 1
        self._note_count()

    def remove(self, connection: OpenConnection) -> None:
        self.connections.discard(connection)
        self.addresses.remove(connection.address, connection)
        self.counters.connections_open -= 1
        self._note_count()
        self._check_empty()

    def _note_count(self) -> None:
        if self.crowd is not None:
            self.crowd.note(len(self.connections))

    @contextmanager
    def guest(self) -> Iterator[None]:
        """A request of another process's connection is served during the block."""
        self._guests += 1
        try:
            yield
        finally:
            self._guests -= 1
            self._check_empty()

    def _check_empty(self) -> None:
        if self.draining and not self.connections and not self._guests:
            self._empty.set()

    async def drain(self) -> None:
        """End idle connections, and wait until the others have answered."""
        self.draining = True
        for connection in self.connections:
            connection.end_if_idle()
        for wait in self.arriving:
            wait.deadline = min(wait.deadline, self.body_deadline(inf))
        if self.connections or self._guests:
            await self._empty.wait()

    def body_deadline(self, seconds: float) -> float:
        """Return until when to wait for the next part of a body; not for long while draining."""
        if self.draining:
            seconds = min(seconds, self.options.drain_body_seconds)
        return trio.current_time() + seconds

    def log(self, line: str) -> None:
        """Write a line to the access log, if there is one."""
        if self.options.access_log is None:
            return
        try:
            self.options.access_log(line)
        except Exception:
            self.counters.log_lines_lost += 1
            if self.counters.log_lines_lost == 1:  # once: every later line may fail too
                self.report(f"the access log loses lines:\n{traceback.format_exc()}")

    async def sweep(self) -> None:
        """End connections that wait for a request past their deadline.

        One task checks all connections periodically, because a timer for each wait costs more than
        the rest of a small request. So a connection may end a little after its deadline.
        """
        shortest = min(self.options.header_seconds, self.options.idle_seconds)
        pause = min(shortest / SWEEPS_PER_TIMEOUT, SWEEP_SECONDS_MAX)
        while True:
            await trio.sleep(pause)
            now = time.monotonic()
            for connection in tuple(self.connections):
                if connection.end_if_late(now):
                    await trio.lowlevel.checkpoint()  # hundreds may end at once
