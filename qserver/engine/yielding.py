"""Yielding: how long work lets others run, and other long work too.

    pass of the loop:   1         2         3         4
    statement a         step ──┐             ┌── step
    statement b                └── step ──┐  │
    statement c                           └ step ...
    point queries       all       all       all       all

A step of long work takes a millisecond or two, and up to a tenth of a second where one call of a
function takes that long. If all long work took its step in each pass of the loop, a point query
would wait for the sum of them. So there is a line: one step in each pass, the one that has waited
for longest. A step that took long is followed by a pass without any, because what arrived
meanwhile would else wait for two of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from typing import Final, TypeVar

import trio

Made = TypeVar("Made")

STEP_SECONDS_LONG: Final = 0.01
"""After a longer step comes a pass of the loop without one."""


class _Line:
    """Who waits for a step. `is_called`: somebody will take one in the next pass."""

    def __init__(self) -> None:
        self.is_called = False
        self.began = float("-inf")
        self._waiting: deque[trio.lowlevel.Task] = deque()

    async def wait(self) -> None:
        """Until it is one's turn."""
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


_line: Final = trio.lowlevel.RunVar[_Line]("line")


async def yield_to_others() -> None:
    """Let others run, before the next step of long work."""
    try:
        line = _line.get()
    except LookupError:
        line = _Line()
        _line.set(line)
    await line.wait()


async def in_steps(steps: Generator[None, None, Made]) -> Made:
    """The result of steps that an actor takes, between which others run. It does not stand in the
    line: all who commit wait for it."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            made: Made = end.value
            return made
        await trio.lowlevel.checkpoint()
