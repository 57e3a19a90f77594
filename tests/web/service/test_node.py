"""How a node begins while the log's nodes do not answer."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from qserver.errors import LogFailed, LogTaken
from qserver.web.service.node import BEGIN_SECONDS, begin_patiently


class Log:
    """Its nodes answer after some seconds; until then each question takes a while."""

    def __init__(self, seconds: float) -> None:
        self._until = trio.current_time() + seconds
        self.asked = 0

    async def begin(self) -> None:
        self.asked += 1
        if trio.current_time() < self._until:
            await trio.sleep(4)
            raise LogFailed("the nodes of the log did not answer")


async def test_a_node_that_starts_during_an_election_waits_for_its_end(
    autojump_clock: MockClock,
) -> None:
    log = Log(11)
    await begin_patiently(log.begin)
    assert log.asked == 4


async def test_a_node_whose_log_stays_away_ends(autojump_clock: MockClock) -> None:
    began = trio.current_time()
    with pytest.raises(LogFailed):
        await begin_patiently(Log(1000).begin)
    assert trio.current_time() - began >= BEGIN_SECONDS


async def test_a_node_whose_name_is_taken_ends_at_once(autojump_clock: MockClock) -> None:
    async def taken() -> None:
        raise LogTaken("another node has the name")

    with pytest.raises(LogTaken):
        await begin_patiently(taken)
    assert trio.current_time() == 0.0
