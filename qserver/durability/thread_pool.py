"""A few threads that do the blocking work of all logs of a process.

    queue with jobs ──► ready ──► a worker: one job of it ──► ready again, if it has more
                          │
    watcher ── each tick ─┴─► starts a worker for each queue that has waited for a whole tick
                            ► lets queues rest that have done nothing for a whole tick

A queue is in `ready` or with one worker, never both: so its jobs run in order and one at a time, on
whatever thread serves it. After one job the queue goes to the end, so a queue with many jobs does
not hold back the others.

A job may take long: a sync on a slow disk, or the check of a large file. `usual` workers are enough
as long as jobs are short. When a queue has waited for a tick, the watcher adds a worker for it, up
to `most`; a worker that has had nothing to do for a while ends. So it takes `most` stuck queues to
hold back another one for longer than two ticks.

Idle workers are a stack: the one that worked last works next, and those that are not needed end.
The pool knows no Trio and needs no closing: its threads end with its last queue.

Not done: threads for each disk. All logs of a server are in one folder; what differs is how long
their jobs take.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Condition, Lock, Thread
from typing import Final, Protocol

THREADS_USUAL: Final = 4
THREADS_MAX: Final = 32
TICK_SECONDS: Final = 0.025
KEEP_SECONDS: Final = 5.0
"""A worker ends after so long without work; the last one stays."""


class Queue(Protocol):
    """Jobs that run in order."""

    def do_next(self) -> bool:
        """Do the next job. True if there is another."""

    def was_quiet(self) -> bool:
        """Return whether nothing was done since the last call."""

    def rest(self) -> None:
        """Called once when the queue has become quiet."""


class ThreadPool:
    """Its methods may be called from any thread."""

    def __init__(self, usual: int = THREADS_USUAL, most: int = THREADS_MAX) -> None:
        assert 1 <= usual <= most
        self._usual = usual
        self._most = most
        self._lock = Lock()
        self._queues = 0
        self._ready: deque[Queue] = deque()
        self._added = self._taken = 0
        """How many queues were ever put into `_ready`, and taken out of it."""
        self._workers = 0
        self._idle: list[Lock] = []
        """The locks that idle workers wait for, the newest last. Taking one out releases it."""
        self._watched: list[Queue] = []
        self._has_watcher = self._watcher_sleeps = False
        self._news = Condition(self._lock)
        """Wakes the watcher."""

    @property
    def threads(self) -> int:
        return self._workers + self._has_watcher

    def open(self) -> None:
        """Count one more queue."""
        with self._lock:
            self._queues += 1
            starts, self._has_watcher = not self._has_watcher, True
        if starts:
            _start(self._watch, "log watcher")

    def close(self) -> None:
        """Count one queue less: it has done its last job."""
        with self._lock:
            self._queues -= 1
            if self._queues:
                return
            for wakeup in self._idle:
                wakeup.release()
            self._idle.clear()
            self._watched.clear()
            self._news.notify()

    def serve(self, queue: Queue) -> None:
        """Let a worker do the jobs of a queue that had none."""
        with self._lock:
            self._add(queue)
            if self._idle:
                self._idle.pop().release()
                return
            starts = self._workers < self._usual
            self._workers += starts
            self._wake_watcher()
        if starts:
            self._start_worker()

    def watch(self, queue: Queue) -> None:
        """Call the queue's `rest` when it has been quiet for a tick."""
        with self._lock:
            self._watched.append(queue)
            self._wake_watcher()

    def _add(self, queue: Queue) -> None:
        self._ready.append(queue)
        self._added += 1

    # --- workers ---

    def _start_worker(self) -> None:
        """Start a worker that has been counted."""
        try:
            _start(self._work, "log writer")
        except RuntimeError:  # the system has no more threads: the watcher will try again
            with self._lock:
                self._workers -= 1

    def _work(self) -> None:
        wakeup = Lock()
        wakeup.acquire()
        queue: Queue | None = None
        while True:
            has_more = queue is not None and queue.do_next()
            with self._lock:
                if queue is not None and has_more:
                    self._add(queue)
                if self._ready:
                    queue = self._ready.popleft()
                    self._taken += 1
                    continue
                if not self._queues:
                    self._workers -= 1
                    return
                self._idle.append(wakeup)
            queue = None
            if not self._is_woken(wakeup):
                return

    def _is_woken(self, wakeup: Lock) -> bool:
        """Wait for work. False if none has come for so long that this worker is not needed."""
        while not wakeup.acquire(timeout=KEEP_SECONDS):
            with self._lock:
                if wakeup in self._idle and self._workers > 1:
                    self._idle.remove(wakeup)
                    self._workers -= 1
                    return False
        return True

    # --- the watcher ---

    def _wake_watcher(self) -> None:
        if self._watcher_sleeps:
            self._watcher_sleeps = False
            self._news.notify()

    def _watch(self) -> None:
        while True:
            with self._lock:
                while self._queues and not self._ready and not self._watched:
                    self._watcher_sleeps = True
                    self._news.wait()
                if not self._queues:
                    self._has_watcher = self._watcher_sleeps = False
                    return
                added = self._added
                self._news.wait(TICK_SECONDS)
                waiting = added - self._taken
                starts = max(0, min(waiting, self._most - self._workers))
                self._workers += starts
                watched, self._watched = self._watched, []
                quiet: list[Queue] = []
                for queue in watched:
                    (quiet if queue.was_quiet() else self._watched).append(queue)
            for _ in range(starts):
                self._start_worker()
            for queue in quiet:
                queue.rest()

    def __repr__(self) -> str:
        waiting = len(self._ready)
        return f"{self._workers} threads for {self._queues} logs, {waiting} of which wait for one"


def _start(work: Callable[[], None], name: str) -> None:
    # A daemon, so that a log which was never closed cannot keep the process alive.
    Thread(target=work, name=name, daemon=True).start()
