"""Yielding: long work lets short requests run, and takes turns with other long work.

    pass of the loop:   1         2         3         4         5         6

    a: statement 1      step ──┐                                       ┌── step
    a: statement 2             │                    ┌── step ──┐       │
    b: statement 3             └ passes ── step ────┘          └ step ─┘
    point queries       all       all       all       all       all       all

A step of long work takes a millisecond or two, up to a tenth of a second if a single function call
takes that long. If all long work took a step in each pass of the loop, a point query would wait for
their sum. So long work queues: at most one step in a pass.

A commit goes through several passes: its request is read, the coordinator decides, the log has it,
the answer is sent. With a step in each it would wait for all of them. So between two steps come
passes without one, until nothing else has run in such a pass: a request that has begun waits for
one step, or two if the log is slow. An empty pass costs some microseconds. With much short work
there is always something else, and then long work waits no longer than `PATIENCE_SECONDS`.

Turns go round by owner (`Turns`, an organization's), not by statement: 200 statements of one owner
get as much time together as one statement of another. This is start-time fair queueing (Goyal, Vin
and Cheng). Each owner has a tag that grows with the time that its steps took, and the one with the
least tag is next; one that was idle begins at the present tag, so nobody saves up turns. Among the
statements of an owner the one that has waited longest is next. How long a step takes is known only
when it has ended: whoever was called for the next one looks then whether somebody else is more due.
"""

from __future__ import annotations

from collections import deque
from contextvars import ContextVar
from operator import attrgetter
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

STEP_SECONDS_LEAST: Final = 0.0001
"""A step counts as so much time at least. Where a clock stands still, turns go by steps."""

TIME_SLICE_SECONDS: Final = 0.001
"""How long a `TimeSlice` lasts; one part of the work may exceed it."""


class Turns:
    """An owner's place in the round of turns, and its tasks that wait for a step."""

    __slots__ = ("__weakref__", "_tag", "seconds", "steps", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[trio.lowlevel.Task] = deque()
        self.seconds = 0.0
        """What its steps took."""
        self.steps = 0
        self._tag = 0.0

    def begin(self, now: float) -> None:
        """Enter the round."""
        self._tag = max(self._tag, now)

    def charge(self, seconds: float) -> None:
        self.steps += 1
        self.seconds += seconds
        self._tag += max(seconds, STEP_SECONDS_LEAST)

    @property
    def tag(self) -> float:
        return self._tag

    def __repr__(self) -> str:
        return f"{len(self.waiting)} wait for a step, {self.steps} steps in {self.seconds:.3f} s"


OWNER: Final = ContextVar[Turns | None]("owner", default=None)
"""Whose work a task does; None: the service's own."""


class _Line:
    """The tasks that wait for a step. `is_called`: one of them is next.

    `began` and `ended` are the times of the last step.
    """

    def __init__(self) -> None:
        self.is_called = False
        self.began = self.ended = float("-inf")
        self._own = Turns()
        self._running: Turns | None = None
        """Whose step was the last one, until it is known how long that took."""
        self._tag = 0.0
        """The tag of the owner that had the last step."""
        self._queued: dict[Turns, None] = {}
        """The owners whose tasks wait, in the order in which they came."""

    async def wait(self) -> None:
        owner = OWNER.get() or self._own
        self.ended = trio.current_time()
        self._charge()
        if owner not in self._queued:
            owner.begin(self._tag)
        if not self.is_called:
            self.is_called = True
            await self._pass_by()
        else:
            await self._stand(owner)
            self._charge()
            while (due := self._most_due(owner)) is not owner:
                self._call(due)
                await self._stand(owner, first=True)
                self._charge()
        await self._let_others_finish()
        self._running, self._tag, self.began = owner, owner.tag, trio.current_time()
        self._call_next()

    def _charge(self) -> None:
        """Charge the last step to its owner, now that it has ended."""
        if self._running is not None:
            self._running.charge(trio.current_time() - self.began)
            self._running = None

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

    async def _stand(self, owner: Turns, *, first: bool = False) -> None:
        task, waiting = trio.lowlevel.current_task(), owner.waiting
        self._queued[owner] = None
        if first:
            waiting.appendleft(task)
        else:
            waiting.append(task)

        def leave(_: object) -> trio.lowlevel.Abort:
            waiting.remove(task)
            if not waiting:
                del self._queued[owner]
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(leave)

    def _most_due(self, beside: Turns) -> Turns:
        """Return the owner with the least tag: of those that wait, and one that is called."""
        due, least = beside, beside.tag
        for each in self._queued:
            if each.tag < least:
                due, least = each, each.tag
        return due

    def _call_next(self) -> None:
        if self._queued:
            self._call(min(self._queued, key=_tag_of))
        else:
            self.is_called = False

    def _call(self, owner: Turns) -> None:
        waiting = owner.waiting
        task = waiting.popleft()
        if not waiting:
            del self._queued[owner]
        trio.lowlevel.reschedule(task)


_tag_of: Final = attrgetter("tag")


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
