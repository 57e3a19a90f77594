"""Long computations in threads, so that the loop goes on serving others.

Python runs one thread at a time, but lets another have its turn every few milliseconds. So a
point query beside a statement that takes seconds to plan waits some milliseconds, not seconds.
A thread cannot be ended from outside: who does not wait any more says so, and what is computed
looks now and then (`check`) and ends itself. Until then it counts among the few there may be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio

from qserver.engine.world import Check, Compute
from qserver.limits import PLANNING_THREADS_MAX


class Abandoned(Exception):  # ends a thread that nobody waits for; nobody sees it
    """Nobody waits any more for what is being computed."""


def compute_in_threads(most: int = PLANNING_THREADS_MAX) -> Compute:
    """A way to compute in so many threads at once; whoever comes later waits for one to end."""
    limiter = trio.CapacityLimiter(most)

    async def compute(work: Callable[[Check], Any]) -> Any:
        waited_for = True

        def check() -> None:
            if not waited_for:
                raise Abandoned

        try:
            return await trio.to_thread.run_sync(
                work, check, abandon_on_cancel=True, limiter=limiter
            )
        finally:
            waited_for = False

    return compute
