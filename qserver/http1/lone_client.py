"""Waits for the next request of a lone client without a pass of Trio's loop.

A client that is alone sends its next request some microseconds after an answer. To wait for that in
Trio costs two system calls more, and a fifth of the time of a point read. So whoever has served it
waits a moment longer, as long as Trio has nothing to do:

    Trio's epoll ──┐
                   ├──► both ──► ours: serve it · Trio's, or neither: go back to Trio
    our epoll ─────┘

Trio tells nobody of its epoll and of the tasks that are to run, so this reads two private names. A
Trio without them, or with another way to wait, is waited for as usual.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Sized
from time import monotonic
from typing import Final

from trio._core import _run as private

WAIT_SECONDS: Final = 0.001
"""No longer than a step of long work. Deadlines come so much later at most, and a millisecond that
the system rounds up to."""


class LoneClientWait:
    """Made in the task that waits so; `close` ends it."""

    def __init__(self, ours: int) -> None:
        self._ours = ours
        self._both: select.epoll | None = None
        self._runnable: Sized = ()
        runner = getattr(getattr(private, "GLOBAL_RUN_CONTEXT", None), "runner", None)
        trios = getattr(getattr(runner, "io_manager", None), "_epoll", None)
        runnable = getattr(runner, "runq", None)
        if trios is not None and runnable is not None:
            self._runnable = runnable
            self._both = select.epoll()
            self._both.register(ours, select.EPOLLIN)
            self._both.register(trios.fileno(), select.EPOLLIN)

    @property
    def is_possible(self) -> bool:
        return self._both is not None

    def serve(self, serve_next: Callable[[], bool]) -> None:
        """Call `serve_next` whenever our epoll has something, while it returns True."""
        both = self._both
        if both is None:
            return
        ours, end = self._ours, monotonic() + WAIT_SECONDS
        while not self._runnable and (seconds := end - monotonic()) > 0.0:
            arrived = both.poll(seconds)
            if len(arrived) != 1 or arrived[0][0] != ours or not serve_next():
                return

    def close(self) -> None:
        if self._both is not None:
            self._both.close()

    def __repr__(self) -> str:
        return "waits for a lone client" + ("" if self.is_possible else ", not with this Trio")
