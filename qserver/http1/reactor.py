"""One wait for all connections that wait for a request.

Trio's own wait costs a kernel registration and two task switches per request: a third of a small
request's total cost. The reactor registers each socket once with epoll, and one task waits for the
epoll file. The reactor calls a readable connection directly; the connection answers in that call,
and wakes its task only if it cannot.

    sockets ──► epoll (edge-triggered) ──► Trio waits for it ──► readable() ─┬─ False: waits on
                                                                             └─ True: task runs

An edge-triggered epoll reports each arrival once. So the reactor marks a connection that may have
unread bytes, and checks a marked connection before it waits again:

    bytes came while it did not wait here       its task reads them itself
    a receive was full                          epoll has already reported the rest
    the client has ended its side, or left      the end lies behind all sent bytes: this mark
                                                stays until the connection is closed

An exception in `readable` is raised where its connection waits; other connections go on.

Of several owners, each has some of its connections called before other tasks run (`turns`).

A client that is alone is waited for without Trio for a moment (`lone_client`).

Connections that are called one after the other are a batch. The application may leave work until
its end, to do it once for all of their requests. While there is such work, connections that became
readable meanwhile join the batch: one round and one sync serve them, too.
"""

from __future__ import annotations

import select
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, Protocol

import trio

from qserver.http1.lone_client import LoneClientWait
from qserver.http1.turns import NoTurns, Turns

EVENTS_AT_ONCE: Final = 64
"""Connections called before other tasks run."""

ONLY_DATA: Final = 1
"""EPOLLIN, whose name not every system has; any other bit means an end of input."""

Readable = Callable[[], bool]
"""Called when bytes may have arrived. True: wake the task."""


class BatchPort(Protocol):
    """Requests that arrived together."""

    def open(self, requests: int) -> None:
        """Called before the first of them is handled, and before more of them are."""

    @property
    def has_work(self) -> bool:
        """Whether work was left until the end."""

    def end(self) -> None:
        """Called after the last of them has been handled; must not raise."""


class NoBatch:
    """For an application that leaves no work until the end."""

    has_work = False

    def open(self, requests: int) -> None:
        pass

    def end(self) -> None:
        pass


def _keep(ready: dict[int, int], arrived: Iterable[tuple[int, int]]) -> None:
    for descriptor, events in arrived:
        ready[descriptor] = ready.get(descriptor, 0) | events


class Reactor:
    def __init__(self, batch: BatchPort, turns: Turns | None = None) -> None:
        self._batch = batch
        self._turns = turns or NoTurns()
        self._ready: dict[int, int] = {}
        """Events of connections that were not called yet."""
        self._owners: dict[int, object] = {}
        """Whose the last request of a connection was; None: a stranger's."""
        self._epoll = select.epoll()
        self._lone: int | None = None
        """The connection that was readable the last time, if it was one alone."""
        self._waiting: dict[int, tuple[Readable, trio.lowlevel.Task]] = {}
        self._known: set[int] = set()
        self._marked: set[int] = set()
        self._ending: set[int] = set()
        self._failures: dict[int, Exception] = {}
        """Exceptions for tasks that have not resumed yet."""

    @staticmethod
    def available() -> bool:
        """False on systems without epoll, where connections wait through Trio."""
        return hasattr(select, "epoll")

    async def run(self) -> None:
        """Call readable connections until cancelled."""
        lone_client = LoneClientWait(self._epoll.fileno())
        try:
            while True:
                if self._ready:
                    await trio.lowlevel.checkpoint()
                else:
                    await trio.lowlevel.wait_readable(self._epoll.fileno())
                if self._call_ready():
                    lone_client.serve(self._call_ready)
        finally:
            lone_client.close()
            trio.lowlevel.notify_closing(self._epoll.fileno())
            self._epoll.close()

    def _call_ready(self) -> bool:
        """Call all connections that are readable; of several owners, as many as their turns allow.

        An event is told once, so those that are not called are kept. True: it was a lone client's,
        the same as the last time. While others send, too, it is better to wait for several of them.
        """
        ready, called = self._ready, 0
        arrived = self._epoll.poll(0, EVENTS_AT_ONCE)
        if ready:
            _keep(ready, arrived)
            arrived = list(ready.items())
            ready.clear()
        if self._turns.is_contended:
            _keep(ready, arrived)
        else:
            called = self._call_alone(arrived)
        if ready:
            self._call_in_turns()
            return False
        lone, self._lone = self._lone, arrived[0][0] if called == 1 else None
        return lone is not None and lone == self._lone

    def _call_alone(self, arrived: list[tuple[int, int]]) -> int:
        """Call connections until one is of a second owner; keep the others. Return how many came.

        While they leave work until the end of the batch, those that become readable meanwhile join
        it. A stranger among them counts as of the owner before it, until it is called again.
        """
        turns, owners, call, batch = self._turns, self._owners, self._call, self._batch
        only_owner, owner_of_call = turns.only_owner(), turns.owner
        turns.set_owner(None)
        room, came = EVENTS_AT_ONCE, 0
        while arrived:
            batch.open(len(arrived))
            room -= len(arrived)
            came += len(arrived)
            rest = iter(arrived)
            for descriptor, events in rest:
                call(descriptor, events)
                owners[descriptor] = owner = owner_of_call()
                if owner is not only_owner and turns.meets(owner):
                    _keep(self._ready, rest)
                    room = 0
            arrived = self._epoll.poll(0, room) if room > 0 and batch.has_work else []
        batch.end()
        return came

    def _call_in_turns(self) -> None:
        """Call some connections of each owner, each with all the work that it makes."""
        ready, turns = self._ready, self._turns
        by_owner: dict[object, deque[int]] = {}
        for descriptor in ready:
            owner = self._owners.get(descriptor) or turns.strangers
            by_owner.setdefault(owner, deque()).append(descriptor)
        while by_owner and (owner := turns.next_of(by_owner)) is not None:
            descriptor = by_owner[owner].popleft()
            if not by_owner[owner]:
                del by_owner[owner]
            if descriptor in ready:
                turns.begin(owner)
                self._batch.open(1)
                self._call(descriptor, ready.pop(descriptor))
                self._batch.end()
                self._owners[descriptor] = turns.end()

    def _call(self, descriptor: int, events: int) -> None:
        ends = events != ONLY_DATA
        if ends:
            self._ending.add(descriptor)
        waiting = self._waiting.get(descriptor)
        if waiting is None:
            self._marked.add(descriptor)
            return
        readable, task = waiting
        try:
            if not (readable() or ends or descriptor in self._marked):
                return
        except Exception as error:
            self._failures[descriptor] = error
        del self._waiting[descriptor]
        trio.lowlevel.reschedule(task)

    async def wait(self, descriptor: int, readable: Readable) -> None:
        """Call `readable` on each arrival, and return when it returns True.

        May return earlier; call it again then.
        """
        self.watch(descriptor)
        if self._has_more(descriptor):
            self._marked.discard(descriptor)
            if readable() or self._has_more(descriptor):
                await trio.lowlevel.checkpoint()
                return
        self._waiting[descriptor] = (readable, trio.lowlevel.current_task())

        def abort(_: object) -> trio.lowlevel.Abort:
            del self._waiting[descriptor]
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)
        if descriptor in self._failures:
            raise self._failures.pop(descriptor)

    def watch(self, descriptor: int) -> None:
        """Begin to watch a socket: `wait` does, and what is to notice its end before."""
        if descriptor not in self._known and not self._epoll.closed:
            self._epoll.register(descriptor, select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET)
            self._known.add(descriptor)

    def wake(self, descriptor: int) -> None:
        """Resume a connection's task, if it waits."""
        waiting = self._waiting.pop(descriptor, None)
        if waiting is not None:
            trio.lowlevel.reschedule(waiting[1])

    def _has_more(self, descriptor: int) -> bool:
        return descriptor in self._marked or descriptor in self._ending

    def has_ended(self, descriptor: int) -> bool:
        """Tell whether the client has ended its side, or left."""
        return descriptor in self._ending

    def mark(self, descriptor: int) -> None:
        """Note that the connection may have unread bytes."""
        self._marked.add(descriptor)

    def forget(self, descriptor: int) -> None:
        """Forget a socket before it is closed or given away.

        Closing does not remove it from epoll while another process has it open.
        """
        if descriptor in self._known and not self._epoll.closed:
            self._epoll.unregister(descriptor)
        self._ready.pop(descriptor, None)
        self._owners.pop(descriptor, None)
        self._known.discard(descriptor)
        self._marked.discard(descriptor)
        self._ending.discard(descriptor)

    def __repr__(self) -> str:
        return f"{len(self._waiting)} of {len(self._known)} connections wait for a request"
