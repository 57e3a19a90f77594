"""pgbench runs unchanged: its own transaction and its point reads, over all of its protocols."""

from __future__ import annotations

import pytest

from tests.speed import pgbench


@pytest.mark.nightly
def test_pgbench_runs_on_both(capsys: pytest.CaptureFixture[str]) -> None:
    code = pgbench.main(["--seconds", "1", "--clients", "2", "--scale", "1"])
    said = capsys.readouterr().out
    if code == 2:
        pytest.skip(said)
    _, *lines = said.splitlines()
    assert [line.split("  ")[0] for line in lines] == [
        f"{work}, {mode}" for work in pgbench.WORKS for mode in pgbench.MODES
    ]
    assert all(float(rate) > 0 for line in lines for rate in line.split()[-3:-1])
