"""Work ends at once where it is short, gives way where it is long, and is closed when it stops."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
import trio

from qserver.engine.messages import Work
from qserver.engine.work import WouldYield, begin, finish, run_at_once
from qserver.storage.transaction import Transaction
from qserver.storage.view import empty_view


def fresh() -> Transaction:
    return Transaction(empty_view(1))


def generator_without_yield(transaction: Transaction) -> Generator[None, None, str]:
    if transaction.view.version > 0:
        yield
    return "short"


def noting(steps: list[str], yields: int = 2) -> Work:
    def work(transaction: Transaction) -> Generator[None, None, str]:
        try:
            for number in range(yields):
                steps.append(f"step {number}")
                yield
            return "long"
        finally:
            steps.append("closed")

    return work


@pytest.mark.parametrize("work", [lambda transaction: "short", generator_without_yield])
async def test_work_that_never_gives_way_is_short_wherever_it_runs(work: Work) -> None:
    assert run_at_once(work, fresh()) == "short"
    assert begin(work(fresh())) == ("short", None)


async def test_work_that_gives_way_is_long_and_others_run_in_between() -> None:
    steps: list[str] = []

    async def other() -> None:
        steps.append("other")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        _, rest = begin(noting(steps)(fresh()))
        assert rest is not None
        assert await finish(rest) == "long"
    assert steps.index("step 0") < steps.index("other") < steps.index("closed")


def test_long_work_is_stopped_and_closed_where_it_must_be_short() -> None:
    steps: list[str] = []
    kept: list[Any] = []  # what nobody holds is closed anyway

    def work(transaction: Transaction) -> Any:
        kept.append(noting(steps)(transaction))
        return kept[0]

    with pytest.raises(WouldYield):
        run_at_once(work, fresh())
    assert steps == ["step 0", "closed"]


async def test_cancelled_work_is_closed_at_once() -> None:
    steps: list[str] = []
    with trio.CancelScope() as scope:
        scope.cancel()
        _, rest = begin(noting(steps)(fresh()))
        assert rest is not None
        await finish(rest)
    assert scope.cancelled_caught
    assert steps == ["step 0", "closed"]


async def test_what_work_raises_comes_through_both_ways() -> None:
    def fail_at_once(transaction: Transaction) -> Any:
        raise LookupError("at once")

    def fail_later(transaction: Transaction) -> Generator[None, None, None]:
        yield
        raise LookupError("later")

    with pytest.raises(LookupError, match="at once"):
        run_at_once(fail_at_once, fresh())
    with pytest.raises(LookupError, match="at once"):
        begin(fail_at_once(fresh()))
    _, rest = begin(fail_later(fresh()))
    assert rest is not None
    with pytest.raises(LookupError, match="later"):
        await finish(rest)
