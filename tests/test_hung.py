"""A test that hangs fails, and says where it waits."""

from __future__ import annotations

import re
import signal
import subprocess
import sys

import pytest

from tests.hung import noticed

_HANGING = """
import trio
from tests.hung import noticed

async def wait_for_what_never_comes():
    await trio.sleep_forever()

async def run():
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait_for_what_never_comes)

with noticed(0.1):
    trio.run(run)
"""


def test_tasks_that_wait_for_ever_are_named() -> None:
    """In a process of its own: Trio is left in pieces."""
    done = subprocess.run([sys.executable, "-c", _HANGING], capture_output=True, text=True)
    assert done.returncode == 1
    assert re.search(r"task .*wait_for_what_never_comes:\n", done.stderr)


def test_a_thread_that_waits_for_ever_is_shown() -> None:
    with pytest.raises(pytest.fail.Exception, match="test_a_thread_that_waits"), noticed(0.1):
        signal.pause()


def test_what_ends_in_time_is_left_alone() -> None:
    with noticed(60):
        left, _ = signal.getitimer(signal.ITIMER_REAL)
        assert 0 < left <= 60
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
