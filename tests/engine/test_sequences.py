"""Numbers of a sequence are handed out once, whatever happens; gaps are all that a crash leaves."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from qserver.engine.database import Database
from qserver.engine.sequence_states import ROW_IDS
from qserver.engine.sequences import Sequences
from qserver.errors import NumericValueOutOfRange, SequenceLimitExceeded
from qserver.limits import ROW_ID_BLOCK, SEQUENCE_BLOCK
from qserver.values.relations import Sequence
from tests.engine.fakes import HeldLog, Laboratory, opened, until_restarted

ONE = Sequence(-1, "one")
TWO = Sequence(-2, "two")
DOWN = Sequence(-3, "down", start=3, increment=-2, minimum=-2, maximum=5)
ROUND = Sequence(-4, "round", start=2, increment=2, minimum=1, maximum=5, cycle=True)


def numbers(first: int, last: int) -> list[int]:
    return list(range(first, last + 1))


async def test_numbers_begin_at_1_and_follow_each_other() -> None:
    async with opened() as database:
        assert [await database.sequences.take(ONE) for _ in range(3)] == [[1], [2], [3]]
        assert await database.sequences.take(ONE, 5) == numbers(4, 8)


async def test_sequences_do_not_know_of_each_other() -> None:
    async with opened() as database:
        assert await database.sequences.take(ONE, 2) == [1, 2]
        assert await database.sequences.take(TWO, 2) == [1, 2]
        assert await database.sequences.take(ONE, 2) == [3, 4]


async def test_numbers_follow_each_other_as_defined() -> None:
    async with opened() as database:
        assert await database.sequences.take(DOWN, 2) == [3, 1]
        assert await database.sequences.take(ROUND, 7) == [2, 4, 1, 3, 5, 1, 3]
        assert await database.sequences.take(ROUND, 2) == [5, 1]


async def test_a_sequence_that_ends_gives_what_there_is_and_then_says_so() -> None:
    async with opened() as database:
        assert await database.sequences.take(DOWN, 9) == [3, 1, -1]
        with pytest.raises(SequenceLimitExceeded) as caught:
            await database.sequences.take(DOWN)
        assert str(caught.value) == 'nextval: reached minimum value of sequence "down" (-2)'
        await database.sequences.set(DOWN, 1, called=False)
        assert await database.sequences.take(DOWN) == [1]
        assert await database.sequences.take(DOWN, 2) == [-1], "cached values are given"


async def test_a_block_is_reserved_once_for_many_numbers() -> None:
    log = HeldLog()
    async with opened(log) as database:
        for number in range(1, SEQUENCE_BLOCK + 1):
            assert await database.sequences.take(ONE) == [number]
        assert log.versions == 1
        await database.sequences.take(ONE)
        assert log.versions == 2


@pytest.mark.parametrize(
    ("cache", "block"),
    [(1, SEQUENCE_BLOCK), (1000, 1000), (2**62, ROW_ID_BLOCK)],
)
async def test_a_block_is_as_long_as_the_cache_of_the_sequence_within_bounds(
    cache: int, block: int
) -> None:
    log = HeldLog()
    async with opened(log) as database:
        await database.sequences.take(Sequence(-1, "one", cache=cache))
    async with opened(log) as database:
        assert await database.sequences.take(ONE) == [block + 1]


async def test_row_ids_are_a_sequence_like_any_other() -> None:
    async with opened() as database:
        assert await database.sequences.take(ROW_IDS, 3) == [1, 2, 3]
        assert database.sequences.take_nowait(ROW_IDS) == 4


@pytest.mark.parametrize("count", [SEQUENCE_BLOCK, SEQUENCE_BLOCK + 1, 10 * SEQUENCE_BLOCK + 3])
async def test_any_number_of_numbers_comes_in_one_row(count: int) -> None:
    async with opened() as database:
        await database.sequences.take(ONE, 3)
        taken = await database.sequences.take(ONE, count)
        assert taken == numbers(4, 3 + count), "cached values are used up first"
        assert await database.sequences.take(ONE) == [4 + count]


async def take_concurrently(database: Database, takers: int, count: int = 1) -> list[int]:
    taken: list[int] = []

    async def take() -> None:
        for _ in range(5):
            mine = await database.sequences.take(ONE, count)
            assert len(mine) == count
            taken.extend(mine)

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
            taken.extend(await database.sequences.take(ONE))

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
async def test_a_restart_in_the_middle_of_a_reservation_costs_numbers_and_repeats_none(
    autojump_clock: MockClock, written: bool
) -> None:
    log, world = HeldLog(), Laboratory()
    async with opened(log, world) as database:
        before = await database.sequences.take(ONE, SEQUENCE_BLOCK)
        log.fails_after_append, log.fails_before_append = written, not written
        async with trio.open_nursery() as nursery:

            async def heal() -> None:
                await until_restarted(database)
                log.fails_after_append = log.fails_before_append = False

            nursery.start_soon(heal)
            after = await database.sequences.take(ONE, SEQUENCE_BLOCK)
        assert before == numbers(1, SEQUENCE_BLOCK)
        assert after[0] == SEQUENCE_BLOCK * (2 if written else 1) + 1
        assert len(after) == SEQUENCE_BLOCK


async def test_cached_numbers_stay_good_through_a_restart(autojump_clock: MockClock) -> None:
    world = Laboratory()
    async with opened(world=world) as database:
        assert await database.sequences.take(ONE, 10) == numbers(1, 10)
        world.kill("shard 1")
        await until_restarted(database)
        assert await database.sequences.take(ONE, 10) == numbers(11, 20)


async def test_cached_numbers_can_be_taken_without_waiting_and_no_others() -> None:
    log = HeldLog()
    async with opened(log) as database:
        sequences = database.sequences
        assert sequences.take_nowait(ONE) is None
        await sequences.take(ONE)
        for number in range(2, SEQUENCE_BLOCK + 1):
            assert sequences.take_nowait(ONE) == number
        assert sequences.take_nowait(ONE) is None
        assert log.versions == 1


async def test_the_numbers_of_another_state_are_not_cached() -> None:
    async with opened() as database:
        await database.sequences.take(ONE)
        assert database.sequences.has_cached(ONE)
        other = Sequence(-1, "one", state=-9)
        assert not database.sequences.has_cached(other)
        assert database.sequences.take_nowait(other) is None


# --- numbers that come back ---


def give_back(sequences: Sequences, *unused: int, before: int | None = None) -> None:
    sequences.give_back(ONE.id, ONE.state, unused, before)


async def test_numbers_that_were_not_used_come_next_again() -> None:
    async with opened() as database:
        sequences = database.sequences
        assert await sequences.take(ONE, 5) == numbers(1, 5)
        give_back(sequences, 4, 5, before=3)
        give_back(sequences, 3)
        assert await sequences.take(ONE, 4) == numbers(3, 6)
        assert await sequences.take(ONE, SEQUENCE_BLOCK) == numbers(7, 6 + SEQUENCE_BLOCK)


async def test_numbers_do_not_come_back_when_others_were_given_since() -> None:
    """Else somebody would be given a number that is before one that was answered long ago."""
    async with opened() as database:
        sequences = database.sequences
        assert await sequences.take(ONE, 5) == numbers(1, 5)
        assert sequences.take_nowait(ONE) == 6
        give_back(sequences, 4, 5)
        assert sequences.take_nowait(ONE) == 7
        give_back(sequences, 5, 7)
        assert sequences.take_nowait(ONE) == 8


async def test_numbers_do_not_come_back_behind_setval() -> None:
    async with opened() as database:
        sequences = database.sequences
        assert await sequences.take(ONE, 5) == numbers(1, 5)
        await sequences.set(ONE, 2, called=True)
        give_back(sequences, 4, 5)
        assert await sequences.take(ONE) == [3]


async def test_numbers_of_a_circle_come_back_in_front_of_its_beginning() -> None:
    async with opened() as database:
        sequences = database.sequences
        assert await sequences.take(ROUND, 5) == [2, 4, 1, 3, 5]
        assert sequences.take_nowait(ROUND) == 1
        sequences.give_back(ROUND.id, ROUND.state, [1], 5)
        sequences.give_back(ROUND.id, ROUND.state, [3, 5], 1)
        assert await sequences.take(ROUND, 4) == [3, 5, 1, 3]


# --- the state tells what was given last ---


@pytest.mark.parametrize("given", [1, 5, SEQUENCE_BLOCK, SEQUENCE_BLOCK + 1])
async def test_what_is_written_back_leaves_no_gap_after_a_crash(given: int) -> None:
    log = HeldLog()
    async with opened(log) as database:
        for _ in range(given):
            await database.sequences.take(ONE)
        await database.sequences.write_back(ONE)
        await database.sequences.write_back(ONE)
        assert not database.sequences.has_cached(ONE)
    async with opened(log) as database:
        assert await database.sequences.take(ONE) == [given + 1]


async def test_a_number_that_came_back_is_written_back_as_not_given() -> None:
    async with opened() as database:
        sequences = database.sequences
        await sequences.take(ONE)
        give_back(sequences, 1)
        await sequences.write_back(ONE)
        assert await sequences.take(ONE) == [1]


async def test_numbers_are_gone_from_the_hand_before_they_are_written_back() -> None:
    log = HeldLog()
    async with opened(log) as database, trio.open_nursery() as nursery:
        await database.sequences.take(ONE)
        log.hold()
        nursery.start_soon(database.sequences.write_back, ONE)
        await wait_all_tasks_blocked()
        assert database.sequences.take_nowait(ONE) is None
        log.release()


async def test_setval_says_where_to_go_on() -> None:
    async with opened() as database:
        sequences = database.sequences
        await sequences.take(ONE, 3)
        await sequences.set(ONE, 100, called=True)
        assert await sequences.take(ONE, 2) == [101, 102]
        await sequences.set(ONE, 50, called=False)
        assert await sequences.take(ONE, 2) == [50, 51]
        with pytest.raises(NumericValueOutOfRange) as caught:
            await sequences.set(ONE, 0, called=True)
        assert str(caught.value) == (
            'setval: value 0 is out of bounds for sequence "one" (1..9223372036854775807)'
        )
