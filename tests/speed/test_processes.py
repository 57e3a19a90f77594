"""The measurement of several processes runs, and says what it found."""

from __future__ import annotations

import pytest

from tests.speed import processes


def test_two_processes_are_measured_beside_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert processes.main(["--rounds", "1", "--requests", "320"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert "one process" in head and "2: all" in head
    assert [line[:40].strip() for line in lines] == list(processes.WORK)
    assert all(float(line.split()[-1]) >= 0 for line in lines)
