"""Yielding: long work lets short requests run, and takes turns with other long work.

    pass of the loop:   1         2         3         4         5         6

    statement a         step ──┐                                       ┌── step
    statement b                └ passes ── step ──┐                    │
    statement c                                   └ passes ── step ────┘
    point queries       all       all       all       all       all       all

A step of long work takes a millisecond or two, up to a tenth of a second if a single function call
takes that long. If all long work took a step in each pass of the loop, a point query would wait for
their sum. So long work queues: at most one step in a pass, of the work that has waited longest.

A commit goes through several passes: its request is read, the coordinator decides, the log has it,
the answer is sent. With a step in each it would wait for all of them. So between two steps come
passes without one, until nothing else has run in such a pass: a request that has begun waits for
one step, or two if the log is slow. An empty pass costs some microseconds. With much short work
there is always something else, and then long work waits no longer than `PATIENCE_SECONDS`.
"""

from __future__ import annotations

from collections import deque
from typing import Final

import trio

STEP_SECONDS_LONG: Final = 0.01
"""After a longer step always comes a pass without one: requests have arrived meanwhile."""

PASSES_MAX: Final = 4
"""Passes between two steps: as many as a commit takes."""

PASS_SECONDS_QUIET: Final = 0.00005
"""In a shorter pass nothing else has run."""

PATIENCE_SECONDS: Final = 0.002
"""After so long, long work takes its step, whatever else there is to do."""

TIME_SLICE_SECONDS: Final = 0.001
"""How long a `TimeSlice` lasts; one part of the work may exceed it."""


class _Line:
    """The queue of tasks that wait for a step. `is_called`: one of them is next.

    `began` and `ended` are the times of the last step.
    """

    def __init__(self) -> None:
        self.is_called = False
        self.began = self.ended = float("-inf")
        self._waiting: deque[trio.lowlevel.Task] = deque()

    async def wait(self) -> None:
        self.ended = trio.current_time()
        if not self.is_called:
            self.is_called = True
            await self._pass_by()
        else:
            await self._stand()
        await self._let_others_finish()
        self.began = trio.current_time()
        self._call_next()

    async def _let_others_finish(self) -> None:
        """Let passes go by, until one in which nothing else has run."""
        now, end = trio.current_time(), self.ended + PATIENCE_SECONDS
        if now > end and self.ended - self.began <= STEP_SECONDS_LONG:
            return
        for _ in range(PASSES_MAX):
            before = now
            await self._pass_by()
            now = trio.current_time()
            if now - before < PASS_SECONDS_QUIET or now > end:
                return

    async def _pass_by(self) -> None:
        try:
            await trio.lowlevel.checkpoint()
        except BaseException:
            self._call_next()
            raise

    async def _stand(self) -> None:
        task = trio.lowlevel.current_task()
        self._waiting.append(task)

        def leave(_: object) -> trio.lowlevel.Abort:
            self._waiting.remove(task)
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(leave)

    def _call_next(self) -> None:
        if self._waiting:
            trio.lowlevel.reschedule(self._waiting.popleft())
        else:
            self.is_called = False


class TimeSlice:
    """Lets work that has many small parts yield about once a millisecond."""

    def __init__(self) -> None:
        self._began = trio.current_time()

    async def yield_if_used_up(self) -> None:
        if trio.current_time() - self._began >= TIME_SLICE_SECONDS:
            await yield_to_others()
            self._began = trio.current_time()


_line: Final = trio.lowlevel.RunVar[_Line]("line")


async def yield_to_others() -> None:
    """Let other tasks run before the next step of long work."""
    try:
        line = _line.get()
    except LookupError:
        line = _Line()
        _line.set(line)
    await line.wait()
