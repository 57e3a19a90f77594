"""Running a transaction's body.

Work is a pure function of a transaction: it may be run again anywhere, on any view. A body that is
a generator gives way at each `yield`; one that never does is short. That is the measure used here,
rather than a clock: it is the same in every run, and a body that ends before it has to give
way has done less than a page's worth of work.
"""

from __future__ import annotations

from types import GeneratorType
from typing import Any

import trio

from qserver.engine.messages import Work
from qserver.storage.transaction import Transaction


class GaveWay(Exception):  # it is news, not an error
    """The work wanted to give way where it cannot."""


def run_at_once(work: Work, transaction: Transaction) -> Any:
    """The work's result without letting anybody else run; GaveWay if it is not short."""
    outcome = work(transaction)
    if not isinstance(outcome, GeneratorType):
        return outcome
    try:
        next(outcome)
    except StopIteration as end:
        return end.value
    outcome.close()
    raise GaveWay


async def run_cooperatively(work: Work, transaction: Transaction) -> tuple[Any, bool]:
    """The work's result, and whether it was short: others may run wherever it gives way."""
    outcome = work(transaction)
    if not isinstance(outcome, GeneratorType):
        return outcome, True
    short = True
    while True:
        try:
            next(outcome)
        except StopIteration as end:
            return end.value, short
        short = False
        try:
            await trio.lowlevel.checkpoint()
        except BaseException:
            outcome.close()
            raise
