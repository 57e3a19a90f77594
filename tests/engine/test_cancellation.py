"""A request may be cancelled at any of its awaits, and the database does not mind.

Each test makes the same call again and again, and cancels it where it waits for the first time, the
second time, and so on, until a call comes to its end before it would have been cancelled.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from qserver.engine.database import Database
from qserver.engine.messages import Work
from qserver.storage.transaction import Transaction
from qserver.values.relations import Sequence
from tests.engine import counters
from tests.engine.fakes import HeldLog, opened

WAITS_MOST = 100


class CancelAtWait(trio.abc.Instrument):
    """Cancels a scope when its task stops to wait for the nth time; counts while `armed`."""

    def __init__(self, wait: int, armed: Callable[[], bool]) -> None:
        self.scope = trio.CancelScope()
        self._armed = armed
        self._task = trio.lowlevel.current_task()
        self._left = wait

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        if task is self._task and self._armed():
            self._left -= 1
            if self._left == 0:
                self.scope.cancel()


async def cancelled_at(
    wait: int, call: Callable[[], Awaitable[Any]], armed: Callable[[], bool]
) -> bool:
    """Was the call cancelled at its nth wait? False if it had come to its end before."""
    instrument = CancelAtWait(wait, armed)
    trio.lowlevel.add_instrument(instrument)
    try:
        with instrument.scope:
            await call()
    finally:
        trio.lowlevel.remove_instrument(instrument)
    return instrument.scope.cancelled_caught


async def cancel_everywhere(
    database: Database,
    call: Callable[[], Awaitable[Any]],
    *,
    increments: int,
    armed: Callable[[], bool] = lambda: True,
    after: Callable[[], None] = lambda: None,
) -> int:
    """At how many waits the call was cancelled; after each, the database must be as good as new.

    A call that comes to its end makes that many increments, a cancelled one perhaps fewer.
    """
    for wait in range(1, WAITS_MOST):
        before = await counters.total(database)
        ended = not await cancelled_at(wait, call, armed)
        after()
        await wait_all_tasks_blocked()
        made = await counters.total(database) - before
        await check_sound(database)
        if ended:
            assert made == increments
            return wait - 1
        assert 0 <= made <= increments
    raise AssertionError(f"the call waits more than {WAITS_MOST} times")


async def check_sound(database: Database) -> None:
    """Nobody holds an exclusive commit, nothing is left unanswered or undecided, and it commits."""
    with trio.fail_after(1000):
        await database.transact(counters.increment(0))
    generation = database.statistics().generation
    assert generation is not None
    assert generation.unanswered == 0
    assert generation.versions.waiting == 0
    assert [shard.undecided for shard in generation.shards] == [0] * len(generation.shards)
    assert [mailbox.waiting for mailbox in generation.mailboxes] == [0] * len(generation.mailboxes)
    assert database.statistics().restarts == 0


@pytest.mark.parametrize(
    ("work", "increments", "waits_least"),
    [
        pytest.param(counters.increment(1), 1, 1, id="short"),
        pytest.param(counters.increment_slowly(1, yields=3), 1, 4, id="long"),
        pytest.param(counters.increment(1, 2, 3, 4, 5), 5, 1, id="on several shards"),
        pytest.param(counters.create(name="other"), 0, 1, id="a definition"),
    ],
)
async def test_a_transaction_may_be_cancelled_at_each_wait(
    autojump_clock: MockClock, work: Work, increments: int, waits_least: int
) -> None:
    def drop_other(transaction: Transaction) -> None:
        if transaction.find_definition("other") is not None:
            transaction.drop_table("other")

    async def call() -> None:
        await database.transact(drop_other)
        await database.transact(work)

    async with opened(counters=10) as database:
        waits = await cancel_everywhere(database, call, increments=increments)
        assert waits >= waits_least


async def test_a_transaction_with_a_deadline_may_be_cancelled_at_each_wait(
    autojump_clock: MockClock,
) -> None:
    work = counters.increment_slowly(1, yields=3)
    async with opened(counters=10) as database:
        waits = await cancel_everywhere(
            database,
            lambda: database.transact(work, deadline=trio.current_time() + 5),
            increments=1,
        )
        assert waits >= 4


@pytest.mark.parametrize("from_its_turn_on", [False, True])
async def test_a_transaction_that_goes_through_retries_and_a_turn_may_be_cancelled_at_each_wait(
    autojump_clock: MockClock, from_its_turn_on: bool
) -> None:
    turns = 0

    def turns_taken() -> int:
        return database.statistics().gateway.exclusive

    async def call() -> None:
        """Conflicts, is run again after a pause, conflicts again, and gets an exclusive commit."""
        nonlocal turns
        turns = turns_taken()
        work = counters.disturbed(database, nursery, 1, times=2)
        outcome = await database.transact(work, max_retries=2)
        assert len(outcome.result) == 3

    async with opened(counters=10) as database, trio.open_nursery() as nursery:
        waits = await cancel_everywhere(
            database,
            call,
            increments=3,
            armed=lambda: not from_its_turn_on or turns_taken() > turns,
        )
        if from_its_turn_on:
            assert (waits, turns_taken()) == (4, 5), (
                "until granted, two passes where it yields, for its answer"
            )
        else:
            assert waits >= 10


async def test_a_transaction_that_waits_for_the_disk_may_be_cancelled(
    autojump_clock: MockClock,
) -> None:
    log = HeldLog()

    async def call() -> None:
        log.hold()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(database.transact, counters.increment(1))
            await wait_all_tasks_blocked()
            nursery.start_soon(release_later)
            await database.transact(counters.look(1))

    async def release_later() -> None:
        await trio.sleep(1)
        log.release()

    async with opened(log, counters=10) as database:
        waits = await cancel_everywhere(database, call, increments=1, after=log.release)
        assert waits >= 2


OWN = Sequence(-1, "one of the engine's own")


async def test_a_sequence_may_be_cancelled_at_each_wait(autojump_clock: MockClock) -> None:
    taken: list[int] = []

    async def call() -> None:
        for _ in range(2):
            taken.extend(await database.sequences.take(OWN, 100))

    async with opened(counters=10) as database:
        assert await cancel_everywhere(database, call, increments=0) >= 2
        taken.extend(await database.sequences.take(OWN, 100))
        assert len(taken) == len(set(taken))


async def test_reading_never_waits_and_long_reading_may_be_cancelled_at_each_yield(
    autojump_clock: MockClock,
) -> None:
    def long(transaction: Transaction) -> Generator[None, None, None]:
        for _ in range(3):
            yield

    async with opened(counters=10) as database:
        for work, waits in ((counters.look(1), 0), (long, 3 * 2)):  # two passes each
            read = partial(counters.read, database, work)
            assert await cancel_everywhere(database, read, increments=0) == waits
