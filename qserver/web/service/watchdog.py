"""Detects that the event loop stalls, reports where, and ends a process that is stuck for good.

    the loop ── beat, every 0.25 s ──►  Watchdog  ◄── look, every 0.25 s ── a thread of its own
                                           │
          no beat for a second ────────────┼─► log: the statement's fingerprint, the stack; counted
          no beat for QSERVER_STALL_S ─────┴─► evidence to a file, SIGABRT; a supervisor restarts it

No request should hold the loop for a second. While one does, the server serves nobody, so the
watchdog logs the cause, and after QSERVER_STALL_S ends the process: recovery takes seconds, and no
acknowledged write is lost.

The thread needs the interpreter's lock, which C code may hold. The loop reports such a stall
afterwards, by its late beat. A stall that never ends is ended by a timer in C
(`faulthandler.dump_traceback_later`), which beats reset and which needs no lock. The timer writes
the stack too, but not the statement. To reset it ends a thread and waits for that, up to some
hundredths of a second on a busy machine, so only every so many beats do.

A process that was stopped did not stall: neither the thread nor the CPU time has moved.
"""

from __future__ import annotations

import faulthandler
import os
import threading
import time
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from sys import _current_frames, stderr
from types import FrameType
from typing import IO, Final

import trio

from qserver.lexing.fingerprint import MARK, Parameterized
from qserver.query.plan_cache import CachedPlan

BEAT_SECONDS: Final = 0.25
STALL_SECONDS: Final = 1.0
"""A loop without a beat for this long stalls."""

TIMER_SHARE: Final = 0.1
"""How often the timer in C is reset, as a share of the time that it is set to."""

FRAMES_SHOWN: Final = 12
FINGERPRINT_LENGTH_MAX: Final = 300
EVIDENCE: Final = "stall.txt"
"""In the data folder: what the last process was doing when the watchdog ended it."""


class Watchdog:
    """`report` is called for each stall; `evidence` is the final report's file, None for stderr."""

    def __init__(
        self,
        report: Callable[[str], None],
        *,
        exit_seconds: float | None,
        evidence: Path | None,
        count: Callable[[], None] = lambda: None,
    ) -> None:
        self._report = report
        self._exit_seconds = exit_seconds
        self._evidence = evidence
        self._count = count
        self._loop_thread = 0
        self._beat = self._cpu = 0.0
        self._timer_set = float("-inf")
        self._reported = False
        """Has the current stall been reported?"""
        self._stopped = threading.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Watch the loop of the calling task."""
        self._loop_thread = threading.get_ident()
        file = self._open_evidence()
        self._note_beat(file)
        thread = threading.Thread(target=self._watch_for_ever, args=(file,), daemon=True)
        thread.start()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._beat_for_ever, file)
                yield
                nursery.cancel_scope.cancel()
        finally:
            self._stopped.set()
            thread.join()
            faulthandler.cancel_dump_traceback_later()
            if self._evidence is not None:
                file.close()
                self._evidence.unlink(missing_ok=True)

    # --- in the loop's thread ---

    async def _beat_for_ever(self, file: IO[str]) -> None:
        while True:
            await trio.sleep(BEAT_SECONDS)
            gap = time.monotonic() - self._beat
            if gap > STALL_SECONDS + BEAT_SECONDS and not self._reported and self._was_busy(gap):
                self._count()
                self._report(
                    f"the event loop stood still for {gap:.1f} s while code in C kept the"
                    " interpreter; where is not known"
                )
            self._note_beat(file)

    def _note_beat(self, file: IO[str]) -> None:
        self._beat = time.monotonic()
        self._cpu = time.process_time()
        self._reported = False
        if self._exit_seconds is None:
            return
        between = self._exit_seconds * TIMER_SHARE
        if self._beat - self._timer_set >= between:
            self._timer_set = self._beat
            # Later than the watchdog's thread, which writes more if it gets to run.
            seconds = self._exit_seconds + between + 4 * BEAT_SECONDS
            faulthandler.dump_traceback_later(seconds, exit=True, file=file)

    def _was_busy(self, gap: float) -> bool:
        """Did the process run at all? On a busy machine it may get only a small share."""
        return time.process_time() - self._cpu > gap / 20

    # --- in the watchdog's thread ---

    def _watch_for_ever(self, file: IO[str]) -> None:
        looked = time.monotonic()
        while not self._stopped.wait(BEAT_SECONDS):
            before, looked = looked, time.monotonic()
            if looked - before > STALL_SECONDS:
                continue  # this thread was stopped too: wait for the next look
            gap = looked - self._beat
            if gap > STALL_SECONDS and not self._reported:
                self._reported = True
                self._count()
                self._report(self._describe(gap))
            if self._exit_seconds is not None and gap > self._exit_seconds:
                self._end(file, gap)

    def _describe(self, gap: float) -> str:
        frame = _current_frames().get(self._loop_thread)
        stack = "".join(traceback.format_stack(frame)[-FRAMES_SHOWN:])
        return (
            f"the event loop has stood still for {gap:.1f} s"
            f" in the statement {fingerprint_of(frame)}\n{stack}"
        )

    def _end(self, file: IO[str], gap: float) -> None:
        words = self._describe(gap)
        self._report(f"{words}the process is ended, so that it can be started anew")
        file.write(f"{datetime.now(UTC).isoformat(timespec='seconds')} {words}\n")
        file.flush()
        faulthandler.dump_traceback(file, all_threads=True)
        os.abort()

    # --- the file ---

    def _open_evidence(self) -> IO[str]:
        """Open the file for the final report; a report of the last process gets another name."""
        if self._evidence is None:
            return stderr
        if self._evidence.exists() and self._evidence.stat().st_size:
            moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
            kept = self._evidence.with_name(f"{self._evidence.stem}-{moment}.txt")
            self._evidence.rename(kept)
            self._report(f"the last process was ended because its loop stood still, see {kept}")
        descriptor = os.open(self._evidence, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        return os.fdopen(descriptor, "w")


def fingerprint_of(frame: FrameType | None) -> str:
    """The fingerprint of the statement that a stack executes."""
    while frame is not None:
        for value in list(frame.f_locals.values()):
            fingerprint = (
                value.fingerprint if isinstance(value, Parameterized | CachedPlan) else None
            )
            if isinstance(fingerprint, tuple) and fingerprint:
                fingerprint = fingerprint[0]
            if isinstance(fingerprint, str):
                return fingerprint.replace(MARK, "?")[:FINGERPRINT_LENGTH_MAX]
        frame = frame.f_back
    return "(none)"
