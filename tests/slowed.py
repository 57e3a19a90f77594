"""Runs a command while each core has busy neighbours, so that it gets a third of them.

    python -m tests.slowed .venv/bin/python -m pytest tests/query       what `make slowly` does

A test that is right on a machine of its own, and wrong here, bounds a time (`tests/time_rules.py`).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

NEIGHBOURS: Final = 2
"""On each core. The system gives each process that has work to do the same share."""

BUSY: Final = """
import os, sys
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {int(sys.argv[1])})
while os.getppid() == int(sys.argv[2]):
    sum(range(100_000))
"""


def cores() -> Sequence[int]:
    if sys.platform == "linux":
        return sorted(os.sched_getaffinity(0))
    return range(os.cpu_count() or 1)


def run(command: Sequence[str]) -> int:
    """The exit code of the command. Neighbours end with it, also if this process is killed."""
    busy = [
        subprocess.Popen([sys.executable, "-c", BUSY, str(core), str(os.getpid())])
        for core in cores()
        for _ in range(NEIGHBOURS)
    ]
    try:
        return subprocess.run(command, check=False).returncode
    finally:
        for process in busy:
            process.kill()
            process.wait()


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
