"""Several long statements at once share the loop: a neighbour waits for one step, not for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from random import Random

import pytest
import trio

from qserver.engine.turns import PASS_SECONDS_QUIET, PASSES_MAX, PATIENCE_SECONDS, STEP_SECONDS_LONG
from qserver.engine.work import begin, finish
from qserver.engine.yielding import yield_to_others
from qserver.errors import QueryCanceled
from tests.engine.passes import counted_passes
from tests.sql.databases import opened_sql

MANY = 7


async def test_one_of_many_takes_a_step_in_each_pass_and_none_twice_before_all_did() -> None:
    steps: list[tuple[int, int]] = []

    def work(number: int) -> Generator[None, None, None]:
        for _ in range(10):
            yield
            steps.append((number, passes.count))

    async def run(number: int) -> None:
        _, rest = begin(work(number))
        assert rest is not None
        await finish(rest)

    async with counted_passes() as passes, trio.open_nursery() as nursery:
        for number in range(MANY):
            nursery.start_soon(run, number)
    assert max(Counter(count for _, count in steps).values()) <= 2, "a pass is counted within it"
    rounds = [steps[at : at + MANY] for at in range(0, len(steps), MANY)]
    assert all({number for number, _ in each} == set(range(MANY)) for each in rounds)


async def test_statements_that_read_share_the_loop_too() -> None:
    alone, together = 0, 0
    async with opened_sql() as database, counted_passes() as passes:
        sql = "SELECT count(*) FROM generate_series(1, 40000)"
        await database.execute(sql)
        counts = []
        for _ in range(5):  # a step that took long on a busy machine is followed by another pass
            before = passes.count
            await database.execute(sql)
            counts.append(passes.count - before)
        alone = min(counts)
        before = passes.count
        async with trio.open_nursery() as nursery:
            for _ in range(MANY):
                nursery.start_soon(database.execute, sql)
        together = passes.count - before
    assert alone > 5
    assert together > alone * (MANY - 1)


async def test_a_long_call_is_a_step_of_its_own_from_the_first_on() -> None:
    async with opened_sql() as database, counted_passes() as passes:
        for sql in ("SELECT length(repeat('x', 4000000))", "SELECT factorial(2000) > 0"):
            await database.execute(sql)
            before = passes.count
            async with trio.open_nursery() as nursery:
                for _ in range(MANY):
                    nursery.start_soon(database.execute, sql)
            assert passes.count - before >= MANY


async def test_between_two_steps_a_pass_goes_by_without_one() -> None:
    async with counted_passes() as passes:
        before = passes.count
        for _ in range(100):
            await yield_to_others()
        assert passes.count - before >= 195


class SameOrder(Random):
    """Trio turns the tasks of a pass around if it draws less than a half."""

    def random(self) -> float:
        return 0.9


class LongWork:
    """Takes one step after the other, and counts them."""

    def __init__(self) -> None:
        self.steps = 0

    async def run(self) -> None:
        while True:
            await yield_to_others()
            self.steps += 1


@pytest.mark.parametrize("workers", [1, 3])
async def test_short_work_of_several_passes_does_not_wait_for_a_step_in_each(
    workers: int, autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a commit: it is never runnable in two places, and each of its passes takes a while.

    Trio draws the order of tasks in a pass. If it turned around from one pass to the next, nothing
    would have run between two looks of the long work; so here it is always the same.
    """
    monkeypatch.setattr("trio._core._run._ALLOW_DETERMINISTIC_SCHEDULING", True)
    monkeypatch.setattr("trio._core._run._r", SameOrder())
    work, seen = LongWork(), []

    async with trio.open_nursery() as nursery:
        for _ in range(workers):
            nursery.start_soon(work.run)
        for _ in range(20):
            await trio.lowlevel.checkpoint()
            before = work.steps
            for _ in range(PASSES_MAX):
                autojump_clock.jump(4 * PASS_SECONDS_QUIET)
                await trio.lowlevel.checkpoint()
            seen.append(work.steps - before)
        nursery.cancel_scope.cancel()
    assert max(seen) <= 2 < PASSES_MAX, "the one that was next, and one that lost its patience"
    assert work.steps >= len(seen) - 1, "and goes on when that is done"


@pytest.mark.parametrize("seconds", [2 * PASS_SECONDS_QUIET, 2 * PATIENCE_SECONDS])
async def test_long_work_goes_on_beside_short_work_without_an_end(
    seconds: float, autojump_clock: trio.testing.MockClock
) -> None:
    work = LongWork()

    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(work.run)
        for _ in range(100):
            autojump_clock.jump(seconds)
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert work.steps >= (15 if seconds < PATIENCE_SECONDS else 60)


@pytest.mark.parametrize(
    ("seconds", "least", "most"), [(0.0, 95, 170), (2 * STEP_SECONDS_LONG, 195, 300)]
)
async def test_a_step_that_took_long_is_followed_by_a_pass_without_one(
    seconds: float, least: int, most: int, autojump_clock: trio.testing.MockClock
) -> None:
    """Even beside short work that takes up all of each pass."""

    async def take_time() -> None:
        while True:
            autojump_clock.jump(2 * PATIENCE_SECONDS)
            await trio.lowlevel.checkpoint()

    async with counted_passes() as passes, trio.open_nursery() as nursery:
        nursery.start_soon(take_time)
        before = passes.count
        for _ in range(100):
            autojump_clock.jump(seconds)
            await yield_to_others()
        nursery.cancel_scope.cancel()
    assert least <= passes.count - before <= most


@pytest.mark.parametrize("given_up", range(MANY))
async def test_who_gives_up_leaves_the_line_and_the_others_go_on(given_up: int) -> None:
    steps: Counter[int] = Counter()
    scopes = [trio.CancelScope() for _ in range(MANY)]

    async def run(number: int) -> None:
        with scopes[number]:
            for _ in range(5):
                await yield_to_others()
                steps[number] += 1

    async with trio.open_nursery() as nursery:
        for number in range(MANY):
            nursery.start_soon(run, number)
        await yield_to_others()
        scopes[given_up].cancel()
    assert all(steps[number] == 5 for number in range(MANY) if number != given_up)
    assert steps[given_up] < 5
    with trio.fail_after(240):
        await yield_to_others()


async def test_a_statement_that_waits_for_its_step_ends_with_its_deadline(
    mock_clock: trio.testing.MockClock,
) -> None:
    """Past its deadline it leaves the line: it does not wait until all before it had a step."""
    many = 50
    ended: list[int] = []
    async with opened_sql() as database, counted_passes() as passes:
        endless = "SELECT count(*) FROM generate_series(1, 1000000000000)"

        async def run() -> None:
            with pytest.raises(QueryCanceled):
                await database.execute(endless, timeout_ms=200)
            ended.append(passes.count)

        async with trio.open_nursery() as nursery:
            for _ in range(many):
                nursery.start_soon(run)
            while passes.count < 4 * many:
                await trio.lowlevel.checkpoint()
            assert not ended
            before = passes.count
            mock_clock.jump(0.2)
    assert len(ended) == many
    assert max(ended) - before < many / 2, "a step in each pass, and all would take a step each"
