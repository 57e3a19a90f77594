"""A disk that is really full: a file system of 600 KB in memory, which takes root to mount."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from qserver.durability.sqlite import open_log
from qserver.engine.database import Database
from qserver.errors import OutcomeUnknown
from tests.durability.small_disks import small_disk
from tests.engine import counters
from tests.engine.fakes import Laboratory


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", "600k") as folder:
        yield folder


async def test_commits_fail_reads_go_on_and_all_is_well_when_there_is_room(
    disk: Path,
) -> None:
    ballast = disk / "ballast"
    async with await open_log(disk / "data") as log:
        database = Database(log, Laboratory())
        async with trio.open_nursery() as nursery:
            await nursery.start(database.run)
            await database.transact(counters.create(5))
            ballast.write_bytes(bytes(350_000))
            acknowledged = 0
            for _ in range(3):  # it is full, opened again with a little more room, and full again
                with pytest.raises(OutcomeUnknown):
                    while True:
                        await database.transact(counters.increment(1))
                        acknowledged += 1
                assert (await counters.read(database, counters.look(1))).result == acknowledged
                assert "is full" in str(database.trouble)
            ballast.unlink()
            assert (await database.transact(counters.increment(1))).result == [acknowledged + 1]
            await database.close()
