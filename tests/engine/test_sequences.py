"""Numbers of a sequence are handed out once, whatever happens; gaps are all that a crash leaves."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from qserver.engine.database import Database
from qserver.limits import SEQUENCE_BLOCK
from tests.engine.fakes import HeldLog, Laboratory, opened, until_fallen


async def test_numbers_begin_at_1_and_follow_each_other() -> None:
    async with opened() as database:
        assert [list(await database.sequences.take(1)) for _ in range(3)] == [[1], [2], [3]]
        assert await database.sequences.take(1, 5) == range(4, 9)


async def test_sequences_do_not_know_of_each_other() -> None:
    async with opened() as database:
        assert await database.sequences.take(1, 2) == range(1, 3)
        assert await database.sequences.take(2, 2) == range(1, 3)
        assert await database.sequences.take(1, 2) == range(3, 5)


async def test_a_block_is_reserved_once_for_many_numbers() -> None:
    log = HeldLog()
    async with opened(log) as database:
        for number in range(1, SEQUENCE_BLOCK + 1):
            assert await database.sequences.take(1) == range(number, number + 1)
        assert log.versions == 1
        await database.sequences.take(1)
        assert log.versions == 2


@pytest.mark.parametrize("count", [SEQUENCE_BLOCK, SEQUENCE_BLOCK + 1, 10 * SEQUENCE_BLOCK + 3])
async def test_any_number_of_numbers_comes_in_one_row(count: int) -> None:
    async with opened() as database:
        await database.sequences.take(1, 3)
        taken = await database.sequences.take(1, count)
        assert taken == range(4, 4 + count), "what was in hand is used up first"
        assert await database.sequences.take(1) == range(4 + count, 5 + count)


async def take_concurrently(database: Database, takers: int, count: int = 1) -> list[int]:
    taken: list[int] = []

    async def take() -> None:
        for _ in range(5):
            numbers = await database.sequences.take(1, count)
            assert len(numbers) == count
            taken.extend(numbers)

    async with trio.open_nursery() as nursery:
        for _ in range(takers):
            nursery.start_soon(take)
    return taken


@pytest.mark.parametrize("count", [1, 7, SEQUENCE_BLOCK + 1])
async def test_concurrent_takers_never_get_the_same_number(count: int) -> None:
    async with opened() as database:
        taken = await take_concurrently(database, takers=50, count=count)
        assert len(taken) == 250 * count
        assert len(set(taken)) == len(taken)


async def test_one_reservation_serves_all_who_wait_for_it() -> None:
    log = HeldLog()
    async with opened(log) as database:
        assert sorted(await take_concurrently(database, takers=20)) == list(range(1, 101))
        assert log.versions == 1


async def test_no_number_is_given_away_before_its_reservation_is_durable() -> None:
    log = HeldLog()
    taken: list[int] = []
    async with opened(log) as database, trio.open_nursery() as nursery:
        log.hold()

        async def take() -> None:
            taken.extend(await database.sequences.take(1))

        nursery.start_soon(take)
        await wait_all_tasks_blocked()
        assert taken == []
        log.release()
        await wait_all_tasks_blocked()
        assert taken == [1]


async def test_a_database_that_is_opened_again_goes_on_behind_all_numbers_it_has_given() -> None:
    log = HeldLog()
    taken: list[int] = []
    for _ in range(3):
        async with opened(log) as database:
            taken += await take_concurrently(database, takers=10)
    assert len(set(taken)) == len(taken) == 150
    assert max(taken) <= 3 * SEQUENCE_BLOCK


@pytest.mark.parametrize("written", [True, False])
async def test_a_fall_in_the_middle_of_a_reservation_costs_numbers_and_repeats_none(
    autojump_clock: MockClock, written: bool
) -> None:
    log, world = HeldLog(), Laboratory()
    async with opened(log, world) as database:
        before = await database.sequences.take(1, SEQUENCE_BLOCK)
        log.fails_after_append, log.fails_before_append = written, not written
        async with trio.open_nursery() as nursery:

            async def heal() -> None:
                await until_fallen(database)
                log.fails_after_append = log.fails_before_append = False

            nursery.start_soon(heal)
            after = await database.sequences.take(1, SEQUENCE_BLOCK)
        assert before == range(1, SEQUENCE_BLOCK + 1)
        assert after.start == SEQUENCE_BLOCK * (2 if written else 1) + 1
        assert len(after) == SEQUENCE_BLOCK


async def test_numbers_in_hand_stay_good_through_a_fall(autojump_clock: MockClock) -> None:
    world = Laboratory()
    async with opened(world=world) as database:
        assert await database.sequences.take(1, 10) == range(1, 11)
        world.kill("shard 1")
        await until_fallen(database)
        assert await database.sequences.take(1, 10) == range(11, 21)


async def test_what_is_in_hand_can_be_taken_without_waiting_and_no_more_than_that() -> None:
    log = HeldLog()
    async with opened(log) as database:
        assert database.sequences.take_nowait(1) is None
        await database.sequences.refill(1, count=2, block=3)
        await database.sequences.refill(1, count=3, block=3)  # they are there already
        assert log.versions == 1
        assert [database.sequences.take_nowait(1) for _ in range(4)] == [1, 2, 3, None]
        await database.sequences.refill(1, count=5, block=3)
        assert await database.sequences.take(1, 5) == range(4, 9)
