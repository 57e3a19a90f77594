"""Advisory locks: a model of who may hold what, and waits that end in every way."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
import trio

from qserver.engine.advisory_locks import AdvisoryLocks, Lock, LockHolder
from qserver.errors import DeadlockDetected


def exclusive(holders: list[LockHolder]) -> None:
    """Check that no key is held in ways that exclude each other."""
    for at, one in enumerate(holders):
        for two in holders[at + 1 :]:
            for first in one.held:
                for second in two.held:
                    assert first.key != second.key or not first.excludes(second), (one, two)


@pytest.mark.parametrize("seed", range(12))
async def test_sessions_that_lock_by_chance_exclude_each_other_and_all_end(
    seed: int, autojump_clock: trio.abc.Clock
) -> None:
    locks, chance = AdvisoryLocks(), Random(seed)
    holders = [LockHolder(number) for number in range(5)]
    circles = Counter[str]()

    async def live(holder: LockHolder) -> None:
        for _ in range(40):
            await trio.sleep(chance.random())
            lock = Lock(chance.randrange(3), chance.random() < 0.5)
            if holder.held and chance.random() < 0.5:
                locks.release(holder, chance.choice(sorted(holder.held, key=repr)))
            elif chance.random() < 0.3:
                locks.try_take(holder, lock)
            else:
                try:
                    with trio.move_on_after(chance.random() * 4) as scope:
                        await locks.take(holder, lock)
                    circles["late" if scope.cancelled_caught else "taken"] += 1
                except DeadlockDetected:
                    circles["circle"] += 1
            exclusive(holders)
        for lock, count in list(holder.held.items()):
            for _ in range(count):
                locks.release(holder, lock)

    async with trio.open_nursery() as nursery:
        for holder in holders:
            nursery.start_soon(live, holder)
    assert not any(each.held.total() for each in holders) and repr(locks) == "0 advisory locks"
    assert circles["taken"] > 20


async def test_a_circle_of_three_is_found_by_the_last_one(
    autojump_clock: trio.abc.Clock,
) -> None:
    locks, holders = AdvisoryLocks(), [LockHolder(number) for number in range(3)]
    for holder in holders:
        assert locks.try_take(holder, Lock(holder.number))
    async with trio.open_nursery() as nursery:
        for holder in holders[:2]:
            nursery.start_soon(locks.take, holder, Lock(holder.number + 1))
        await trio.sleep(1)
        with pytest.raises(DeadlockDetected):
            await locks.take(holders[2], Lock(0))
        locks.release(holders[2], Lock(2))
        await trio.sleep(1)
        locks.release(holders[1], Lock(1))
    assert holders[0].held == {Lock(0): 1, Lock(1): 1}


async def test_who_leaves_the_queue_lets_others_pass(autojump_clock: trio.abc.Clock) -> None:
    locks, (one, two, three) = AdvisoryLocks(), [LockHolder(number) for number in range(3)]
    shared = Lock(1, shared=True)
    assert locks.try_take(one, shared)
    async with trio.open_nursery() as nursery:
        with trio.move_on_after(5):
            nursery.start_soon(locks.take, three, Lock(2))

            async def later() -> None:
                await trio.sleep(1)
                await locks.take(three, shared)

            nursery.start_soon(later)
            await locks.take(two, Lock(1))
    assert three.held[shared] == 1 and not two.held
