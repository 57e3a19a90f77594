"""The log in memory keeps the promises of the port, as long as its object lasts."""

from __future__ import annotations

import pytest

from qserver.durability.memory import MemoryLog
from qserver.durability.port import Log


async def test_records_are_read_in_order_from_any_version_and_at_most_as_many_as_asked() -> None:
    log: Log = MemoryLog()
    assert await log.read(0, 10) == []
    await log.append([(1, b"one"), (2, b"two")])
    await log.append([(3, b"three")])
    assert await log.read(0, 10) == [(1, b"one"), (2, b"two"), (3, b"three")]
    assert await log.read(0, 2) == [(1, b"one"), (2, b"two")]
    assert await log.read(2, 10) == [(3, b"three")]
    assert await log.read(3, 10) == []


@pytest.mark.parametrize("version", [1, 3])
async def test_a_version_that_does_not_follow_is_our_own_mistake(version: int) -> None:
    log = MemoryLog()
    await log.append([(1, b"one")])
    with pytest.raises(AssertionError, match="versions follow each other"):
        await log.append([(version, b"again")])


async def test_the_log_reads_as_a_sentence() -> None:
    log = MemoryLog()
    await log.append([(1, b"one"), (2, b"two")])
    assert repr(log) == "a log in memory with 2 records, 6 bytes"
