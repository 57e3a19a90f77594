"""Drives one session over a socket: does what it waits for (`waits`).

    bytes arrive ─► the reactor calls ─► the session goes on ─┬─ wants bytes: answers are sent, and
                                                              │  the task sleeps on
                                                              └─ waits for anything else: the task

A statement that is answered without waiting never wakes the task: the reactor's call takes it from
its first byte to its last. That is how HTTP does it, too, and `http1.reactor` says why.
"""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable
from math import inf
from time import monotonic
from typing import Any, Protocol

import trio

from qserver.engine.mailbox import Reply
from qserver.engine.yielding import yield_to_others
from qserver.errors import QserverError, SessionEnded, TooManyRequests
from qserver.http1 import Reactor, Transport
from qserver.limits import RECEIVE_BYTES
from qserver.pgwire.host import Host
from qserver.pgwire.limits import SEND_SECONDS_MAX, STARTUP_SECONDS_MAX
from qserver.pgwire.problems import problem
from qserver.pgwire.session import Session, idle_in_transaction
from qserver.pgwire.startup import Arrival
from qserver.pgwire.state import State
from qserver.pgwire.waits import INPUT, OUTPUT, Cancel, Fatal, Leave, Wait

GONE = (OSError, trio.BrokenResourceError, trio.ClosedResourceError, TimeoutError)


class Network(Protocol):
    """What a connection needs of the listener."""

    reactor: Reactor | None

    def encrypted(self, transport: Transport) -> Transport:
        """Return the same connection with TLS over it."""

    async def cancel(self, number: int, secret: int) -> None:
        """Cancel the statement of another session."""

    def move(self, connection: Connection, leave: Leave) -> Awaitable[None]:
        """Give the connection to another process."""


class Connection:
    def __init__(
        self, network: Network, host: Host, transport: Transport, number: int, client: str
    ) -> None:
        self._network = network
        self._host = host
        self.transport = transport
        self.client = client
        secret = int.from_bytes(host.secrets(4), "big")
        self.state = State(host, number, secret, client, self.end_soon)
        self.state.told = self._told
        self._session = Session(self.state)
        self._steps = self._session.run()
        self._event: Any = None
        """What the session waits for; None stands for a pause of the engine."""
        self._is_over = False
        self._woken = monotonic()
        """When it began to wait for its client."""
        self._born = self._woken
        self._idle = trio.CancelScope()

    def arrived(self, arrival: Arrival) -> None:
        """Go on with a client that another process has let in."""
        self._steps = self._session.run(arrival)

    # --- the task ---------------------------------------------------------------------------------

    async def run(self) -> None:
        """Serve the client until it leaves, or has to."""
        try:
            await self._live()
        except GONE:
            pass  # the client has left
        except Exception:
            self._host.known(Exception(traceback.format_exc()))
        finally:
            self._is_over = True
            self._steps.close()
            if self._network.reactor is not None:
                self._network.reactor.forget(self.transport.descriptor)
            self.transport.close()

    async def _live(self) -> None:
        self._go_on(None)
        while not self._is_over:
            event = self._event
            self.state.own_task()  # the reactor may have begun what goes on here
            if event is INPUT:
                await self._send()
                await self._wait_for_input()
            elif event is OUTPUT:
                await self._send()
                self._go_on(None)
            elif event is Wait.TLS:
                await self._start_tls()
            elif isinstance(event, Leave):
                await self._network.move(self, event)
                return
            elif isinstance(event, Cancel):
                await self._network.cancel(event.number, event.secret)
                self._go_on(None)
            else:
                await self._wait_for_engine(event)
        await self._send()

    def _go_on(self, value: Any, error: Exception | None = None) -> None:
        """Let the session run until it waits again."""
        try:
            steps = self._steps
            self._event = steps.send(value) if error is None else steps.throw(error)
        except StopIteration:
            self._is_over = True

    async def _wait_for_engine(
        self, step: Callable[[], Awaitable[Any]] | Reply[Any] | None
    ) -> None:
        value, error = None, None
        grant = self.state.grant
        share = None if grant is None else grant.share
        if share is not None:
            share.connections += 1
        try:
            if step is None:
                await yield_to_others()
            else:
                value = await (step.wait() if isinstance(step, Reply) else step())
        except Exception as caught:
            error = caught
        finally:
            if share is not None:
                share.connections -= 1
        self._go_on(value, error)

    async def _start_tls(self) -> None:
        await self._send()
        reactor = self._network.reactor
        if reactor is not None:
            reactor.forget(self.transport.descriptor)
        self.transport = self._network.encrypted(self.transport)
        await self.transport.open()
        self._go_on(None)

    async def _wait_for_input(self) -> None:
        reactor, transport = self._network.reactor, self.transport
        while self._session.is_idle and self.state.tell():
            await self._send()
        self._woken = monotonic()
        if self.state.ending is not None:
            self._go_on(None, Fatal(self.state.ending))
            return
        with trio.CancelScope() as self._idle:
            if reactor is not None and transport.may_be_watched:
                await reactor.wait(transport.descriptor, self._readable)
            else:
                self._received(await transport.receive())

    async def _send(self) -> None:
        """Send all that the session has written."""
        out = self.state.out
        while out:
            data = bytes(out)
            del out[:]
            self._host.bytes_out += len(data)
            await self.transport.send_all(memoryview(data), SEND_SECONDS_MAX)

    def _told(self) -> None:
        """Wake the task, which sends notifications, if it waits for its client."""
        if self._event is INPUT and self._session.is_idle:
            self._idle.cancel()

    # --- arrivals ---------------------------------------------------------------------------------

    def _readable(self) -> bool:
        """Handle an arrival. False: all is done, and the task sleeps on."""
        if self._event is not INPUT or self._is_over:
            return True
        data = self.transport.try_receive()
        if data is None:
            return False
        if len(data) >= RECEIVE_BYTES and self._network.reactor is not None:
            self._network.reactor.mark(self.transport.descriptor)
        self._received(data)
        if self._event is not INPUT or self._is_over:
            return True
        out = self.state.out
        if out:
            sent = self.transport.try_send(bytes(out))
            self._host.bytes_out += sent
            del out[:sent]
            if out:
                return True
        self._woken = monotonic()
        return False

    def _received(self, data: bytes) -> None:
        if not data:
            self._is_over = True
            return
        self._host.bytes_in += len(data)
        state, error = self.state, None
        if state.frames.feed(data) or state.input_held:
            try:
                state.hold_input()
            except QserverError as too_much:
                error = Fatal(too_much)
        self._go_on(None, error)

    # --- ends -------------------------------------------------------------------------------------

    def end_soon(self, error: QserverError | None = None) -> None:
        """End the session when it waits for its client, with an error that says why."""
        state = self.state
        if state.ending is None:
            why = "terminating connection due to administrator command"
            state.ending = error or SessionEnded(why, hint="Connect again.")
        if self._event is INPUT:
            self._idle.cancel()

    def end_if_late(self, now: float) -> None:
        """End a session whose client has taken too long."""
        state, waits = self.state, self._event is INPUT
        if state.grant is None:
            if now > self._born + STARTUP_SECONDS_MAX:
                self.end_soon(SessionEnded("canceling authentication due to timeout"))
        elif waits and state.block.transaction is not None:
            if now > self._woken + state.settings.transaction_idle_seconds:
                self.end_soon(idle_in_transaction())
        elif waits and now > self._woken + (state.settings.idle_seconds or inf):
            self.end_soon(SessionEnded("terminating connection due to idle-session timeout"))

    def drain(self) -> None:
        """End the session unless it is in a transaction, or a statement."""
        if self._event is INPUT and self._session.is_idle and self.state.block.transaction is None:
            self.end_soon(self._host.stopping())

    async def refuse(self, error: TooManyRequests) -> None:
        """Tell a client that there is no place for it."""
        try:
            out = problem(error, "FATAL")
            await self.transport.send_all(memoryview(out), 1.0)
        except GONE:
            pass
        finally:
            self._steps.close()
            self.transport.close()

    def __repr__(self) -> str:
        return f"<session {self.state.number} of {self.client}>"
