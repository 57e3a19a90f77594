"""The supervisor: makes the processes of one machine, and makes them again.

    qserver serve ─► folder lock, listening sockets, grammar ─► fork ─┬─ process 0
                     (once, before any thread or task)                ├─ process 1
                          ▲                                           └─ process 2
                          └── one ended: forked again, from the same warm memory

It serves nobody and opens no database. It waits for its children:

    a child ends              its successor begins at once; nothing else touches its files, because
                              the end was seen first. Several ends in a short time: give up
    SIGTERM, SIGINT           SIGTERM goes to all: they drain and end, then this one does
    a second one              SIGINT goes to all: they end at once
    the supervisor is killed  its end of a pipe closes: children read that, drain and end

A platform may send SIGTERM to every process, and this one sends it again: so a child drains however
often it comes. A terminal sends SIGINT to a group of processes: so each child has its own.

What a child inherits by fork it has for good: the lock of the data folder lasts while any process
lives, and connections that wait in a listening socket outlive the process that would accept them.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from qserver.limits import PROCESS_ENDS_MAX, PROCESS_ENDS_SECONDS

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

Run = Callable[[int, int], int]
"""Runs a process until it ends: its number, and a descriptor that reads as ended with the
supervisor. Returns its exit code."""


def supervise(count: int, run: Run, report: Callable[[str], None]) -> int:
    """Run `count` processes until a signal ends them; return the exit code.

    No thread may run, and no event loop.
    """
    return Supervisor(count, run, report).run()


class Supervisor:
    def __init__(self, count: int, run: Run, report: Callable[[str], None]) -> None:
        self._count = count
        self._run = run
        self._report = report
        self._processes: dict[int, int] = {}
        """Process ids to numbers."""
        self._ends: deque[float] = deque(maxlen=PROCESS_ENDS_MAX)
        self._is_stopping = False
        self._code = 0
        self._alive, self._alive_end = os.pipe()

    def run(self) -> int:
        before = {each: signal.getsignal(each) for each in (*SIGNALS, signal.SIGCHLD)}
        gc.collect()
        gc.freeze()  # what was made so far is shared by all; the collector would copy it
        try:
            # A system that ignores ends of children, as it is told or by default, tells of none.
            signal.signal(signal.SIGCHLD, lambda *_: None)
            # Blocked except where they are waited for: none is lost between fork and handler.
            signal.pthread_sigmask(signal.SIG_BLOCK, {*SIGNALS, signal.SIGCHLD})
            for number in range(self._count):
                self._fork(number)
            while self._processes:
                self._heed(signal.sigwait({*SIGNALS, signal.SIGCHLD}))
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {*SIGNALS, signal.SIGCHLD})
            for each, handler in before.items():
                signal.signal(each, handler)
        return self._code

    def _fork(self, number: int) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        process = os.fork()
        if process:
            self._processes[process] = number
            return
        code = 1
        try:
            _show_number(number)
            os.setpgid(0, 0)
            os.close(self._alive_end)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            # A script that begins the server in the background has it ignore SIGINT.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {*SIGNALS, signal.SIGCHLD})
            try:
                code = self._run(number, self._alive)
            except* KeyboardInterrupt:
                code = 0  # the order to end at once, which came when nobody read orders any more
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)  # what the supervisor has begun is its own to end

    def _heed(self, received: int) -> None:
        if received != signal.SIGCHLD:
            self._stop()
            return
        while self._processes:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                return
            number = self._processes.pop(process, None)
            if number is not None:
                self._ended(number, os.waitstatus_to_exitcode(status))

    def _ended(self, number: int, code: int) -> None:
        if self._is_stopping:
            is_well = code == 0 or -code in SIGNALS  # it had begun nothing that needs an end
            self._code = self._code or (0 if is_well else 1)
            return
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        now = time.monotonic()
        self._ends.append(now)
        if len(self._ends) == PROCESS_ENDS_MAX and now - self._ends[0] < PROCESS_ENDS_SECONDS:
            self._report(
                f"process {number} ended {how}, the last of {PROCESS_ENDS_MAX} ends: giving up"
            )
            self._code = 1
            self._stop()
            return
        self._report(f"process {number} ended {how}: it begins again")
        self._fork(number)

    def _stop(self) -> None:
        """Let all processes drain; the second time, end at once."""
        order = signal.SIGINT if self._is_stopping else signal.SIGTERM
        self._is_stopping = True
        for process in self._processes:
            os.kill(process, order)

    def __repr__(self) -> str:
        return f"the supervisor of {len(self._processes)} processes"


def _show_number(number: int) -> None:
    """Let lists of processes show which one this is, where the system lets it."""
    with suppress(OSError):
        Path("/proc/self/comm").write_text(f"qserver {number}")
