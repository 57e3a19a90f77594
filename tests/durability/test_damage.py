"""A file that was cut or damaged gives what was acknowledged, or a refusal; never a wrong row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from qserver.durability.recovery import recover
from qserver.durability.saved_pages import SavedPages
from qserver.durability.sqlite import open_log
from qserver.durability.write_ahead_log import FRAME, HEAD, is_damaged
from qserver.errors import DataCorrupted, QserverError
from qserver.storage.snapshot import Snapshot
from tests.durability.histories import History, run_step, same, save
from tests.sampling import NIGHTLY, drawn

VERSIONS = 6
STEP = 509


class Crashed:
    """What a killed process leaves: a main file, and a write-ahead log with the last versions.

    Version 1 is in a checkpoint, version 2 behind it in the main file, the others in the log.
    """

    def __init__(self) -> None:
        self.main = self.log = self.closed = b""
        self.snapshots: dict[int, Snapshot] = {}
        self.records: dict[int, bytes] = {}

    async def make(self, folder: Path) -> Crashed:
        history = History(1)
        path = folder / "crashed"
        async with await open_log(path) as log:
            for version in range(1, VERSIONS + 1):
                run_step(history, ("t", [(version, f"word {version}")], "nothing"))
                self.records |= history.records
                self.snapshots[version] = history.snapshot
                await history.append_to(log)
                if version == 1:
                    await save(log, SavedPages(), history.snapshot)
                if version == 2:
                    connection = log._file._open
                    assert connection is not None
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                    log._file._foreign.leave(log._file._wal.descriptor)  # it was not somebody else
            self.main, self.log = path.read_bytes(), path.with_name("crashed-wal").read_bytes()
        self.closed = path.read_bytes()
        return self

    def interesting(self, data: bytes) -> list[int]:
        """Every byte of the last records and of heads, and of all others some; by day a third."""
        positions = set(range(0, len(data), STEP)) | set(range(HEAD.size))
        for start in range(HEAD.size, len(data), FRAME.size + 4096):
            positions |= set(range(start, start + FRAME.size))
        for version in (VERSIONS - 1, VERSIONS):
            start = data.rindex(self.records[version])
            positions |= set(range(start, start + len(self.records[version])))
        there = sorted(position for position in positions if position < len(data))
        return there if NIGHTLY else drawn(there, len(there) // 3)


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where that is possible: the file is opened a thousand times, and synced each."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        yield Path(name)


@pytest.fixture
async def crashed(folder: Path) -> Crashed:
    return await Crashed().make(folder)


async def version_in(crashed: Crashed, folder: Path, main: bytes, log: bytes = b"") -> int | None:
    """The version that is recovered from these bytes; None if they are refused."""
    path = folder / "data"
    path.write_bytes(main)
    path.with_name("data-wal").write_bytes(log)
    try:
        async with await open_log(path) as opened:
            snapshot = (await recover(opened, 1)).snapshot
            assert same(snapshot, crashed.snapshots[snapshot.version]), "never a wrong row"
            return snapshot.version
    except QserverError as error:
        assert isinstance(error, DataCorrupted) and (error.hint or error.detail)
        return None


@pytest.mark.long
async def test_a_log_that_lacks_its_end_gives_the_whole_transactions_before(
    crashed: Crashed, folder: Path
) -> None:
    size = FRAME.size + 4096
    for length in crashed.interesting(crashed.log):
        found = await version_in(crashed, folder, crashed.main, crashed.log[:length])
        assert found == 2 + max(length - HEAD.size, 0) // size
    assert await version_in(crashed, folder, crashed.main, crashed.log) == VERSIONS


@pytest.mark.half
async def test_damage_before_the_last_transaction_is_refused_and_in_it_is_a_torn_end(
    crashed: Crashed, folder: Path
) -> None:
    last = len(crashed.log) - FRAME.size - 4096
    for position in crashed.interesting(crashed.log):
        damaged = flipped(crashed.log, position)
        found = await version_in(crashed, folder, crashed.main, damaged)
        assert found == (None if position < last else VERSIONS - 1), position


@pytest.mark.long
async def test_damage_to_the_main_file_is_refused_or_touches_nothing(
    crashed: Crashed, folder: Path
) -> None:
    for position in crashed.interesting(crashed.closed):
        found = await version_in(crashed, folder, flipped(crashed.closed, position))
        assert found in (None, VERSIONS), position
    for version in (VERSIONS - 1, VERSIONS):
        start = crashed.closed.rindex(crashed.records[version])
        assert await version_in(crashed, folder, flipped(crashed.closed, start)) is None


async def test_a_main_file_that_lacks_its_end_is_refused(crashed: Crashed, folder: Path) -> None:
    for length in range(0, len(crashed.closed), STEP):
        assert await version_in(crashed, folder, crashed.closed[:length]) is None


def test_what_an_earlier_write_ahead_log_left_behind_the_end_is_no_damage() -> None:
    assert not is_damaged(b"")
    assert not is_damaged(bytes(HEAD.size))
    assert is_damaged(bytes(HEAD.size + 1))


async def test_frames_of_a_log_that_was_begun_anew_are_no_damage(folder: Path) -> None:
    path = folder / "data"
    async with await open_log(path) as log:
        connection = log._file._open
        assert connection is not None
        await log.append([(version, bytes(9000)) for version in range(1, 20)])
        connection.execute("PRAGMA wal_checkpoint(RESTART)")
        await log.append([(20, b"x")])
        left = path.with_name("data-wal").read_bytes()
        assert len(left) > 20 * 4096 and not is_damaged(left)


def flipped(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 0x55]) + data[position + 1 :]
