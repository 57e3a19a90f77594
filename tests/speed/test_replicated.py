"""The measurement of a replicated log runs, and its report has both columns."""

from __future__ import annotations

import pytest

from qserver.cli.log_config import find_server
from tests.speed import replicated

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(find_server() is None, reason="nats-server is not installed"),
]


def test_both_kinds_of_log_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert replicated.main(["--seconds", "0.2", "--rows", "500"]) == 0
    said = capsys.readouterr().out
    assert "three log nodes" in said and said.count("500 rows and a branch") == 2
