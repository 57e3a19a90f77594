"""One wait for all connections that wait for a request.

Trio's own wait costs a registration with the kernel and two switches of tasks for each request,
which is a third of what a small one costs in all. Here every socket is registered once, the set of
them is a file that one task waits for, and a connection that has become readable is called where it
is: it may answer on the spot, and only if it cannot is its task woken.

    sockets ──► epoll (edge-triggered) ──► Trio waits for it ──► readable() ─┬─ False: waits on
                                                                             └─ True: task goes on

Edge-triggered means: told once about each arrival. So a connection is marked whenever there may be
more than was read, and a marked one is looked at before it waits again:

    something came while it did not wait here    its task reads by itself then
    a receive was full                           the rest has been told about already
    the client has ended its side, or left       which lies behind all that it has sent: this mark
                                                 stays until the connection is closed

Whatever goes wrong in `readable` is raised where its connection waits: all others go on.
"""

from __future__ import annotations

import select
from collections.abc import Callable
from typing import Final

import trio

EVENTS_AT_ONCE: Final = 64
"""Connections that are called before everybody else has a turn."""

ONLY_DATA: Final = 1
"""EPOLLIN, which is not there on every system; any other bit tells of an end."""

Readable = Callable[[], bool]
"""Called when something may have arrived. True: it is enough, the task goes on."""


class Reactor:
    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._waiting: dict[int, tuple[Readable, trio.lowlevel.Task]] = {}
        self._known: set[int] = set()
        self._marked: set[int] = set()
        self._ending: set[int] = set()
        self._failures: dict[int, Exception] = {}
        """Of connections whose tasks have not gone on yet."""

    @staticmethod
    def available() -> bool:
        """Not everywhere: without it, connections wait as Trio lets them."""
        return hasattr(select, "epoll")

    async def run(self) -> None:
        """Call connections until cancelled."""
        try:
            while True:
                await trio.lowlevel.wait_readable(self._epoll.fileno())
                for descriptor, events in self._epoll.poll(0, EVENTS_AT_ONCE):
                    self._call(descriptor, events)
        finally:
            trio.lowlevel.notify_closing(self._epoll.fileno())
            self._epoll.close()

    def _call(self, descriptor: int, events: int) -> None:
        if events != ONLY_DATA:
            self._ending.add(descriptor)
        waiting = self._waiting.get(descriptor)
        if waiting is None:
            self._marked.add(descriptor)
            return
        readable, task = waiting
        try:
            if not readable() and descriptor not in self._marked and events == ONLY_DATA:
                return
        except Exception as error:
            self._failures[descriptor] = error
        del self._waiting[descriptor]
        trio.lowlevel.reschedule(task)

    async def wait(self, descriptor: int, readable: Readable) -> None:
        """Return when `readable`, called whenever something arrives, has said that it is enough.

        It may return before that, and should be called again then.
        """
        if descriptor not in self._known and not self._epoll.closed:
            self._epoll.register(descriptor, select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET)
            self._known.add(descriptor)
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

    def wake(self, descriptor: int) -> None:
        """Let a connection's task go on, if it waits."""
        waiting = self._waiting.pop(descriptor, None)
        if waiting is not None:
            trio.lowlevel.reschedule(waiting[1])

    def _has_more(self, descriptor: int) -> bool:
        return descriptor in self._marked or descriptor in self._ending

    def mark(self, descriptor: int) -> None:
        """There may be more to read than was read."""
        self._marked.add(descriptor)

    def forget(self, descriptor: int) -> None:
        """The socket is about to be closed, which takes it out of the set by itself."""
        self._known.discard(descriptor)
        self._marked.discard(descriptor)
        self._ending.discard(descriptor)

    def __repr__(self) -> str:
        return f"{len(self._waiting)} of {len(self._known)} connections wait for a request"
