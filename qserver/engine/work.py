"""Work in steps: runs synchronously until it must wait, then hands back the rest.

    begin ─┬─ the result, if it ended
           └─ Rest ─┬─ finish         a coroutine: a task waits wherever the work does
                    ├─ when_replied   no task: the call that answers its reply continues it
                    └─ go_on          as part of other work

Work is a pure function of a transaction: it may be rerun anywhere, on any snapshot. A generator
yields where others may run, and where it waits; work that never yields is short. That measure,
unlike a clock, is the same in every run, and work that ends before it has to yield has done less
than a page's worth.

So each operation has one implementation, a generator. A caller with a task drives it with `finish`,
a caller without one with `when_replied`, and the coordinator with `run_at_once`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from functools import partial
from types import GeneratorType
from typing import Any, Final, TypeAlias

import msgspec
import trio

from qserver.engine.mailbox import Reply
from qserver.engine.messages import Work
from qserver.engine.yielding import yield_to_others
from qserver.errors import QueryCanceled
from qserver.storage.transaction import Transaction

FOREVER: Final = float("inf")

Step: TypeAlias = Callable[[], Awaitable[Any]] | Reply[Any] | None
"""What work yields: None to let others run, or a wait, whose result is sent back into the work."""

WorkSteps: TypeAlias = Generator[Step, Any, Any]

Pause: TypeAlias = Callable[[], Awaitable[None]]
"""How other tasks are let run: long work queues for its next step, actors do not."""


Done: TypeAlias = Callable[[Any], None]
"""Called once, synchronously, with the result, the error, or the rest, which waits again."""


class WouldYield(Exception):  # control flow, not an error
    """The work wanted to yield where it cannot."""


class Rest(msgspec.Struct, eq=False):
    """Work that was begun and has to wait."""

    steps: WorkSteps
    step: Step

    def go_on(self, deadline: float) -> WorkSteps:
        """Yield the remaining steps as part of other work; raise when the deadline comes first."""
        steps, step = self.steps, self.step
        try:
            while True:
                if deadline != FOREVER:
                    step = partial(
                        before, deadline, yield_to_others if step is None else _waiting(step)
                    )
                try:
                    value = yield step
                except Exception as error:
                    step = steps.throw(error)
                    continue
                if deadline != FOREVER and trio.current_time() >= deadline:
                    step = steps.throw(timed_out())
                else:
                    step = steps.send(value)
        except StopIteration as end:
            return end.value
        finally:
            steps.close()

    def close(self) -> None:
        self.steps.close()


def begin(work: Any) -> tuple[Any, Rest | None]:
    """Return the result of work that does not yield; for other work, its rest."""
    if type(work) is not GeneratorType:
        return work, None
    try:
        step = next(work)
    except StopIteration as end:
        return end.value, None
    return None, Rest(work, step)


def run_at_once(work: Work, transaction: Transaction) -> Any:
    """Return the work's result without letting other tasks run; raise WouldYield if it yields."""
    result, rest = begin(work(transaction))
    if rest is None:
        return result
    rest.close()
    raise WouldYield


async def run(work: Any, pause: Pause = yield_to_others) -> Any:
    result, rest = begin(work)
    return result if rest is None else await finish(rest, pause)


async def finish(rest: Rest, pause: Pause = yield_to_others) -> Any:
    """Return the result of work that has to wait; others run wherever it waits."""
    steps, step = rest.steps, rest.step
    while True:
        value = error = None
        try:
            if step is None:
                await pause()
            else:
                value = await _waiting(step)()
        except Exception as caught:
            error = caught
        except BaseException:
            steps.close()
            raise
        try:
            step = steps.send(value) if error is None else steps.throw(error)
        except StopIteration as end:
            return end.value
        finally:
            error = None  # an error leads to this frame, and to the snapshot that the work reads


def when_replied(rest: Rest, done: Done) -> bool:
    """Continue the work where the reply is given that it waits for, and call `done` then.

    False if it waits for anything else: a task has to `finish` it.
    """
    step = rest.step
    if not isinstance(step, Reply):
        return False
    step.then(partial(_go_on_with, rest, done))
    return True


def _go_on_with(rest: Rest, done: Done, reply: Reply[Any]) -> None:
    outcome: Any
    try:
        error = reply.error
        rest.step = rest.steps.send(reply.content) if error is None else rest.steps.throw(error)
    except StopIteration as end:
        outcome = end.value
    except Exception as caught:
        outcome = caught
    else:
        outcome = rest
    done(outcome)
    del outcome  # as above


def _waiting(step: Callable[[], Awaitable[Any]] | Reply[Any]) -> Callable[[], Awaitable[Any]]:
    return step.wait if isinstance(step, Reply) else step


async def before(
    deadline: float, waited_for: Callable[..., Awaitable[Any]], *arguments: Any
) -> Any:
    """Return what is waited for; raise when the deadline comes first."""
    if deadline == FOREVER:
        return await waited_for(*arguments)
    with trio.CancelScope(deadline=deadline):
        return await waited_for(*arguments)
    raise timed_out()


def timed_out() -> QueryCanceled:
    return QueryCanceled("canceling statement due to statement timeout")
