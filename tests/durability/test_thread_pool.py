"""Few threads serve many queues: in order, fairly, and in spite of those that are stuck."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from qserver.durability.data_folder import DataFolder
from qserver.durability.port import Log
from qserver.durability.serial_queue import SerialQueue
from qserver.durability.sqlite_file import SqliteFile
from qserver.durability.thread_pool import THREADS_MAX, THREADS_USUAL, ThreadPool
from qserver.errors import LogFailed
from tests.sampling import examples

PATIENCE_SECONDS = 240
QUEUES = 4
Step = tuple[str, int]
STEPS = st.tuples(
    st.sampled_from(["run", "run", "here", "fail", "cancel", "hold", "let go", "await"]),
    st.integers(0, QUEUES - 1),
)


class Noted:
    """A queue with notes on what was asked of it and what it did."""

    def __init__(self, pool: ThreadPool, number: int) -> None:
        self.queue = SerialQueue(pool, str(number), self._idle)
        self.asked: list[int] = []
        self.done: list[int] = []
        self.gates: list[threading.Event] = []
        self._inside = threading.Lock()

    def _idle(self) -> None:
        assert self._inside.acquire(blocking=False), "two threads in one queue"
        self._inside.release()

    def job(self, fails: bool = False, gate: threading.Event | None = None) -> Any:
        number = len(self.asked)
        self.asked.append(number)

        def call() -> int:
            assert self._inside.acquire(blocking=False), "two threads in one queue"
            try:
                if gate is not None:
                    gate.wait()
                self.done.append(number)
                return 1 // 0 if fails else number
            finally:
                self._inside.release()

        return call

    def let_go(self) -> None:
        for gate in self.gates:
            gate.set()


@pytest.mark.half
@settings(max_examples=examples(150))
@given(st.lists(STEPS, max_size=40), st.integers(1, 3))
def test_each_queue_does_each_job_once_in_order_and_one_at_a_time(
    steps: list[Step], usual: int
) -> None:
    trio.run(_take, steps, usual)


async def _take(steps: Iterable[Step], usual: int) -> None:
    pool = ThreadPool(usual, usual + QUEUES)
    queues = [Noted(pool, number) for number in range(QUEUES)]
    with trio.fail_after(PATIENCE_SECONDS):
        async with trio.open_nursery() as nursery:
            for what, number in steps:
                await _step(queues[number], what, nursery)
            for noted in queues:
                noted.let_go()
        for noted in queues:
            await noted.queue.aclose(noted.job())
            assert noted.done == noted.asked
        await _all_ended(pool)


async def _step(noted: Noted, what: str, nursery: trio.Nursery) -> None:
    async def awaited(call: Any) -> None:
        number = len(noted.asked) - 1
        assert await noted.queue.run(call) == number

    async def failing(call: Any) -> None:
        with pytest.raises(ZeroDivisionError):
            await noted.queue.run(call)

    match what:
        case "run":
            waiting = noted.queue.run(noted.job())
            nursery.start_soon(_await, waiting)
        case "here":
            call = noted.job()
            if not noted.queue.run_here(call):
                noted.asked.pop()
        case "fail":
            nursery.start_soon(failing, noted.job(fails=True))
            await trio.testing.wait_all_tasks_blocked()  # it is in the queue now
        case "cancel":
            with trio.CancelScope() as scope:
                scope.cancel()
                await noted.queue.run(noted.job())
        case "hold":
            noted.gates.append(threading.Event())
            nursery.start_soon(awaited, noted.job(gate=noted.gates[-1]))
            await trio.testing.wait_all_tasks_blocked()
        case "let go":
            noted.let_go()
        case "await":
            noted.let_go()
            await awaited(noted.job())


async def _await(waiting: Any) -> None:
    await waiting


async def _all_ended(pool: ThreadPool) -> None:
    with trio.fail_after(PATIENCE_SECONDS):
        while pool.threads:
            await trio.lowlevel.checkpoint()


# --- fairness ------------------------------------------------------------------------------------


class Stuck:
    """Queues whose jobs wait, as on a disk that does not answer, until `go_on` is set."""

    def __init__(self, pool: ThreadPool, count: int) -> None:
        self.go_on = threading.Event()
        self.queues = [SerialQueue(pool, f"stuck {number}") for number in range(count)]
        self._begun = threading.Semaphore(0)

    async def begin(self) -> None:
        """Return when each of them has begun a job."""
        for queue in self.queues:
            queue._begin(self._wait)
        for _ in self.queues:
            assert await trio.to_thread.run_sync(
                partial(self._begun.acquire, timeout=PATIENCE_SECONDS)
            )

    def _wait(self) -> None:
        self._begun.release()
        self.go_on.wait()

    async def end(self) -> None:
        self.go_on.set()
        for queue in self.queues:
            await queue.aclose(lambda: None)


@pytest.mark.parametrize("count", [1, THREADS_USUAL, THREADS_MAX - 1])
async def test_queues_that_are_stuck_hold_no_other_back(count: int) -> None:
    pool = ThreadPool()
    stuck, queue = Stuck(pool, count), SerialQueue(pool, "healthy")
    try:
        await stuck.begin()
        with trio.fail_after(PATIENCE_SECONDS):
            for number in range(20):
                assert await queue.run(partial(int, number)) == number
            await queue.aclose(lambda: None)  # it waits for its own jobs only
        assert not stuck.go_on.is_set()
    finally:
        await stuck.end()


async def test_a_queue_with_many_jobs_lets_others_go_in_between() -> None:
    pool = ThreadPool(1, 1)
    busy, other = SerialQueue(pool, "busy"), SerialQueue(pool, "other")
    go_on = threading.Event()
    done: list[str] = []

    def work() -> None:
        go_on.wait()
        done.append("busy")

    for _ in range(10):
        busy._begin(work)
    other._begin(lambda: done.append("other"))
    go_on.set()
    await busy.aclose(lambda: None)
    await other.aclose(lambda: None)
    assert done.index("other") == 1, "one job of the busy queue came first"


async def test_a_thousand_queues_share_a_few_threads_which_end_with_them() -> None:
    pool = ThreadPool()
    queues = [SerialQueue(pool, str(number), lambda: None) for number in range(1000)]
    most = 0
    for number, queue in enumerate(queues):
        assert await queue.run(partial(int, number)) == number
        most = max(most, pool.threads)
    # One at a time: the worker of the last job may still be on its way back.
    assert most <= 1 + THREADS_USUAL
    async with trio.open_nursery() as nursery:
        for queue in queues:
            nursery.start_soon(queue.run, lambda: None)
    assert pool.threads <= 1 + THREADS_MAX
    assert repr(pool).endswith("threads for 1000 logs, 0 of which wait for one")
    for queue in queues:
        await queue.aclose(lambda: None)
    await _all_ended(pool)
    again = SerialQueue(pool, "again")
    assert await again.run(lambda: "served") == "served"
    await again.aclose(lambda: None)


async def test_a_system_without_threads_serves_as_soon_as_it_has_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = ThreadPool(1, 1)
    queue = SerialQueue(pool, "worker")
    start = threading.Thread.start
    refused: list[threading.Thread] = []

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "log writer" and len(refused) < 3:
            refused.append(thread)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with trio.fail_after(PATIENCE_SECONDS):
        assert await queue.run(lambda: "served") == "served"
    assert len(refused) == 3
    await queue.aclose(lambda: None)


# --- databases -----------------------------------------------------------------------------------


class BadDisk:
    """Appends to the logs of some names do not return, or fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.slow: set[str] = set()
        self.broken: set[str] = set()
        self.go_on = threading.Event()
        append = SqliteFile.append

        def appended(file: SqliteFile, records: Any) -> None:
            if file.path.stem in self.broken:
                raise LogFailed("an error of the disk")
            if file.path.stem in self.slow:
                self.go_on.wait()
            append(file, records)

        monkeypatch.setattr(SqliteFile, "append", appended)


async def test_a_database_with_a_slow_disk_holds_no_commit_of_another_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = BadDisk(monkeypatch)
    folder = DataFolder(tmp_path)
    disk.slow = {f"slow{number}" for number in range(THREADS_USUAL)}
    async with trio.open_nursery() as nursery:
        try:
            with trio.fail_after(PATIENCE_SECONDS):
                for name in disk.slow:
                    log = await nursery.start(_open, folder, name)
                    nursery.start_soon(_append, log)
                log = await nursery.start(_open, folder, "healthy")
                for version in range(1, 21):
                    await log.append([(version, b"record")])
                assert len(await log.read(0, 100)) == 20
            assert not disk.go_on.is_set()
        finally:
            disk.go_on.set()
        nursery.cancel_scope.cancel()


async def _append(log: Log) -> None:
    await log.append([(1, b"one")])


async def _open(
    folder: DataFolder, name: str, task_status: trio.TaskStatus[Any] = trio.TASK_STATUS_IGNORED
) -> None:
    async with folder.open(name) as log:
        task_status.started(log)
        await trio.sleep_forever()


async def test_a_database_whose_disk_fails_disturbs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = BadDisk(monkeypatch)
    disk.broken = {"broken"}
    folder = DataFolder(tmp_path)
    async with folder.open("broken") as broken, folder.open("healthy") as healthy:
        for version in range(1, 11):
            with pytest.raises(LogFailed):
                await broken.append([(version, b"lost")])
            await healthy.append([(version, b"kept")])
        disk.broken = set()
        await broken.append([(1, b"kept")])
        assert await broken.read(0, 100) == [(1, b"kept")]
        assert len(await healthy.read(0, 100)) == 10
