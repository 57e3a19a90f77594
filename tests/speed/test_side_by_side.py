"""The measurements of several processes and of replicas run, and say what they found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.speed import processes, replicas
from tests.speed.side_by_side import Comparison


@pytest.mark.long
@pytest.mark.parametrize("comparison", [processes.COMPARISON, replicas.COMPARISON])
def test_two_processes_are_measured_beside_one(
    comparison: Comparison, capsys: pytest.CaptureFixture[str]
) -> None:
    short = replace(comparison, warm_requests=64, apart_seconds=0.0)
    assert short.main(["--rounds", "1", "--requests", "64"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert "one process" in head and "2: all" in head
    assert [line[:40].strip() for line in lines] == list(comparison.works)
    assert all(float(line.split()[-1]) >= 0 for line in lines)
