"""numpy is imported beside the event loop."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.long
def test_the_first_query_over_vectors_does_not_hold_the_loop() -> None:
    root = Path(__file__).parent.parent.parent.parent
    program = [sys.executable, "-m", "tests.sql.vectors.cold_process"]
    done = subprocess.run(program, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["thread", "True"]
