"""Sequences count as they are defined, each value once, also after a crash."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

from qserver.engine.sequence_values import SequenceValues, following
from qserver.errors import NumericValueOutOfRange, SequenceLimitExceeded
from qserver.limits import SEQUENCE_BLOCK
from qserver.values.relations import Sequence
from tests.engine.fakes import HeldLog, opened

UP = Sequence(7, "up")
DOWN = Sequence(8, "down", start=3, increment=-2, minimum=-2, maximum=5)
ROUND = Sequence(9, "round", start=2, increment=2, minimum=1, maximum=5, cycle=True)


async def take(values: SequenceValues, sequence: Sequence, count: int) -> list[int]:
    taken: list[int] = []
    while len(taken) < count:
        value = values.take_nowait(sequence)
        if value is None:
            await values.refill(sequence, count - len(taken))
        else:
            taken.append(value)
    return taken


async def test_values_follow_each_other_as_defined(autojump_clock: MockClock) -> None:
    async with opened() as database:
        values = SequenceValues(database.transact)
        assert await take(values, UP, 5) == [1, 2, 3, 4, 5]
        assert await take(values, DOWN, 3) == [3, 1, -1]
        assert await take(values, ROUND, 6) == [2, 4, 1, 3, 5, 1]
        assert await take(values, UP, 3 * SEQUENCE_BLOCK) == list(range(6, 6 + 3 * SEQUENCE_BLOCK))
        assert values.last[UP.id] == 5 + 3 * SEQUENCE_BLOCK


async def test_a_sequence_that_ends_says_so(autojump_clock: MockClock) -> None:
    async with opened() as database:
        values = SequenceValues(database.transact)
        await take(values, DOWN, 3)
        with pytest.raises(SequenceLimitExceeded) as caught:
            await take(values, DOWN, 1)
        assert str(caught.value) == 'nextval: reached minimum value of sequence "down" (-2)'


async def test_no_value_is_given_twice_after_a_crash(autojump_clock: MockClock) -> None:
    log = HeldLog()
    async with opened(log) as database:
        before = await take(SequenceValues(database.transact), UP, 10)
    async with opened(log) as database:
        after = await take(SequenceValues(database.transact), UP, 10)
    assert set(before).isdisjoint(after)
    assert after[0] == SEQUENCE_BLOCK + 1


async def test_setval_says_where_to_go_on(autojump_clock: MockClock) -> None:
    async with opened() as database:
        values = SequenceValues(database.transact)
        await take(values, UP, 3)
        await values.set(UP, 100, called=True)
        assert await take(values, UP, 2) == [101, 102]
        await values.set(UP, 50, called=False)
        assert await take(values, UP, 2) == [50, 51]
        with pytest.raises(NumericValueOutOfRange) as caught:
            await values.set(UP, 0, called=True)
        assert str(caught.value) == (
            'setval: value 0 is out of bounds for sequence "up" (1..9223372036854775807)'
        )


def test_what_follows_the_last_value_depends_on_cycle() -> None:
    assert following(DOWN, -1) is None
    assert following(ROUND, 4) == 1
    back = Sequence(1, "s", start=1, increment=-1, minimum=1, maximum=3, cycle=True)
    assert following(back, 1) == 3
