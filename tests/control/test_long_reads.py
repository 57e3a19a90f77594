"""Long reads of a database that is written go to those that follow it, in turns."""

from __future__ import annotations

import pytest

from qserver.control.long_reads import GivenAway, LongReads


def taker(reads: LongReads, version: int) -> int | None:
    """The process that is given a read of this version; None: it stays."""
    try:
        reads.give_away(version)
    except GivenAway as given:
        return given.process
    return None


@pytest.fixture
def reads() -> LongReads:
    return LongReads("d")


def test_without_a_follower_they_stay(reads: LongReads) -> None:
    assert taker(reads, 1) is None


def test_followers_take_turns(reads: LongReads) -> None:
    reads.add(1)
    reads.add(2)
    assert sorted(taker(reads, version) or 0 for version in (1, 2, 3, 4)) == [1, 1, 2, 2]


def test_they_stay_while_nothing_is_written(reads: LongReads) -> None:
    reads.add(1)
    assert [taker(reads, version) for version in (5, 5, 5, 6, 6)] == [1, None, None, 1, None]


def test_who_follows_no_longer_gets_none(reads: LongReads) -> None:
    reads.add(1)
    reads.add(1)  # again, before its last stream has ended
    reads.remove(1)
    assert taker(reads, 1) == 1
    reads.remove(1)
    assert taker(reads, 2) is None
