"""Links between processes: calls, locks, streams, moved connections.

    supervisor: makes all doors, then forks
      door 0 ─────► process 0 ◄──┐
      door 1 ─────► process 1 ───┤  knocks at door 0 when it needs process 0
      door 2 ─────► process 2 ───┘

A door outlives its process (`doors`): a connection that is made while process k starts anew waits
there, and its successor answers. A connection counts from the `Hello` of its callee. So what waits
for a process that is away was not sent, and can fail with "nothing was done" when its deadline
comes.

What a caller can rely on:

- A call is made at most once. If it was not sent it waits for the process until its deadline, then
  fails with DatabaseUnavailable. If it was sent and the link breaks, or the deadline comes, it
  fails with OutcomeUnknown at once: no answer can come any more.
- A cancelled call is cancelled at the callee.
- A lock is held over one connection. Calls under it (`HeldLock.call`) go over that connection and
  no other, and name it: once the connection or the lock is lost they fail.
- A moved connection is sent whole or not at all. If not, `failed` gets it back. Where no descriptor
  can travel its bytes are relayed, as long as the link lasts.

A process can call itself: it has a door like all others.

Links know of doors only that one can knock at them (`ways`). A peer is made when it is first asked
for, so the processes need not be known, nor their number.
"""

from __future__ import annotations

import math
import socket
import traceback
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import trio

from qserver.cluster.calling import Caller, NotSent, unavailable
from qserver.cluster.connection import Connection, Report
from qserver.cluster.messages import Call, Follow, Lock, Move
from qserver.cluster.serving import Served, Service, welcome
from qserver.cluster.streams import Stream
from qserver.cluster.ways import Arrival, Carrier, MovedHere, Ways
from qserver.errors import DatabaseUnavailable, OutcomeUnknown, QserverError
from qserver.limits import (
    LINK_DRAIN_SECONDS,
    LINK_MOVES_MAX,
    LINK_RETRY_SECONDS,
)

Failed = Callable[[socket.socket, Any, bytes], None]
"""Gets back a connection that could not be moved, with its `meta` and `data`. It does not wait."""


class HeldLock:
    """A lock of another process that is held: the only way to make calls under it."""

    def __init__(self, links: Links, caller: Caller, ticket: int) -> None:
        self._links = links
        self._caller = caller
        self._ticket = ticket

    async def call(
        self, method: str, arguments: Sequence[Any] = (), *, deadline: float = math.inf
    ) -> Any:
        message = Call(self._links.new_id(), method, [*arguments], self._ticket)
        try:
            return await self._caller.ask(message, deadline)
        except NotSent:
            raise DatabaseUnavailable(
                f"the lock is lost that {method} needs", hint="Try again."
            ) from None


class Links:
    """The links of process `process`; `run` serves them."""

    def __init__(self, process: int, ways: Ways, service: Service, report: Report) -> None:
        self._process = process
        self._ways = ways
        self._service = service
        self._report = report
        self._ids = count()
        self._peers: dict[int, _Peer] = {}
        self._patience = math.inf
        self._moves_waiting = 0
        self._nursery: trio.Nursery | None = None  # while it runs
        self._has_ended = False

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        try:
            async with trio.open_nursery() as self._nursery:
                for peer in self._peers.values():
                    self._nursery.start_soon(peer.run)
                self._nursery.start_soon(self._ways.receive, self._arrived)
                task_status.started()
        finally:
            self._nursery, self._has_ended = None, True

    def drain(self) -> None:
        """All processes end: from now on nobody waits for one that is away."""
        self._patience = LINK_DRAIN_SECONDS
        for peer in self._peers.values():
            peer.patience = self._patience
            peer.changed.unpark_all()

    def cut(self, process: int) -> None:
        """End the connection to a process that will not answer; the next call makes another.

        Calls under way end with OutcomeUnknown, streams and relayed connections end.
        """
        peer = self._peers.get(process)
        if peer is not None:
            peer.connection.cancel()

    def _peer(self, process: int) -> _Peer:
        peer = self._peers.get(process)
        if peer is None:
            peer = self._peers[process] = _Peer(process, self._ways, self._report, self._patience)
            if self._nursery is not None:
                self._nursery.start_soon(peer.run)
            elif self._has_ended:
                peer.stop()
        return peer

    def new_id(self) -> int:
        return next(self._ids)

    async def call(
        self,
        process: int,
        method: str,
        arguments: Sequence[Any] = (),
        *,
        deadline: float = math.inf,
        sent_by: float = math.inf,
    ) -> Any:
        """Call a handler of another process and return its plain value; tuples are lists then.

        What is not sent until `sent_by` fails with DatabaseUnavailable; what is may take longer.
        """
        message = Call(self.new_id(), method, [*arguments], None)
        while True:
            caller = await self._peer(process).caller(min(deadline, sent_by))
            try:
                return await caller.ask(message, deadline, sent_by)
            except NotSent:
                pass  # the next connection, or the deadline

    @asynccontextmanager
    async def lock(
        self, process: int, name: str, *, deadline: float = math.inf
    ) -> AsyncIterator[HeldLock]:
        """Hold a lock of another process. To wait for it may take until the deadline."""
        ticket = self.new_id()
        while True:
            caller = await self._peer(process).caller(deadline)
            try:
                await caller.ask(Lock(ticket, name), deadline)
                break
            except (NotSent, OutcomeUnknown):  # a claim ends with its connection: queue up again
                if trio.current_time() >= deadline:
                    raise DatabaseUnavailable(
                        f"the lock {name} of {self._ways.noun} {process} is busy", hint="Try again."
                    ) from None
        try:
            yield HeldLock(self, caller, ticket)
        finally:
            caller.leave(ticket)

    @asynccontextmanager
    async def follow(
        self,
        process: int,
        name: str,
        arguments: Sequence[Any] = (),
        *,
        deadline: float = math.inf,
    ) -> AsyncIterator[Stream]:
        """Follow what an async generator of another process yields; `Stream.send` is the way back.

        The deadline is for the beginning. If the link breaks the stream ends with
        DatabaseUnavailable, and whoever follows begins anew from what it has.
        """
        message = Follow(self.new_id(), name, [*arguments])
        caller, stream = await self._followed(process, message, deadline)
        try:
            yield stream
        finally:
            caller.leave(message.id)

    async def _followed(
        self, process: int, message: Follow, deadline: float
    ) -> tuple[Caller, Stream]:
        while True:
            caller = await self._peer(process).caller(deadline)
            try:
                return caller, await caller.follow(message)
            except NotSent:
                pass

    def send_connection(
        self,
        process: int,
        meta: Any,
        data: bytes,
        moved: socket.socket,
        *,
        deadline: float,
        failed: Failed,
    ) -> None:
        """Give a client's connection, with what was read from it, to another process.

        This one's copy is closed once it is sent, or no more bytes are to be relayed.
        """
        if self._moves_waiting >= LINK_MOVES_MAX or self._nursery is None:
            failed(moved, meta, data)
            return
        self._moves_waiting += 1
        move = self._move if self._ways.carrier is None else self._carry
        self._nursery.start_soon(move, process, Move(meta, data), moved, deadline, failed)

    async def _move(
        self, process: int, message: Move, moved: socket.socket, deadline: float, failed: Failed
    ) -> None:
        was_sent = False
        try:
            while not was_sent:
                caller = await self._peer(process).caller(deadline)
                was_sent = await caller.move(message, moved.fileno(), deadline)
        except QserverError:
            pass  # `failed` tells the client
        finally:
            self._moves_waiting -= 1
            if was_sent:
                moved.close()
            else:
                failed(moved, message.meta, message.data)

    async def _carry(
        self, process: int, message: Move, moved: socket.socket, deadline: float, failed: Failed
    ) -> None:
        carrier = self._ways.carrier
        assert carrier is not None
        found: tuple[Caller, socket.socket] | None = None
        try:
            found = await self._carried(carrier, process, message, deadline)
        except QserverError:
            pass  # `failed` tells the client
        finally:
            self._moves_waiting -= 1
            if found is None:
                failed(moved, message.meta, message.data)
        if found is not None:
            caller, beyond = found
            try:
                with moved, beyond, caller.lasting():
                    await carrier.relay(moved, beyond)
            except Exception:
                self._report(f"a relayed connection is cut off:\n{traceback.format_exc()}")

    async def _carried(
        self, carrier: Carrier, process: int, message: Move, deadline: float
    ) -> tuple[Caller, socket.socket]:
        while True:
            caller = await self._peer(process).caller(deadline)  # one that is away is waited for
            try:
                return caller, await carrier.carry(process, message, deadline)
            except OSError:
                await trio.sleep(LINK_RETRY_SECONDS)

    def _arrived(self, arrival: Arrival) -> None:
        assert self._nursery is not None, "it runs"
        if isinstance(arrival, MovedHere):
            self._nursery.start_soon(welcome, self._service, *arrival, self._report)
        else:
            self._nursery.start_soon(self._serve, *arrival, self._nursery)

    async def _serve(self, name: str, accepted: socket.socket, moves: trio.Nursery) -> None:
        with accepted:
            connection = Connection(accepted, name, self._report, self._ways.is_watched)
            served = Served(connection, self._process, self._service, moves, self._report)
            try:
                await served.run()
            except Exception:
                self._report(f"{name} is cut off:\n{traceback.format_exc()}")


class _Peer:
    """The link to one process: a connection, and after it has broken the next one.

    The first is made when it is asked for.
    """

    def __init__(self, process: int, ways: Ways, report: Report, patience: float) -> None:
        self._process = process
        self._name = f"{ways.noun} {process}"
        self._ways = ways
        self._report = report
        self._caller: Caller | None = None
        self.connection = trio.CancelScope()
        """Ends the present one."""
        self._wanted = trio.Event()
        self.changed = trio.lowlevel.ParkingLot()
        self._has_stopped = False
        self.patience = patience
        self._trouble: str | None = None
        self._pause = LINK_RETRY_SECONDS

    async def run(self) -> None:
        try:
            await self._wanted.wait()
            while True:
                await self._connect()
                await trio.sleep(self._pause)
                self._pause = min(2 * self._pause, self._ways.retry_seconds_max)
        finally:
            self.stop()

    def stop(self) -> None:
        self._has_stopped = True
        self.changed.unpark_all()

    async def caller(self, deadline: float) -> Caller:
        """Return the way to call it, once it answers; or raise DatabaseUnavailable."""
        self._wanted.set()
        waiting = trio.CancelScope()
        while self._caller is None and not (self._has_stopped or waiting.cancelled_caught):
            waiting = trio.CancelScope(deadline=min(deadline, trio.current_time() + self.patience))
            with waiting:
                await self.changed.park()
        if self._caller is None or trio.current_time() >= deadline:
            raise unavailable(self._name, self._trouble)
        return self._caller

    async def _connect(self) -> None:
        """One connection, from its beginning to its end."""
        try:
            connected = await self._ways.knock(self._process)
        except OSError as error:  # also if too many wait there
            self._trouble = error.strerror
            return
        with connected:
            watched = self._ways.is_watched
            connection = Connection(connected, self._name, self._report, watched)
            caller = Caller(connection, self._process, self._name, self._greeted)
            try:
                with trio.CancelScope() as self.connection:
                    await connection.run(caller.receive)
            finally:
                self._caller = None
                caller.end()

    def _greeted(self, caller: Caller) -> None:
        self._caller = caller
        self._trouble = None
        self._pause = LINK_RETRY_SECONDS
        self.changed.unpark_all()
