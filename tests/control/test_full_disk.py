"""What removes rows works on a disk that is full to its last byte, and the room comes back."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from qserver.durability.data_folder import DataFolder
from qserver.durability.reserve import RESERVE_FILE, Reserve
from qserver.engine import checkpointer
from qserver.errors import DiskFull, LogFailed, OutcomeUnknown, QserverError
from tests.control.planes import Opened, opened_plane
from tests.durability.small_disks import small_disk
from tests.sampling import sampled

DISK = 64 << 20
TABLE = "create table t (id integer primary key, text text)"
FILL = "insert into t select n, repeat('x', 2000) from generate_series({}, {}) n"
MORE = "insert into t values (0, 'more')"
REMOVALS = ("delete from t where id > 500", "truncate t", "drop table t")


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(checkpointer, "CHECKPOINT_RETRY_SECONDS", 0.05)
    with small_disk(tmp_path / "disk", str(DISK)) as folder:
        yield folder


async def filled(opened: Opened) -> None:
    await opened.run(opened.grant, TABLE)
    for first in range(1, 8000, 500):
        await opened.run(opened.grant, FILL.format(first, first + 499))
    await checkpoint(opened)
    await opened.plane.databases.logs.shrink(await database_id(opened))  # its write-ahead log, too
    await opened.plane.space.measure()


async def checkpoint(opened: Opened) -> None:
    with await opened.plane.database(opened.grant, None) as used, suppress(LogFailed):
        await used.database.checkpoint()


def fill_the_disk(folder: Path) -> None:
    """Leave no byte, as another program may."""
    with (folder / "ballast").open("ab", buffering=0) as ballast:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while ballast.write(bytes(size)) == size:
                    pass
            except OSError:
                pass


async def tried(opened: Opened, sql: str) -> bool:
    """Run a statement, again while its outcome is unknown; False if it cannot be run."""
    for _ in range(8):
        try:
            await opened.run(opened.grant, sql)
            return True
        except OutcomeUnknown:
            await opened.plane.space.measure()
            await trio.sleep(0.05)
        except QserverError as error:
            return error.code == "42P01"  # it was dropped, though nobody was told
    return False


@pytest.mark.long
@pytest.mark.parametrize("sql", sampled(REMOVALS, 1))
async def test_what_removes_rows_works_on_a_full_disk_and_frees_it(disk: Path, sql: str) -> None:
    async with opened_plane(DataFolder(disk)) as opened:
        await filled(opened)
        assert (disk / RESERVE_FILE).stat().st_size == DISK // 16
        fill_the_disk(disk)
        size = opened.plane.databases.logs.size_bytes(await database_id(opened))
        await opened.plane.space.measure()
        with pytest.raises(DiskFull, match="almost full") as refused:
            await opened.run(opened.grant, MORE)
        del refused
        assert await tried(opened, sql)
        assert await has_room_again(opened)
        assert opened.plane.databases.logs.size_bytes(await database_id(opened)) < size * 3 // 4


async def has_room_again(opened: Opened, tries: int = 40) -> bool:
    """Return whether something can be stored, after some time."""
    gc.collect()  # errors hold snapshots, and so pages
    for _ in range(tries):
        await opened.plane.space.measure()
        await checkpoint(opened)
        with suppress(DiskFull):
            await opened.run(opened.grant, "create table more (id integer)")
            return True
    return False


async def database_id(opened: Opened) -> str:
    with await opened.plane.database(opened.grant, None) as used:
        return used.id


@pytest.mark.long
async def test_without_a_reserve_nothing_can_be_removed(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Reserve, "hold", lambda self, size: None)
    async with opened_plane(DataFolder(disk)) as opened:
        await filled(opened)
        fill_the_disk(disk)
        assert not await tried(opened, REMOVALS[0])
        (disk / "ballast").unlink()


@pytest.mark.long
async def test_a_shorter_history_frees_what_a_full_disk_holds(disk: Path) -> None:
    async with opened_plane(DataFolder(disk), history=3600.0) as opened:
        await filled(opened)
        fill_the_disk(disk)
        await opened.plane.space.measure()
        assert await tried(opened, REMOVALS[0])
        assert not await has_room_again(opened, tries=3), "history needs it"
        opened.plane.databases.keep_history(await database_id(opened), 0.0)
        assert await has_room_again(opened)


@pytest.mark.long
async def test_the_reserve_comes_back_when_there_is_room(disk: Path) -> None:
    async with opened_plane(DataFolder(disk)) as opened:
        await filled(opened)
        fill_the_disk(disk)
        await opened.plane.space.measure()
        assert not (disk / RESERVE_FILE).exists()
        await opened.plane.space.measure()
        assert not (disk / RESERVE_FILE).exists()
        (disk / "ballast").unlink()
        await opened.plane.space.measure()
        assert (disk / RESERVE_FILE).stat().st_size == DISK // 16
