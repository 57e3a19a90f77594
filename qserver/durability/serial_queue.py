"""The blocking work of one log: jobs that are done in order of the calls, by threads of a pool.

    task ── run(job) ──► queue ──► a thread of the pool: job(), one after the other
     ▲                                │
     └──────── run_sync_soon ◄────────┘

Syncing a file blocks, so it needs a thread. `trio.to_thread` takes about 90 µs to begin and to end
a call; this takes 40, as long as the sync itself on a good disk.

`run_here` does a short call without a thread, but only while the queue is empty: so calls never
overtake each other. `run_between` does a short read at once, whatever waits: it only waits for the
call that is being done, and not for the part of that which it does `freely`. When nothing was done
for a moment, or when a call has asked for it, `idle` is called once, for work that no task waits
for.

A task that is cancelled stops waiting; its job is done all the same. So the next call comes after
that job, and sees its effects. Who has no task has a function called instead (`UnderWay.then`),
where the task would be woken.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Generator
from threading import Lock
from typing import Any, TypeVar

import trio

from qserver.durability.port import UnderWay
from qserver.durability.thread_pool import ThreadPool
from qserver.errors import LogFailed

T = TypeVar("T")


class SerialQueue:
    """Make it inside of Trio; `aclose` ends it."""

    def __init__(
        self, threads: ThreadPool, name: str, idle: Callable[[], None] | None = None
    ) -> None:
        self._threads = threads
        self._name = name
        self._idle = idle
        self._lock = Lock()
        """Guards the next two. It is held for moments only."""
        self._jobs: deque[Job | None] = deque()
        """None stands for `idle`."""
        self._is_served = False
        """Whether the pool has this queue, because there are jobs."""
        self._working = Lock()
        """Held while a call is done."""
        self._unfinished = 0
        """Jobs that no task knows to be done; only Trio's thread changes it."""
        self._is_watched = self._was_active = self._idles_soon = False
        self._is_closed = False
        self._token = trio.lowlevel.current_trio_token()
        threads.open()

    def run(self, call: Callable[[], T]) -> Awaitable[T]:
        """Queue the call; return an awaitable of its result, once earlier calls are done."""
        return self.begin(call).wait()

    def begin(self, call: Callable[[], Any]) -> Job:
        """Do the same for a caller that may have no task."""
        assert not self._is_closed, "the log is closed"
        return self._begin(call)

    def run_here(self, call: Callable[..., None], *arguments: Any) -> bool:
        """Do the call in this thread. False if others are to be done; then nothing was done."""
        assert not self._is_closed, "the log is closed"
        if self._unfinished or not self._working.acquire(blocking=False):
            return False
        try:
            call(*arguments)
        finally:
            self._working.release()
        self._note_activity()
        return True

    def run_between(self, call: Callable[[], T]) -> T:
        """Do a short call in this thread between two others, whatever waits in the queue."""
        with self._working:
            if self._is_closed:
                raise LogFailed("the log is closed", hint="Its database is: open it again.")
            return call()

    def freely(self, call: Callable[[], None]) -> None:
        """Do a part of the call that is being done, and let calls of `run_between` come in."""
        self._working.release()
        try:
            call()
        finally:
            self._working.acquire()

    def idle_soon(self) -> None:
        """Have `idle` called without waiting for a quiet moment. Any thread may call this."""
        if not self._idles_soon:
            self._idles_soon = True
            self._put(None)

    def post(self, call: Callable[[], None]) -> bool:
        """Queue a call whose end nobody waits for. False if the queue is closed."""
        if self._is_closed:
            return False
        self._begin(call)
        return True

    async def aclose(self, end: Callable[[], None]) -> None:
        """Do one last job, after those of this queue and none of another."""
        if self._is_closed:
            return
        self._is_closed = True
        with trio.CancelScope(shield=True):
            await self._begin(end).wait_done()
        self._threads.close()

    def _begin(self, call: Callable[[], Any]) -> Job:
        job = Job(call)
        self._unfinished += 1
        self._put(job)
        return job

    def _put(self, job: Job | None) -> None:
        with self._lock:
            self._jobs.append(job)
            if self._is_served:
                return
            self._is_served = True
        self._threads.serve(self)

    def _note_activity(self) -> None:
        self._was_active = True
        if not self._is_watched and self._idle is not None:
            self._is_watched = True
            self._threads.watch(self)

    # --- called by the pool ---

    def do_next(self) -> bool:
        """Do the next job. True if there is another."""
        job = self._jobs.popleft()
        if job is not None:
            self._do(job)
        elif self._idle is not None:
            self._idles_soon = False
            with self._working:
                self._idle()
        with self._lock:
            self._is_served = bool(self._jobs)
            return self._is_served

    def was_quiet(self) -> bool:
        """Return whether nothing was done since the last call."""
        was_active, self._was_active = self._was_active, False
        return not was_active

    def rest(self) -> None:
        """Call `idle` after the calls that were made until now."""
        self._is_watched = False  # first: a call from now on is followed by another rest
        if not self._is_closed:
            self._put(None)

    def _do(self, job: Job) -> None:
        try:
            with self._working:
                job.result = job.call()
        except Exception as error:
            job.error = error
        self._note_activity()
        try:
            self._token.run_sync_soon(self._finished, job)
        except trio.RunFinishedError:
            pass  # no task waits any more

    def _finished(self, job: Job) -> None:
        self._unfinished -= 1
        job.finish()

    def __repr__(self) -> str:
        return f"the queue of {self._name}, {len(self._jobs)} jobs waiting"


class Job(UnderWay):
    __slots__ = ("_callback", "_is_done", "call", "error", "result")

    def __init__(self, call: Callable[[], Any]) -> None:
        self.call = call
        self.result: Any = None
        self.error: Exception | None = None
        self._is_done = False
        self._callback: Callable[[], None] | None = None

    def then(self, callback: Callable[[], None]) -> None:
        assert not self._is_done, "a job ends when its caller waits, and not before"
        self._callback = callback

    def finish(self) -> None:
        self._is_done = True
        if self._callback is not None:
            self._callback()

    async def wait_done(self) -> None:
        if self._is_done:
            await trio.lowlevel.checkpoint()
        else:
            done = trio.Event()
            self.then(done.set)
            await done.wait()

    async def wait(self) -> Any:
        await self.wait_done()
        if self.error is not None:
            raise self.error
        return self.result

    def __await__(self) -> Generator[Any, Any, Any]:
        return self.wait().__await__()
