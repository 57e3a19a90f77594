"""The measurement of nodes runs, and its report has both columns and the moves."""

from __future__ import annotations

import pytest

from tests.speed import nodes

pytestmark = pytest.mark.nightly


def test_forwarding_and_moves_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert nodes.main(["--seconds", "0.5", "--moves", "1"]) == 0
    said = capsys.readouterr().out
    assert "another node" in said and said.count("ms for a lone client") == 2
    assert "1 moves under load" in said
