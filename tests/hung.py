"""Fails a test that hangs, with what it waited for, instead of letting the whole run stand still.

After some minutes an alarm goes off in the thread that runs tests. The failure shows where every
thread is and, if the test runs on Trio, where every task waits.
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
