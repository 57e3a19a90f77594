"""The benchmark runs, and says what it is for: how long a restart takes, and how much memory."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from tests.speed import durability as bench


def test_a_restart_is_measured(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for phase in ("fill", "restart"):
        trio.run(bench.PHASES[phase], tmp_path / "bench.qserver", 3000)
    fill, restart = capfd.readouterr().out.splitlines()
    assert fill.startswith("fill") and "3,000 rows" in fill
    assert restart.startswith("restart") and "MB resident" in restart


def test_wrong_use_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bench.main(["--phase", "dance"])
    assert "usage:" in capsys.readouterr().err
