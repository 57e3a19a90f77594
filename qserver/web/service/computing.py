"""Runs long computations in threads, so that the event loop keeps serving.

Python runs one thread at a time, but switches every few milliseconds. So a point query beside a
statement that takes seconds to plan waits some milliseconds, not seconds. A thread cannot be
cancelled from outside: on cancellation `compute` sets a flag, and the work polls it (`check`) and
raises `Abandoned`. Until then the thread counts against the limit.

An organization has one thread at a time, and one place in the line for the next: of two with a
hundred such statements each, they take turns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import trio

from qserver.engine.turns import OWNER, Turns
from qserver.engine.world import Check, Compute
from qserver.limits import PLANNING_THREADS_MAX


class Abandoned(Exception):  # internal: ends an abandoned thread
    """The caller no longer waits for the computation."""


def compute_in_threads(most: int = PLANNING_THREADS_MAX) -> Compute:
    """Return a function that computes in at most `most` threads; later calls wait."""
    limiter = trio.CapacityLimiter(most)
    lines: WeakKeyDictionary[Turns, trio.Lock] = WeakKeyDictionary()
    own = Turns()

    async def compute(work: Callable[[Check], Any]) -> Any:
        waited_for = True

        def check() -> None:
            if not waited_for:
                raise Abandoned

        async with lines.setdefault(OWNER.get() or own, trio.Lock()):
            try:
                return await trio.to_thread.run_sync(
                    work, check, abandon_on_cancel=True, limiter=limiter
                )
            finally:
                waited_for = False

    return compute
