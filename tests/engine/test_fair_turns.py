"""Turns go round by owner: however much one wants, another gets as much time."""

from __future__ import annotations

from collections import Counter, defaultdict
from random import Random

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from qserver.engine.disposal import PIECE_ENTRIES, dispose
from qserver.engine.turns import CREDIT_SECONDS, OWNER, STEP_SECONDS_LEAST, Turns, in_turns
from qserver.engine.yielding import yield_to_others
from tests.patience import PATIENCE_SECONDS

HOSTILE = 200


class Work:
    """Tasks of owners that take steps, and notes of whose each step was."""

    def __init__(self, clock: MockClock | None = None) -> None:
        self.clock = clock
        self.steps: list[str] = []
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.turns: dict[str, Turns] = {}

    async def run(self, name: str, count: int, seconds: float = 0.0) -> None:
        OWNER.set(self.turns.setdefault(name, Turns()))
        for _ in range(count):
            await yield_to_others()
            self.steps.append(name)
            if seconds and self.clock is not None:
                self.clock.jump(seconds)
                self.seconds[name] += seconds


@pytest.mark.parametrize("hostile", [1, HOSTILE])
@pytest.mark.parametrize("earlier", [0, 1000])
async def test_a_statement_beside_hundreds_of_another_owner_takes_twice_its_steps(
    hostile: int, earlier: int, autojump_clock: MockClock
) -> None:
    work, own = Work(), 60
    async with trio.open_nursery() as nursery:
        for _ in range(hostile):
            nursery.start_soon(work.run, "a", 10_000)
        while len(work.steps) < earlier:
            await trio.lowlevel.checkpoint()
        before = len(work.steps)
        await work.run("b", own)
        assert len(work.steps) - before <= 2 * own + 2
        nursery.cancel_scope.cancel()


async def test_short_steps_beside_long_ones_get_half_of_the_time(autojump_clock: MockClock) -> None:
    work, own = Work(autojump_clock), 90
    async with trio.open_nursery() as nursery:
        for _ in range(HOSTILE):
            nursery.start_soon(work.run, "a", 10_000, 0.1)
        while len(work.steps) < 10:
            await trio.lowlevel.checkpoint()
        began = trio.current_time()
        await work.run("b", own, 0.001)
        took = trio.current_time() - began
        nursery.cancel_scope.cancel()
    assert took <= 2 * own * 0.001 + 2 * 0.1, "its own time, as much for the other, and a step"


async def test_many_statements_of_an_owner_get_no_more_than_one_of_another(
    autojump_clock: MockClock,
) -> None:
    work = Work()
    async with trio.open_nursery() as nursery:
        for name, count in (("a", 50), ("b", 1), ("c", 7)):
            for _ in range(count):
                nursery.start_soon(work.run, name, 10_000)
        while len(work.steps) < 3000:
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    for at in range(100, 3000, 100):
        counts = Counter(work.steps[at - 100 : at])
        assert max(counts.values()) - min(counts.values()) <= 6, counts


async def test_who_was_idle_goes_first_for_as_long_as_one_may_save_and_no_longer(
    autojump_clock: MockClock,
) -> None:
    work, seconds = Work(autojump_clock), 0.001
    saved = round(CREDIT_SECONDS / seconds)
    async with trio.open_nursery() as nursery:
        await work.run("b", 1, seconds)
        await work.run("a", 500, seconds)
        nursery.start_soon(work.run, "a", 10_000, seconds)
        nursery.start_soon(work.run, "b", 10_000, seconds)
        before = len(work.steps)
        while len(work.steps) < before + saved + 100:
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    first, then = work.steps[before:][:saved], work.steps[before:][saved:][:100]
    assert Counter(first)["b"] >= saved - 5
    assert 45 <= Counter(then)["a"] <= 55, "after that, both get the same"


@pytest.mark.parametrize("seed", range(5))
async def test_of_owners_that_always_want_more_none_gets_ahead_by_more_than_two_steps(
    seed: int, autojump_clock: MockClock
) -> None:
    random, work = Random(seed), Work(autojump_clock)
    costs = {name: random.choice([0.0005, 0.002, 0.02, 0.1]) for name in "abcd"}
    async with trio.open_nursery() as nursery:
        for name, seconds in costs.items():
            for _ in range(random.randint(2, 9)):
                nursery.start_soon(work.run, name, 10_000, seconds)
        for _ in range(3000):
            await trio.lowlevel.checkpoint()
            if len(work.seconds) == len(costs):
                most, least = max(work.seconds.values()), min(work.seconds.values())
                assert most - least <= 2 * max(costs.values()) + 1e-9, (costs, work.seconds)
        nursery.cancel_scope.cancel()
    assert min(work.seconds.values()) > 3 * max(costs.values())


@pytest.mark.parametrize("seed", range(5))
async def test_those_that_give_up_take_nobody_elses_turn(seed: int) -> None:
    random, work = Random(seed), Work()
    scopes: list[trio.CancelScope] = []

    async def give_up(name: str) -> None:
        with trio.CancelScope() as scope:
            scopes.append(scope)
            await work.run(name, 10_000)

    with trio.fail_after(240):
        async with trio.open_nursery() as nursery:
            for name in "aaaabbc" * 5:
                nursery.start_soon(give_up, name)
            while len(work.steps) < 50:
                await trio.lowlevel.checkpoint()
            while scopes:
                scopes.pop(random.randrange(len(scopes))).cancel()
                for _ in range(random.randint(0, 4)):
                    await trio.lowlevel.checkpoint()
            await work.run("d", 20)
            nursery.cancel_scope.cancel()
        assert all(not turns.waiting for turns in work.turns.values())
        await work.run("e", 5)


async def test_what_an_owner_leaves_behind_is_freed_in_its_own_turns() -> None:
    freed: list[str] = []
    work = Work()

    async def leave_behind(name: str, pieces: int) -> None:
        OWNER.set(work.turns.setdefault(name, Turns()))
        dispose([[None] * (PIECE_ENTRIES * pieces)], lambda: freed.append(name))

    with trio.fail_after(240):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(leave_behind, "a", 500)
            while work.turns.get("a") is None or work.turns["a"].steps < 3:
                await trio.lowlevel.checkpoint()
            nursery.start_soon(leave_behind, "b", 5)
        while len(freed) < 2:
            await trio.lowlevel.checkpoint()
        await wait_all_tasks_blocked()
    assert freed == ["b", "a"]
    assert work.turns["a"].steps >= 400 and 5 <= work.turns["b"].steps <= 10


async def test_an_owner_is_charged_for_the_time_of_its_steps(autojump_clock: MockClock) -> None:
    work = Work(autojump_clock)
    await work.run("a", 10, 0.25)
    await work.run("b", 10)
    await yield_to_others()
    assert work.turns["a"].seconds == pytest.approx(2.5)
    assert work.turns["b"].seconds < 10 * STEP_SECONDS_LEAST and work.turns["b"].steps == 10


@pytest.mark.half
@pytest.mark.parametrize("seed", range(5))
async def test_turns_within_turns_are_the_same(seed: int) -> None:
    """A request that is forwarded, and then answered here after all, has its turns already."""
    chance, done = Random(seed), []

    async def steps(count: int) -> None:
        for _ in range(count):
            await yield_to_others()
            until = trio.current_time() + 0.001
            while trio.current_time() < until:
                pass

    async def twice(owner: Turns) -> None:
        OWNER.set(owner)
        await steps(chance.randrange(5))
        await in_turns(steps(10))
        done.append(owner)

    async def run(owner: Turns) -> None:
        OWNER.set(owner)
        await in_turns(twice(owner))

    owners = [Turns() for _ in range(4)]
    with trio.fail_after(PATIENCE_SECONDS):
        async with trio.open_nursery() as nursery:
            for owner in owners * 10:
                nursery.start_soon(run, owner)
    assert len(done) == 40
