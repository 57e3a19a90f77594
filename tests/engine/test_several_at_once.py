"""Several long statements at once share the loop: a neighbour waits for one step, not for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator

import pytest
import trio

from qserver.engine.work import begin, finish
from qserver.engine.yielding import STEP_SECONDS_LONG, yield_to_others
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


async def test_a_step_that_took_long_is_followed_by_a_pass_without_one(
    autojump_clock: trio.testing.MockClock,
) -> None:
    counts = []
    async with counted_passes() as passes:
        for seconds in (0.0, 2 * STEP_SECONDS_LONG):
            before = passes.count
            for _ in range(100):
                await yield_to_others()
                autojump_clock.jump(seconds)
            counts.append(passes.count - before)
    assert 98 <= counts[0] <= 102
    assert 198 <= counts[1] <= 202


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


async def test_a_statement_that_waits_for_its_step_ends_with_its_deadline() -> None:
    clock = trio.current_time
    ended: list[float] = []
    async with opened_sql() as database:
        endless = "SELECT count(*) FROM generate_series(1, 1000000000000)"

        async def run() -> None:
            with pytest.raises(QueryCanceled):
                await database.execute(endless, timeout_ms=200)
            ended.append(clock())

        began = clock()
        async with trio.open_nursery() as nursery:
            for _ in range(50):
                nursery.start_soon(run)
    assert len(ended) == 50
    assert max(ended) - began < 1.2
