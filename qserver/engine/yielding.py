"""Yielding: long work lets short requests run, and takes turns with other long work.

    pass of the loop:   1         2         3         4

    statement a         step ──┐             ┌── step
    statement b                └── step ──┐  │
    statement c                           └ step ...
    point queries       all       all       all       all

A step of long work takes a millisecond or two, up to a tenth of a second if a single function call
takes that long. If all long work took a step in each pass of the loop, a point query would wait for
their sum. So long work queues: each pass runs one step, of the work that has waited longest. After
a long step comes a pass without one, so that requests which arrived meanwhile wait for one only.
"""

from __future__ import annotations

from collections import deque
from typing import Final

import trio

STEP_SECONDS_LONG: Final = 0.01
"""After a longer step comes a pass of the loop without one."""

TIME_SLICE_SECONDS: Final = 0.001
"""How long a `TimeSlice` lasts; one part of the work may exceed it."""


class _Line:
    """The queue of tasks that wait for a step. `is_called`: a task takes one in the next pass."""

    def __init__(self) -> None:
        self.is_called = False
        self.began = float("-inf")
        self._waiting: deque[trio.lowlevel.Task] = deque()

    async def wait(self) -> None:
        if not self.is_called:
            self.is_called = True
            await self._pass_by()
        else:
            await self._stand()
        if trio.current_time() - self.began > STEP_SECONDS_LONG:
            await self._pass_by()
        self.began = trio.current_time()
        self._call_next()

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
