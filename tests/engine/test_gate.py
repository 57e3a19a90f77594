"""Each step of a task is its owner's: it is charged, and waits while the owner has had enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from qserver.engine.turns import (
    CREDIT_SECONDS,
    LATELY_SECONDS,
    OWNER,
    PASS_SECONDS,
    PASSES_MAX,
    STEP_SECONDS,
    Turns,
    current_line,
    in_turns,
    in_turns_of_owner,
)
from qserver.engine.yielding import yield_to_others
from tests.engine.passes import Passes, counted_passes

STEP = PASS_SECONDS / 3
CROWD = 100


class Loop:
    """Tasks of owners, whose steps take time on a clock that only they move."""

    def __init__(self, clock: MockClock, passes: Passes, nursery: trio.Nursery) -> None:
        self._clock = clock
        self._passes = passes
        self._nursery = nursery
        self.turns = {name: Turns() for name in "abc"}
        self.steps: list[tuple[str, int]] = []
        """Whose each step was, and the pass."""

    def work(self, name: str, seconds: float = STEP) -> None:
        """Do something for an owner."""
        self._clock.jump(seconds)
        self.steps.append((name, self._passes.count))

    def start(self, name: str, run: Callable[..., Awaitable[Any]], *arguments: Any) -> None:
        async def owned() -> None:
            OWNER.set(self.turns[name])
            await run(*arguments)

        self._nursery.start_soon(in_turns, owned())

    async def contend(self) -> None:
        """Have two owners take steps, of which `a` has used much more."""

        async def take(name: str, count: int) -> None:
            for _ in range(count):
                await trio.lowlevel.checkpoint()
                self.work(name)

        async with trio.open_nursery() as nursery:
            self._nursery, outer = nursery, self._nursery
            self.start("b", take, "b", 2)
            self.start("a", take, "a", 2 * round(CREDIT_SECONDS / STEP))
        self._nursery = outer
        assert current_line().is_contended
        self.steps.clear()

    async def woken(self, name: str, event: trio.Event) -> None:
        await event.wait()
        self.work(name)


def run(work: Callable[[Loop], Awaitable[None]]) -> None:
    clock = MockClock()

    async def main() -> None:
        async with counted_passes() as passes, trio.open_nursery() as nursery:
            await work(Loop(clock, passes, nursery))

    trio.run(main, clock=clock)


def test_tasks_of_an_owner_that_are_woken_together_share_out_their_steps_to_passes() -> None:
    async def many(loop: Loop) -> None:
        await loop.contend()
        event = trio.Event()
        for _ in range(CROWD):
            loop.start("a", loop.woken, "a", event)
        for _ in range(5 * CROWD):
            await trio.lowlevel.checkpoint()
        event.set()
        while len(loop.steps) < CROWD:
            await trio.lowlevel.checkpoint()
        counts = Counter(number for _, number in loop.steps)
        assert max(counts.values()) <= 2 * PASS_SECONDS / STEP + 2

    run(many)


def test_tasks_that_leave_the_line_together_share_out_what_they_still_do() -> None:
    """As those of hundreds of statements whose clients have gone."""

    async def many(loop: Loop) -> None:
        await loop.contend()
        scopes = [trio.CancelScope() for _ in range(CROWD)]

        async def long_work(scope: trio.CancelScope) -> None:
            with scope:
                while True:
                    await yield_to_others()
                    loop.work("a", 2 * PASS_SECONDS)
            loop.work("a")

        for scope in scopes:
            loop.start("a", long_work, scope)
        while len(loop.steps) < 5:
            await trio.lowlevel.checkpoint()
        loop.steps.clear()
        for scope in scopes:
            scope.cancel()
        while len(loop.steps) < CROWD:
            await trio.lowlevel.checkpoint()
        counts = Counter(number for _, number in loop.steps)
        assert max(counts.values()) <= 2 * PASS_SECONDS / STEP + 2

    run(many)


def test_strangers_who_turn_out_to_be_of_one_owner_have_one_turn() -> None:
    async def many(loop: Loop) -> None:
        await loop.contend()
        event = trio.Event()

        async def stranger() -> None:
            await event.wait()
            OWNER.set(loop.turns["a"])
            loop.work("a")

        async with trio.open_nursery() as nursery:
            for _ in range(CROWD):
                nursery.start_soon(in_turns, stranger())
            for _ in range(5 * CROWD):
                await trio.lowlevel.checkpoint()
            event.set()
        counts = Counter(number for _, number in loop.steps)
        assert len(loop.steps) == CROWD
        assert max(counts.values()) <= 2 * PASS_SECONDS / STEP + 2

    run(many)


def test_who_has_used_little_runs_in_the_pass_in_which_it_is_woken() -> None:
    async def both(loop: Loop) -> None:
        await loop.contend()
        event = trio.Event()
        for _ in range(CROWD):
            loop.start("a", loop.woken, "a", event)
        loop.start("b", loop.woken, "b", event)
        for _ in range(5 * CROWD):
            await trio.lowlevel.checkpoint()
        event.set()
        while len(loop.steps) < CROWD + 1:
            await trio.lowlevel.checkpoint()
        first = min(number for _, number in loop.steps)
        assert next(number for name, number in loop.steps if name == "b") <= first + 1

    run(both)


def test_an_owner_alone_has_all_its_steps_at_once() -> None:
    async def alone(loop: Loop) -> None:
        event = trio.Event()
        for _ in range(CROWD):
            loop.start("a", loop.woken, "a", event)
        for _ in range(5):
            await trio.lowlevel.checkpoint()
        event.set()
        for _ in range(3):
            await trio.lowlevel.checkpoint()
        assert len(loop.steps) == CROWD and not current_line().is_contended

    run(alone)


def test_beside_the_services_own_work_an_owner_is_alone() -> None:
    async def both(loop: Loop) -> None:
        async def take(name: str) -> None:
            for _ in range(5):
                loop.work(name, 2 * STEP_SECONDS)
                await yield_to_others()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(take, "own")
            loop.start("a", take, "a")
        while len(loop.steps) < 10:
            await trio.lowlevel.checkpoint()
        assert not current_line().is_contended

    run(both)


def test_an_owner_is_alone_again_when_others_have_had_no_step_for_a_while() -> None:
    async def later(loop: Loop) -> None:
        await loop.contend()
        loop._clock.jump(2 * LATELY_SECONDS)
        for _ in range(3):
            await trio.lowlevel.checkpoint()
        assert not current_line().is_contended

    run(later)


def test_long_work_of_who_used_little_goes_before_that_of_who_used_much() -> None:
    async def both(loop: Loop) -> None:
        async def long(name: str, count: int) -> None:
            for _ in range(count):
                await yield_to_others()
                loop.work(name, PASS_SECONDS)

        await loop.contend()
        for _ in range(CROWD):
            loop.start("a", long, "a", 100)
        while len(loop.steps) < 20:
            await trio.lowlevel.checkpoint()
        count = round(CREDIT_SECONDS / PASS_SECONDS) // 2
        before = len(loop.steps)
        loop.start("b", long, "b", count)
        while Counter(name for name, _ in loop.steps)["b"] < count:
            await trio.lowlevel.checkpoint()
        meanwhile = Counter(name for name, _ in loop.steps[before:])
        assert meanwhile["a"] <= 5, "it has used more"
        loop._nursery.cancel_scope.cancel()

    run(both)


def test_all_that_a_task_does_while_others_are_there_is_charged_to_its_owner() -> None:
    async def charged(loop: Loop) -> None:
        await loop.contend()

        async def some() -> None:
            for _ in range(10):
                await trio.lowlevel.checkpoint()
                loop.work("c", 0.025)

        loop.start("c", some)
        while len(loop.steps) < 10:
            await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()
        assert loop.turns["c"].seconds == pytest.approx(0.25)

    run(charged)


def test_what_a_task_was_given_is_not_lost_when_it_is_cancelled_while_it_stands_aside() -> None:
    async def given(loop: Loop) -> None:
        await loop.contend()
        send, receive = trio.open_memory_channel[int](CROWD)
        got: list[int] = []
        scopes: list[trio.CancelScope] = []

        async def take() -> None:
            with trio.CancelScope() as scope:
                scopes.append(scope)
                got.append(await receive.receive())
                loop.work("a")

        for _ in range(CROWD):
            loop.start("a", take)
        for _ in range(5 * CROWD):
            await trio.lowlevel.checkpoint()
        for number in range(CROWD):
            send.send_nowait(number)
        for _ in range(3):
            await trio.lowlevel.checkpoint()
        for scope in scopes:
            scope.cancel()
        for _ in range(CROWD * PASSES_MAX):
            await trio.lowlevel.checkpoint()
        assert sorted(got) == list(range(CROWD))

    run(given)


async def test_results_errors_and_cancellations_pass_a_gate() -> None:
    async def returns() -> int:
        await trio.lowlevel.checkpoint()
        return 7

    async def raises() -> None:
        await trio.lowlevel.checkpoint()
        raise ValueError("eight")

    async def waits() -> None:
        await trio.sleep_forever()

    OWNER.set(Turns())
    for through in (in_turns, in_turns_of_owner):
        assert await through(returns()) == 7
        with pytest.raises(ValueError, match="eight"):
            await through(raises())
        with trio.move_on_after(0) as scope:
            await through(waits())
        assert scope.cancelled_caught


async def test_work_of_the_service_itself_passes_no_gate() -> None:
    async def steps() -> int:
        await trio.lowlevel.checkpoint()
        return current_line().strangers.steps

    assert await in_turns_of_owner(steps()) == 0
    assert await in_turns(steps()) > 0
