"""Log nodes in memory keep what the port promises."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio

from qserver.errors import LogFailed
from qserver.replication.memory import MemoryNodes
from qserver.replication.port import LogNodes
from tests.replication.port_contract import PortContract


class TestMemoryNodes(PortContract):
    @pytest.fixture
    async def candidate(self) -> AsyncIterator[LogNodes]:
        await trio.lowlevel.checkpoint()
        yield MemoryNodes()


async def test_a_stream_is_removed_for_all_who_have_it_open() -> None:
    nodes: LogNodes = MemoryNodes()
    stream = await nodes.open_stream("F")
    assert await nodes.find_stream("F") is stream is await nodes.open_stream("F")
    await nodes.remove_stream("F")
    with pytest.raises(LogFailed):
        await stream.append(b"", 0)
    assert await nodes.open_stream("F") is not stream
