"""Readers without an end: how many an organization may have, and what wakes them."""

from __future__ import annotations

from collections import Counter

import pytest
import trio
from trio.testing import MockClock

from qserver.errors import DatabaseUnavailable, TooManyOpen
from qserver.limits import KEEP_ALIVE_SECONDS
from qserver.web.statuses import headers_of, status_of
from qserver.web.streaming.readers import POLL_SECONDS, TURN_READERS, Readers


async def test_an_organization_has_so_many_and_no_more() -> None:
    readers = Readers("live queries", lambda: 1)
    first, _ = readers.open("a", 2), readers.open("a", 2)
    with pytest.raises(TooManyOpen) as refused:
        readers.open("a", 2)
    assert (status_of(refused.value), headers_of(refused.value)) == (429, [(b"retry-after", b"1")])
    readers.open("b", 1000)
    first.close()
    first.close()
    readers.open("a", 2)
    assert len(readers) == 3


async def test_a_change_of_control_records_wakes_all(autojump_clock: MockClock) -> None:
    versions = [1]
    readers = Readers("live queries", lambda: versions[-1])
    woken: list[str] = []
    reader = readers.open("a", 1000)
    reader.wake = lambda: woken.append("a")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(readers.run)
        await trio.sleep(3 * POLL_SECONDS)
        assert woken == []
        versions.append(2)
        await trio.sleep(1.5 * POLL_SECONDS)
        assert woken == ["a"]
        await trio.sleep(KEEP_ALIVE_SECONDS)
        assert woken[:2] == ["a", "a"] and reader.is_silent
        nursery.cancel_scope.cancel()


async def test_none_begins_when_the_service_stops() -> None:
    readers = Readers("live queries", lambda: 1)
    readers.end()
    with pytest.raises(DatabaseUnavailable, match="stopping"):
        readers.open("a", 2)


async def test_readers_take_turns(autojump_clock: MockClock) -> None:
    """Each pauses, and few send at once, although all have begun at once."""
    readers = Readers("readers", lambda: 1)
    sent: list[float] = []

    async def read() -> None:
        reader = readers.open("a", 1000)
        for _ in range(10):
            sent.append(trio.current_time())
            await trio.sleep_until(reader.next_turn(0.1, 2.0, 0.01))
        reader.close()

    async with trio.open_nursery() as nursery:
        for _ in range(40):
            nursery.start_soon(read)
    turns = Counter(round(each, 6) for each in sent if each != sent[0])
    assert max(turns.values()) <= TURN_READERS + 1  # floats are not exact
    span = max(turns) - min(turns)
    assert span == pytest.approx(40 * 9 * 0.01, rel=0.1), "nobody waits for longer"
    alone = readers.open("a", 1000)
    for _ in range(3):
        began = trio.current_time()
        await trio.sleep_until(alone.next_turn(0.1, 2.0, 0.01))
        assert 0.1 <= trio.current_time() - began <= 0.1 + 0.01 * TURN_READERS
    for _ in range(1000):  # they come, take a turn, and leave
        readers.open("b", 1000).next_turn(0.1, 2.0, 0.01)
    assert alone.next_turn(0.1, 2.0, 0.01) - trio.current_time() <= 2.0 + 0.01 * TURN_READERS


async def test_the_end_of_the_service_ends_them() -> None:
    readers = Readers("live queries", lambda: 1)
    reader = readers.open("a", 1000)
    reader.check()
    readers.end()
    with pytest.raises(DatabaseUnavailable, match="stopping"):
        reader.check()


async def test_a_reader_that_is_roused_while_it_is_busy_does_not_wait(
    autojump_clock: MockClock,
) -> None:
    reader = Readers("live queries", lambda: 1).open("a", 1000)
    reader.rouse()
    with trio.fail_after(1):
        await reader.wait(trio.sleep_forever)
    with trio.move_on_after(1) as waited:
        await reader.wait(trio.sleep_forever)
    assert waited.cancelled_caught
