"""One thread that does the blocking work of one log, in order of the calls.

    task ── run(job) ──► queue ──► thread: job(), one after the other
     ▲                                │
     └──────── run_sync_soon ◄────────┘

Syncing a file blocks, so it needs a thread; one for each log is enough, because a log is written in
order. `trio.to_thread` takes about 90 µs to begin and to end a call; this takes 40, as long as the
sync itself on a good disk.

`run_here` does a short call without the thread, but only while the thread has nothing to do: so
calls never overtake each other. When no job has come for a moment, the thread calls `idle` once,
for work that no task waits for.

A task that is cancelled stops waiting; its job is done all the same. So the next call comes after
that job, and sees its effects.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, Final, TypeVar

import trio

from qserver.errors import LogFailed

IDLE_SECONDS: Final = 0.05
Result = TypeVar("Result")


class WriterThread:
    """Make it inside of Trio; `aclose` ends it."""

    def __init__(self, name: str, idle: Callable[[], None] = lambda: None) -> None:
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._idle = idle
        self._rested = False
        """Whether the thread waits for the next job, and has called `idle` since the last."""
        self._unfinished = 0
        self._working = Lock()
        self._token = trio.lowlevel.current_trio_token()
        self._closed = False
        # A daemon, so that a log which was never closed cannot keep the process alive.
        self._thread = Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def run(self, call: Callable[[], Result]) -> Awaitable[Result]:
        """Queue the call; return an awaitable of its result, once earlier calls are done."""
        assert not self._closed, "the log is closed"
        job = _Job(call)
        self._unfinished += 1
        self._jobs.put(job)
        return job.wait()

    def run_here(self, call: Callable[[], None]) -> bool:
        """Do the call in this thread. False if the other is busy; then nothing has been done."""
        assert not self._closed, "the log is closed"
        if self._unfinished or not self._working.acquire(blocking=False):
            return False
        try:
            call()
        finally:
            self._working.release()
        if self._rested:  # let it become idle again a moment after this
            self._rested = False
            self._jobs.put(_Job(_nothing))
        return True

    def run_between(self, call: Callable[[], Result]) -> Result:
        """Do a short call in this thread between two of the other's, whatever waits there."""
        with self._working:
            if self._closed:
                raise LogFailed("the log is closed", hint="Its database is: open it again.")
            return call()

    async def aclose(self, end: Callable[[], None]) -> None:
        """Do one last job, and return when the thread has ended."""
        if self._closed:
            return
        with trio.CancelScope(shield=True):
            last = _Job(end, is_last=True)
            self._closed = True
            self._unfinished += 1
            self._jobs.put(last)
            await last.done.wait()
        self._thread.join()

    def _work(self) -> None:
        while True:
            job = self._next_job()
            self._do(job)
            if job.is_last:
                return

    def _next_job(self) -> _Job:
        try:
            return self._jobs.get(timeout=IDLE_SECONDS)
        except Empty:
            with self._working:
                self._idle()
                self._rested = True
            return self._jobs.get()

    def _do(self, job: _Job) -> None:
        if job.call is _nothing:
            return
        try:
            with self._working:
                job.result = job.call()
        except Exception as error:
            job.error = error
        try:
            self._token.run_sync_soon(self._finished, job)
        except trio.RunFinishedError:
            pass  # no task waits any more

    def _finished(self, job: _Job) -> None:
        self._unfinished -= 1
        job.done.set()

    def __repr__(self) -> str:
        return f"the thread {self._thread.name}, {self._jobs.qsize()} jobs waiting"


def _nothing() -> None:
    """Do nothing: wakes the thread so that it becomes idle again."""


class _Job:
    __slots__ = ("call", "done", "error", "is_last", "result")

    def __init__(self, call: Callable[[], Any], is_last: bool = False) -> None:
        self.call = call
        self.is_last = is_last
        self.done = trio.Event()
        self.result: Any = None
        self.error: Exception | None = None

    async def wait(self) -> Any:
        await self.done.wait()
        if self.error is not None:
            raise self.error
        return self.result
