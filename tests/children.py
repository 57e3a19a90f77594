"""Processes that a test forks off itself, to see what another process sees."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable


def fork(run: Callable[[], int | None]) -> int:
    """Fork a process that runs this and exits with what it returns. Return its id.

    It never returns into the test: it would be a second runner of tests, with the first one's
    connection to whoever collects the results.
    """
    pid = os.fork()
    if pid:
        return pid
    code = 99
    try:
        code = run() or 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def wait(pid: int) -> int:
    """Wait for its end, and return its exit code."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
