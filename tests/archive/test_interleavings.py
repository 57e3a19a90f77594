"""Backups of changing folders in orders that seeds draw: every moment that was saved is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.archive.interleavings import Net
from tests.sampling import sampled


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A target that is away is tried again at once."""
    monkeypatch.setattr("qserver.archive.continuous.PAUSE_SECONDS", 0.0)
    monkeypatch.setattr("qserver.archive.continuous.COPY_SHARE", 0)
    monkeypatch.setattr("qserver.archive.continuous.STATE_SEGMENTS", 4)


@pytest.mark.long
@pytest.mark.parametrize("seed", sampled(range(300), 10, always=(108, 124, 186)))
async def test_every_moment_that_was_saved_is_restored(tmp_path: Path, seed: int) -> None:
    net = Net(seed, tmp_path)
    await net.run(40)
    await net.verdict(6)


@pytest.mark.long
@pytest.mark.parametrize("seed", sampled(range(500, 600), 8, always=(509, 520, 529, 535)))
async def test_every_moment_is_restored_if_a_look_takes_many_segments(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qserver.archive.continuous.BACKUP_SEGMENT_BYTES", 300)
    net = Net(seed, tmp_path)
    await net.run(40)
    await net.verdict(8)
