"""Turns: whose step is next.

    pass of the loop:   1         2         3         4         5         6

    a: statement 1      step ──┐                                       ┌── step
    a: statement 2             │                    ┌── step ──┐       │
    b: statement 3             └ passes ── step ────┘          └ step ─┘
    point queries       all       all       all       all       all       all

A step of long work takes a millisecond, up to a tenth of a second if a single function call takes
that long. If all long work took a step in each pass of the loop, a point query would wait for
their sum. So long work queues: at most one step in a pass.

A commit goes through several passes: its request is read, the coordinator decides, the log has it,
the answer is sent. With a step in each it would wait for all of them. So between two steps come
passes without one, until nothing else has run in such a pass: a request that has begun waits for
one step, or two if the log is slow. An empty pass costs some microseconds. With much short work
there is always something else, and then long work waits no longer than `PATIENCE_SECONDS`.

Turns go round by owner (`Turns`, an organization's), not by statement: 200 statements of one owner
get as much time together as one statement of another. This is start-time fair queueing (Goyal, Vin
and Cheng). Each owner has a tag that grows with the time that its steps took, and the one with the
least tag is next. One that was idle begins a little before the present tag (`CREDIT_SECONDS`), and
goes first for so long: who uses less than its share hardly waits, and nobody saves up more. Among
the statements of an owner the one that has waited longest is next. How long a step takes is known
only when it has ended: whoever was called for the next one looks then whether somebody else is more
due.

Short work adds up, too: a hundred readers of a feed that wake at a commit are a long pass. So all
that an owner's task does runs through a `Gate`, which sees where the task waits and where it is
resumed:

    woken      ▁▁▁▁▁▁▁▁▁▁▁▁ twelve tasks of a, and one of b
    pass 1     ▁▁▁ b            some of a, up to `PASS_SECONDS`; b, who has used little, at once
    pass 2     ▁▁▁              the others stand aside, and are called when those have ended
    pass 3     ▁▁▁

That costs a task that stands aside a pass or more. So it is done only while several owners have had
steps lately (`is_contended`), and an owner alone has all its steps at once. Then its long work has
longer steps as well. The service's own work is nobody's: beside it an owner is alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Coroutine, Generator
from contextvars import ContextVar
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar

import trio

from qserver.engine.collector import scan_youngest

T = TypeVar("T")

STEP_SECONDS_LONG: Final = 0.01
"""After a longer step always comes a pass without one: requests have arrived meanwhile."""

PASSES_MAX: Final = 4
"""Passes between two steps: as many as a commit takes."""

PASS_SECONDS_QUIET: Final = 0.00005
"""In a shorter pass nothing else has run."""

PATIENCE_SECONDS: Final = 0.002
"""After so long, long work takes its step, whatever else there is to do."""

STEP_SECONDS_LEAST: Final = 0.00005
"""A step counts as so much time at least. Where a clock stands still, turns go by steps."""

STEP_SECONDS: Final = 0.001
"""So long is a step of long work that is alone."""

PASS_SECONDS: Final = 0.0003
"""So long are the steps of an owner in one pass, about, while others are there."""

CREDIT_SECONDS: Final = 0.03
"""An owner that used less than others may be so far behind: then it goes first."""

STEPS_BETWEEN_SCANS: Final = 16
"""Of long work, while several owners are there."""

LATELY_SECONDS: Final = 1.0
"""Owners are there for so long after a step."""


class Turns:
    """An owner's place in the round of turns, and its tasks that wait for a step."""

    __slots__ = (
        "__weakref__",
        "pass_number",
        "pass_seconds",
        "seconds",
        "short_seconds",
        "steps",
        "tag",
        "waiting",
    )

    def __init__(self) -> None:
        self.waiting: deque[tuple[trio.lowlevel.Task, bool]] = deque()
        """The tasks, and whether the step is one of long work."""
        self.seconds = 0.0
        """What its steps took while others were there, and its long work."""
        self.steps = 0
        self.short_seconds = STEP_SECONDS_LEAST
        """What a step takes that is not one of long work, about."""
        self.pass_number = 0
        self.pass_seconds = 0.0
        """What its steps took in the pass of that number."""
        self.tag = 0.0

    def begin(self, now: float) -> None:
        """Enter the round, with the credit that was saved and no more than one may save."""
        self.tag = max(self.tag, now - CREDIT_SECONDS)

    def charge(self, seconds: float, pass_number: int) -> None:
        """Count a step, in a pass of the loop."""
        self.steps += 1
        self.seconds += seconds
        self.tag += max(seconds, STEP_SECONDS_LEAST)
        if self.pass_number != pass_number:
            self.pass_number, self.pass_seconds = pass_number, 0.0
        self.pass_seconds += seconds

    def learn(self, seconds: float) -> None:
        """Learn from a step how long those of this owner are that are not of long work."""
        self.short_seconds += (seconds - self.short_seconds) / 8

    def __repr__(self) -> str:
        return f"{len(self.waiting)} wait for a step, {self.steps} steps in {self.seconds:.3f} s"


OWNER: Final = ContextVar[Turns | None]("owner", default=None)
"""Whose work a task does; None: the service's own."""


class _Passes(trio.abc.Instrument):
    """Tells a line of each pass of the loop."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def before_io_wait(self, timeout: float) -> None:
        self._line.next_pass()


class Line:
    """The tasks that wait for a step.

    Whenever tasks wait, some were called: they run in the next pass, and call others when their
    steps have ended.
    """

    def __init__(self) -> None:
        self.now = trio.lowlevel.current_clock().current_time
        """Trio's time, in fewer calls than `trio.current_time`."""
        self.is_contended = False
        """Whether several owners had steps lately."""
        self.began = self.ended = float("-inf")
        """The times of the last step of long work."""
        self.tag = 0.0
        """The largest tag of an owner at the begin of a step: the present of the round."""
        self.strangers = Turns()
        """Who has not said yet who it is."""
        self._own = Turns()
        """Of the service's own work, which makes nobody else take turns."""
        self._running: Turns | None = None
        """Whose step was the last one, until it is known how long that took."""
        self._queued: dict[Turns, None] = {}
        """The owners whose tasks wait, in the order in which they came."""
        self._called = 0
        """How many tasks were called whose steps have not ended."""
        self._called_owner: Turns | None = None
        self.last: Turns | None = None
        """Whose the last step was, and whose the last one was that was another's."""
        self._last_pass = self._others_pass = 0
        """In which passes these were."""
        self._contended_until = 0.0
        self._long_steps = 0
        self._passes = _Passes(self)
        self._pass_number = 0
        self._pass_seconds = 0.0
        """What the steps of all owners took in this pass."""

    # --- long work --------------------------------------------------------------------------------

    async def wait(self) -> None:
        """Wait for the next step of long work."""
        gate = Gate.of_this_task()
        owner = OWNER.get() or (self._own if gate is None else self.strangers)
        now = self.now()
        if gate is not None and 0.0 < now - gate.began < self._step_seconds():
            return
        self.ended = now
        if gate is None:
            self._charge()
        else:
            gate.end_step(self, is_long=True)
            if self.is_contended:
                self._scan_now_and_then()
            if gate.is_called:
                gate.is_called = False
                self._uncall()
        if owner not in self._queued:
            owner.begin(self.tag)
        if gate is None:
            await self._turn_of(owner)
            self._running = owner
            self._note_begin(owner)
            self.call_ended()
        else:
            gate.is_open = True
            try:
                await self._turn_of(owner)
            except trio.Cancelled:
                await gate.enter(self, owner)  # what it does now is a step as any other
                raise
            finally:
                gate.is_open = False
            gate.is_called = True
            gate.began = self._note_begin(owner)

    def _scan_now_and_then(self) -> None:
        """Have the collector look at what few statements have made, before it is that of many."""
        self._long_steps += 1
        if self._long_steps % STEPS_BETWEEN_SCANS == 0:
            scan_youngest()

    def _step_seconds(self) -> float:
        """Return how long a step of long work is, at least if its parts are shorter."""
        return PASS_SECONDS if self.is_contended else STEP_SECONDS

    async def _turn_of(self, owner: Turns) -> None:
        """Wait until it is this task's turn, and be one that was called."""
        if self._is_next(owner):
            self._called, self._called_owner = 1, owner
            await self._pass_by()
        else:
            if not self._called:
                self._call_next()
            await self._stand(owner)
            self._charge()
            while (due := self._most_due(owner)) is not owner:
                self._uncall()
                self._call(due)
                await self._stand(owner, first=True)
                self._charge()
        await self._let_others_finish(owner)

    def _note_begin(self, owner: Turns) -> float:
        self.tag = max(self.tag, owner.tag)
        self.began = self.now()
        return self.began

    def _charge(self) -> None:
        """Charge the last step to its owner, now that it has ended."""
        if self._running is not None:
            owner, self._running = self._running, None
            now = self.now()
            if owner is not self._own:
                self._note_owner(owner, now)
            owner.charge(now - self.began, self._pass_number)

    async def _let_others_finish(self, owner: Turns) -> None:
        """Let passes go by, until one in which nothing else has run, or no other owner's step."""
        if self.is_contended:
            for _ in range(PASSES_MAX):
                if not self._minds_others(owner):
                    return
                await self._pass_by()
            return
        now, end = self.now(), self.ended + PATIENCE_SECONDS
        if now > end and self.ended - self.began <= STEP_SECONDS_LONG:
            return
        for _ in range(PASSES_MAX):
            before = now
            await self._pass_by()
            now = self.now()
            if now - before < PASS_SECONDS_QUIET or now > end:
                return

    async def _pass_by(self) -> None:
        try:
            await trio.lowlevel.checkpoint()
        except BaseException:
            self.call_ended()
            raise

    async def _stand(self, owner: Turns, *, first: bool = False) -> None:
        waiting, entry = owner.waiting, (trio.lowlevel.current_task(), True)
        self._queued[owner] = None
        if first:
            waiting.appendleft(entry)
        else:
            waiting.append(entry)

        def leave(_: object) -> trio.lowlevel.Abort:
            waiting.remove(entry)
            if not waiting:
                del self._queued[owner]
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(leave)

    # --- other steps ------------------------------------------------------------------------------

    def admits(self, owner: Turns, *, among_called: bool = True) -> bool:
        """Tell whether a task of an owner may take a step in this pass, beside what was called.

        It may as long as few have, if nobody who waits is more due. Who has used less than others
        need not mind them. `among_called`: it also waits for those of its own that wait.
        """
        if owner not in self._queued:
            owner.begin(self.tag)
        if owner.pass_number == self._pass_number and owner.pass_seconds >= PASS_SECONDS:
            return False
        if owner.tag < self.tag:
            return True
        called = self._called_owner
        if called is not None and called is not owner and called.tag < owner.tag:
            return False
        if self._pass_seconds >= PASS_SECONDS or (among_called and owner.waiting):
            return False
        return self._most_due(owner) is owner

    async def stand_aside(self, owner: Turns) -> None:
        """Wait for a step that is not one of long work. It comes soon, and is not cancelled."""
        if self._is_next(owner):
            self._called, self._called_owner = 1, owner
            await trio.lowlevel.cancel_shielded_checkpoint()
        else:
            if not self._called:
                self._call_next()
            self._queued[owner] = None
            owner.waiting.append((trio.lowlevel.current_task(), False))
            await trio.lowlevel.wait_task_rescheduled(_stays)
        for _ in range(PASSES_MAX):
            await trio.lowlevel.cancel_shielded_checkpoint()
            if not self._minds_others(owner):
                return

    def _minds_others(self, owner: Turns) -> bool:
        """Tell whether another owner has just had a step, who may need some more for a commit.

        Who has used less than others need not mind.
        """
        last = self._last_pass if owner is not self.last else self._others_pass
        return owner.tag >= self.tag and last >= self._pass_number - 1

    def step_ended(
        self, owner: Turns, began: float, *, is_long: bool, turn: Turns | None = None
    ) -> None:
        """Charge a step that is known to have ended just now.

        `turn`: in whose turn it began. Who was a stranger then may have an owner by now, and both
        are charged: else hundreds of strangers would have all their steps in one pass.

        While an owner is alone, only long work is charged: nobody has to wait for the rest, and the
        owner is in the present when others come.
        """
        if owner is self.last and not (is_long or self.is_contended):
            return
        now = self.now()
        seconds = now - began
        self._note_owner(owner, now)
        self.tag = max(self.tag, owner.tag)
        owner.charge(seconds, self._pass_number)
        if turn is not None and turn is not owner:
            turn.charge(seconds, self._pass_number)
            turn.learn(seconds)
        if not is_long:
            owner.learn(seconds)
        self._pass_seconds += seconds

    def call_ended(self) -> None:
        """The step of a task that was called has ended, or was not taken."""
        self._uncall()
        if not self._called:
            self._call_next()

    def _uncall(self) -> None:
        self._called -= 1
        if not self._called:
            self._called_owner = None

    def next_pass(self) -> None:
        self._pass_number += 1
        self._pass_seconds = 0.0
        if self.now() > self._contended_until:
            self.is_contended = False
            trio.lowlevel.remove_instrument(self._passes)

    def meet(self, owner: Turns) -> None:
        """Learn that an owner is there, before its step has ended."""
        self._note_owner(owner, self.now())

    def _note_owner(self, owner: Turns, now: float) -> None:
        if owner is self.strangers:
            return
        if owner is not self.last:
            self._others_pass = self._last_pass
            if self.last is not None:
                self._contended_until = now + LATELY_SECONDS
                if not self.is_contended:
                    self._begin_contention(self.last)
            self.last = owner
        self._last_pass = self._pass_number

    def _begin_contention(self, before: Turns) -> None:
        """Find the present of the round, which is that of who was alone, and count passes."""
        self.is_contended = True
        self.tag = before.tag = max(self.tag, before.tag)
        self._pass_number += 1
        self._pass_seconds = 0.0
        trio.lowlevel.add_instrument(self._passes)

    # --- whose turn it is -------------------------------------------------------------------------

    def _is_next(self, owner: Turns) -> bool:
        return not (self._called or owner.waiting) and self._most_due(owner) is owner

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

    def _call(self, owner: Turns) -> None:
        """Call the first who waits, and others whose steps are short, as many as fit in a pass."""
        waiting, seconds = owner.waiting, 0.0
        self._called_owner = owner
        while waiting:
            is_long = waiting[0][1]
            if seconds and (is_long or seconds + owner.short_seconds > PASS_SECONDS):
                break
            task, _ = waiting.popleft()
            self._called += 1
            trio.lowlevel.reschedule(task)
            seconds += PASS_SECONDS if is_long else max(owner.short_seconds, STEP_SECONDS_LEAST)
        if not waiting:
            del self._queued[owner]


def _stays(_: object) -> trio.lowlevel.Abort:
    return trio.lowlevel.Abort.FAILED


_tag_of: Final = attrgetter("tag")
_line: Final = trio.lowlevel.RunVar[Line]("line")


def current_line() -> Line:
    """Return the line of this run of the loop."""
    try:
        return _line.get()
    except LookupError:
        line = Line()
        _line.set(line)
        return line


_GATE: Final = ContextVar["Gate[Any] | None"]("gate", default=None)


class Gate(Generic[T]):
    """Runs the work of a task, each step of it in its owner's turn.

    A step goes from where the task is resumed to where it waits again, for whatever. So all that
    a task does is charged to its owner, and the tasks of an owner that wants much wait for each
    other, and not others for them.
    """

    __slots__ = ("_work", "began", "is_called", "is_open", "task", "turn")

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self.task = trio.lowlevel.current_task()
        self.began = 0.0
        self.turn: Turns | None = None
        """In whose turn the present step began, while several owners are there."""
        self.is_called = False
        """Whether the present step is one that was called."""
        self.is_open = False
        """Whether the task waits in the line already."""

    @staticmethod
    def of_this_task() -> Gate[Any] | None:
        gate = _GATE.get()
        return gate if gate is not None and gate.task is trio.lowlevel.current_task() else None

    def __await__(self) -> Generator[Any, Any, T]:
        line, work = current_line(), self._work
        before = _GATE.get()
        _GATE.set(self)
        try:
            return (yield from self._steps(line, work))
        finally:
            _GATE.set(before)

    def _steps(self, line: Line, work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
        value: Any = None
        error: BaseException | None = None
        while True:
            if not self.is_open:
                if line.is_contended:
                    owner = OWNER.get() or line.strangers
                    yield from self.enter(line, owner).__await__()
                else:
                    self.began = line.now()
            try:
                waits_for = work.send(value) if error is None else work.throw(error)
            except StopIteration as end:
                result: T = end.value
                return result
            finally:
                value = error = None  # an error leads to this frame
                if not self.is_open:
                    self.end_step(line)
                    if self.is_called:
                        self.is_called = False
                        line.call_ended()
            try:
                value = yield waits_for
            except BaseException as caught:
                error = caught

    async def enter(self, line: Line, owner: Turns) -> None:
        """Begin a step, as soon as the line lets it."""
        if line.is_contended and not line.admits(owner):
            await line.stand_aside(owner)
            self.is_called = True
        self.turn = owner
        self.began = line.now()

    def end_step(self, line: Line, *, is_long: bool = False) -> None:
        owner, turn, self.turn = OWNER.get() or line.strangers, self.turn, None
        line.step_ended(owner, self.began, is_long=is_long, turn=turn)


async def in_turns_of_owner(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of work whose steps are its owner's; the service's own has no turns."""
    return await work if OWNER.get() is None else await in_turns(work)


async def in_turns(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of work whose steps are its owner's.

    A task that has its turns already needs no second gate: called at one, it would have to wait at
    the other, and nobody else is called before a step that was called has ended.
    """
    return await (work if Gate.of_this_task() is not None else Gate(work))
