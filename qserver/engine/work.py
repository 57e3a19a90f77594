"""Running a transaction's body.

Work is a pure function of a transaction: it may be run again anywhere, on any view. A body that is
a generator gives way at each `yield`; one that never does is short. That is the measure used here,
rather than a clock: it is the same in every run, and a body that ends before it has to give
way has done less than a page's worth of work.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from types import GeneratorType
from typing import Any, TypeAlias

import trio

from qserver.engine.giving_way import give_way
from qserver.engine.messages import Work
from qserver.errors import QueryCanceled
from qserver.storage.transaction import Transaction

Step: TypeAlias = Callable[[], Awaitable[Any]] | None
"""What a body yields: None to give way, or something to wait for, whose result it is sent."""


class Rest:
    """Work that was begun and gave way."""

    __slots__ = ("body", "step")

    def __init__(self, body: Generator[Step, Any, Any], step: Step) -> None:
        self.body = body
        self.step = step

    def close(self) -> None:
        self.body.close()


class GaveWay(Exception):  # it is news, not an error
    """The work wanted to give way where it cannot."""


def run_at_once(work: Work, transaction: Transaction) -> Any:
    """The work's result without letting anybody else run; GaveWay if it is not short."""
    result, rest = begin(work, transaction)
    if rest is None:
        return result
    rest.close()
    raise GaveWay


def begin(work: Work, transaction: Transaction) -> tuple[Any, Rest | None]:
    """The result of short work; if it gives way, what is left of it, for `finish`."""
    outcome = work(transaction)
    if not isinstance(outcome, GeneratorType):
        return outcome, None
    try:
        step = next(outcome)
    except StopIteration as end:
        return end.value, None
    return None, Rest(outcome, step)


async def finish(rest: Rest) -> Any:
    """The result of work that gave way: others run wherever it does so."""
    while True:
        try:
            await give_way()
        except BaseException:
            rest.close()
            raise
        step = rest.step
        if step is None:
            value, error = None, None
        else:
            value, error = await _waited_for(rest, step)
        try:
            rest.step = rest.body.send(value) if error is None else rest.body.throw(error)
        except StopIteration as end:
            return end.value


async def _waited_for(rest: Rest, step: Callable[[], Awaitable[Any]]) -> tuple[Any, Any]:
    """The result of what a body waits for, or the error that it is to be told."""
    try:
        return await step(), None
    except Exception as error:
        return None, error
    except BaseException:
        rest.close()
        raise


async def before(deadline: float, waited_for: Awaitable[Any]) -> Any:
    """What is waited for; an error when the deadline comes first."""
    if deadline == float("inf"):
        return await waited_for
    with trio.CancelScope(deadline=deadline):
        return await waited_for
    raise timed_out()


def timed_out() -> QueryCanceled:
    return QueryCanceled("canceling statement due to statement timeout")
