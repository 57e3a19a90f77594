"""Work ends at once where it is short, goes on where it yielded, and is closed when it stops."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator
from typing import Any
from weakref import ref

import pytest
import trio

from qserver.engine.mailbox import Reply
from qserver.engine.messages import Work
from qserver.engine.work import Rest, WouldYield, begin, finish, run_at_once, when_replied
from qserver.errors import QueryCanceled
from qserver.storage.snapshot import empty_snapshot
from qserver.storage.transaction import Transaction


def fresh() -> Transaction:
    return Transaction(empty_snapshot(1))


def generator_without_yield(transaction: Transaction) -> Generator[None, None, str]:
    if transaction.snapshot.version > 0:
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


# --- with a callback ------------------------------------------------------------------------------


def asking(*replies: Reply[str]) -> Generator[Any, Any, list[str]]:
    """Work that waits for one reply after the other."""
    found = []
    for reply in replies:
        found.append((yield reply))
    return found


def called_back(work: Any, done: Callable[[Any], None]) -> Rest | None:
    """The rest, if nobody will call."""
    _, rest = begin(work)
    assert rest is not None
    return None if when_replied(rest, done) else rest


async def test_work_that_waits_for_a_reply_goes_on_where_it_is_answered() -> None:
    outcomes: list[Any] = []
    reply = Reply[str]()
    assert called_back(asking(reply), outcomes.append) is None
    assert outcomes == []
    reply.put("here")
    assert outcomes == [["here"]]


async def test_an_error_in_the_place_of_an_answer_is_raised_in_the_work() -> None:
    outcomes: list[Any] = []
    reply = Reply[str]()
    assert called_back(asking(reply), outcomes.append) is None
    reply.fail(LookupError("nobody knows"))
    assert [repr(each) for each in outcomes] == ["LookupError('nobody knows')"]


async def test_the_callback_is_given_the_rest_of_work_that_waits_again() -> None:
    outcomes: list[Any] = []
    first, second = Reply[str](), Reply[str]()
    assert called_back(asking(first, second), outcomes.append) is None
    first.put("one")
    (rest,) = outcomes
    assert isinstance(rest, Rest)
    second.put("two")
    assert await finish(rest) == ["one", "two"]


async def test_work_that_waits_for_no_reply_is_left_to_a_task_and_nobody_is_called() -> None:
    steps: list[str] = []
    rest = called_back(noting(steps)(fresh()), steps.append)
    assert isinstance(rest, Rest)
    assert steps == ["step 0"]
    assert await finish(rest) == "long"
    assert steps == ["step 0", "step 1", "closed"]


async def test_work_inside_other_work_ends_at_the_deadline_and_is_closed() -> None:
    steps: list[str] = []
    _, rest = begin(noting(steps, yields=3)(fresh()))
    assert rest is not None
    outer, rest_of_outer = begin(rest.go_on(trio.current_time() - 1))
    assert outer is None and rest_of_outer is not None
    with pytest.raises(QueryCanceled):
        await finish(rest_of_outer)
    assert steps == ["step 0", "closed"]


async def test_what_work_waits_for_inside_other_work_ends_at_the_deadline() -> None:
    def waiting(transaction: Transaction) -> Generator[Any, Any, None]:
        yield trio.sleep_forever

    _, rest = begin(waiting(fresh()))
    assert rest is not None
    _, rest = begin(rest.go_on(trio.current_time() + 0.01))
    assert rest is not None
    with pytest.raises(QueryCanceled):
        await finish(rest)


async def test_an_error_of_long_work_keeps_nothing_alive() -> None:
    class Held:
        pass

    async def fail() -> None:
        raise ValueError("no")

    async def attempt() -> ref[Held]:
        held = Held()
        alive = ref(held)

        def work(held: Held) -> Generator[Any, None, None]:
            yield fail

        _, rest = begin(work(held))
        assert rest is not None
        del held
        with pytest.raises(ValueError, match="no"):
            await finish(rest)
        return alive

    gc.disable()
    try:
        alive = await attempt()
        assert alive() is None, "the error, its traceback and the work are a circle"
    finally:
        gc.enable()
