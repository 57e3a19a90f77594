"""Fails a test that hangs, with what it waited for, instead of letting the whole run stand still.

After some minutes an alarm goes off in the thread that runs tests. The failure shows where every
thread is and, if the test runs on Trio, where every task waits. What hangs between tests or behind
the last one, or does not hear the alarm, ends the run from outside (`Silence`).
"""

from __future__ import annotations

import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
import trio

HUNG_SECONDS: Final = 900.0
"""The longest test takes a minute; a machine that is ten times as slow still passes."""
AGAIN_SECONDS: Final = 30.0
"""What swallows the failure gets another one."""
SILENT_SECONDS: Final = 1500.0
"""Longer than a test that hangs takes to fail."""


@contextmanager
def noticed(seconds: float = HUNG_SECONDS) -> Iterator[None]:
    """Fail what runs in this block for longer."""
    before = signal.signal(signal.SIGALRM, _fail)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Silence:
    """A plugin for the process that has others run the tests: it ends a run without any news."""

    def __init__(self, seconds: float = SILENT_SECONDS) -> None:
        self._seconds = seconds
        self._latest: dict[str, str] = {}

    def pytest_sessionstart(self) -> None:
        signal.signal(signal.SIGALRM, self._end)
        self._wait()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._latest[str(getattr(report, "worker_id", "this process"))] = report.nodeid
        self._wait()

    def pytest_unconfigure(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _wait(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, self._seconds, AGAIN_SECONDS)

    def _end(self, *_: object) -> None:
        latest = [f"the last test of {worker}: {test}" for worker, test in self._latest.items()]
        pytest.exit("\n".join(["no news of any test", *latest, *_threads()]), returncode=1)


def _fail(*_: object) -> None:
    pytest.fail("\n".join(["it hangs", *_threads(), *_tasks()]), pytrace=False)


def _threads() -> Iterator[str]:
    names = {each.ident: each.name for each in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        yield f"thread {names.get(ident, ident)}:"
        yield from _lines(traceback.extract_stack(frame))


def _tasks() -> Iterator[str]:
    if not trio.lowlevel.in_trio_run():
        return
    root = trio.lowlevel.current_root_task()
    tasks = [root] if root is not None else []
    while tasks:
        task = tasks.pop()
        tasks += [child for nursery in task.child_nurseries for child in nursery.child_tasks]
        yield f"task {task.name}:"
        yield from _lines(traceback.StackSummary.extract(task.iter_await_frames()))


def _lines(stack: traceback.StackSummary) -> Iterator[str]:
    for each in stack:
        yield f"  {each.filename}:{each.lineno} {each.name}: {each.line}"
