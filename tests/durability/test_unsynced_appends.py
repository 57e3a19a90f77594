"""A file whose appends are not synced may become older, and is whole."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from qserver.durability.high_water_mark import ENDING
from qserver.durability.sqlite import open_log


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    made: list[int] = []
    real = os.fdatasync

    def fdatasync(file: int) -> None:
        made.append(file)
        real(file)

    monkeypatch.setattr(os, "fdatasync", fdatasync)
    return made


async def test_appends_wait_for_no_sync(tmp_path: Path, syncs: list[int]) -> None:
    async with await open_log(tmp_path / "a.qserver", syncs_appends=False) as log:
        syncs.clear()
        for version in range(1, 20):
            await log.append([(version, b"record")])
        assert syncs == []
        await log.sync_pages()
        assert len(syncs) == 1
        await log.save_pages([(1, b"page")])
        assert len(syncs) == 2, "what others may build on is synced as always"


async def test_a_log_torn_in_its_middle_ends_there(tmp_path: Path) -> None:
    path = tmp_path / "a.qserver"
    log = await open_log(path, syncs_appends=False)
    for version in range(1, 20):
        await log.append([(version, b"record" * 100)])
    copies = {name: (tmp_path / name).read_bytes() for name in ("a.qserver", "a.qserver-wal")}
    await log.aclose()
    for torn in (2, 9):
        folder = tmp_path / str(torn)
        folder.mkdir()
        for name, data in copies.items():
            cut = bytearray(data)
            if name.endswith("-wal"):
                at = 32 + torn * (24 + 4096) + 100  # a head, frames with a page each
                cut[at : at + 50] = b"\xa5" * 50
            (folder / name).write_bytes(cut)
        async with await open_log(folder / "a.qserver", syncs_appends=False) as log:
            found = [version for version, _ in await log.read(0, 100)]
            assert found == list(range(1, len(found) + 1))
            assert len(found) < 19
            await log.append([(len(found) + 1, b"again")])


def mark_of(path: Path) -> bytes:
    return Path(f"{path}{ENDING}").read_bytes()


async def test_a_mark_of_earlier_days_refuses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.qserver"
    async with await open_log(path) as log:
        await log.append([(1, b"one")])
        await log.append([(2, b"two")])
    mark = mark_of(path)
    async with await open_log(path, syncs_appends=False) as log:
        await log.append([(3, b"three")])
    assert mark_of(path) == mark
    async with await open_log(path) as log:
        assert len(await log.read(0, 9)) == 3
