"""Every log keeps the promises of the port: the one in memory and the one in a file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from qserver.durability.memory import MemoryLog
from qserver.durability.port import Log
from qserver.durability.sqlite import open_log
from qserver.durability.sqlite_file import READ_BYTES
from qserver.errors import DataCorrupted


@asynccontextmanager
async def log_of(kind: str, folder: Path) -> AsyncIterator[Log]:
    if kind == "memory":
        yield MemoryLog()
    else:
        async with await open_log(folder / "data") as log:
            yield log


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(params=["memory", "file"])
async def log(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Log]:
    async with log_of(request.param, tmp_path) as made:
        yield made


async def test_records_are_read_in_order_from_any_version_and_at_most_as_many_as_asked(
    log: Log,
) -> None:
    assert await log.read(0, 10) == []
    await log.append([(1, b"one"), (2, b"two")])
    await log.append([(3, b"three")])
    assert await log.read(0, 10) == [(1, b"one"), (2, b"two"), (3, b"three")]
    assert await log.read(0, 2) == [(1, b"one"), (2, b"two")]
    assert await log.read(2, 10) == [(3, b"three")]
    assert await log.read(3, 10) == []


async def test_a_fence_tells_whether_all_was_read(log: Log) -> None:
    assert await log.fence(0)
    await log.append([(1, b"one"), (2, b"two")])
    assert [await log.fence(version) for version in (0, 1, 2)] == [False, False, True]
    with pytest.raises(DataCorrupted, match="ends with version 2, and 3 was durable"):
        await log.fence(3)
    await log.save_checkpoint(2, b"a checkpoint")
    await log.forget(2, [])
    assert not await log.fence(1)
    assert await log.fence(2)


async def test_pages_are_read_in_the_order_of_their_numbers(log: Log) -> None:
    await log.save_pages([(7, b"seven"), (2, b"two")])
    await log.save_pages([(3, b"three")])
    assert await log.load_pages(0, 10) == [(2, b"two"), (3, b"three"), (7, b"seven")]
    assert await log.load_pages(2, 1) == [(3, b"three")]
    assert await log.load_pages(7, 10) == []


async def test_the_newest_checkpoint_is_the_checkpoint(log: Log) -> None:
    assert await log.load_checkpoint() is None
    await log.save_checkpoint(3, b"three")
    await log.save_checkpoint(9, b"nine")
    assert await log.load_checkpoint() == (9, b"nine")


async def test_what_is_forgotten_is_gone_and_the_rest_stays(log: Log) -> None:
    await log.append([(version, b"x") for version in range(1, 6)])
    await log.save_pages([(number, b"p") for number in range(1, 6)])
    await log.save_checkpoint(3, b"three")
    await log.forget(3, [2, 4])
    assert await log.read(0, 10) == [(4, b"x"), (5, b"x")]
    assert [number for number, _ in await log.load_pages(0, 10)] == [1, 3, 5]
    await log.forget(3, [2, 99])  # again, and what never was: no harm
    await log.append([(6, b"y")])
    assert await log.read(5, 10) == [(6, b"y")]


async def test_versions_go_on_behind_a_checkpoint_that_left_no_record(log: Log) -> None:
    await log.append([(1, b"x"), (2, b"x")])
    await log.save_checkpoint(2, b"two")
    await log.forget(2, [])
    assert await log.read(0, 10) == []
    await log.append([(3, b"y")])
    assert await log.read(2, 10) == [(3, b"y")]


async def test_large_records_come_a_few_at_a_time_but_all_of_them(tmp_path: Path) -> None:
    async with log_of("file", tmp_path) as log:
        large = bytes(READ_BYTES)
        await log.append([(version, large) for version in range(1, 4)])
        assert [version for version, _ in await log.read(0, 10)] == [1]
        assert [version for version, _ in await log.read(1, 10)] == [2]


async def test_a_file_holds_everything_when_it_is_opened_again(tmp_path: Path) -> None:
    async with log_of("file", tmp_path) as log:
        await log.append([(1, b"one"), (2, b"two")])
        await log.save_pages([(1, b"page")])
        await log.save_checkpoint(1, b"checkpoint")
    assert names_in(tmp_path) == ["data", "data-mark"], "one file, and its mark"
    async with log_of("file", tmp_path) as log:
        assert await log.read(0, 10) == [(1, b"one"), (2, b"two")]
        assert await log.load_pages(0, 10) == [(1, b"page")]
        assert await log.load_checkpoint() == (1, b"checkpoint")
