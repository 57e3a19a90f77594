"""A queue does what it is asked in order, whoever still waits for it."""

from __future__ import annotations

import threading

import pytest
import trio

from qserver.durability.serial_queue import SerialQueue
from qserver.durability.thread_pool import ThreadPool


async def test_jobs_run_in_order_in_a_thread_that_is_not_the_event_loops() -> None:
    queue = SerialQueue(ThreadPool(), "worker")
    done: list[tuple[int, int]] = []

    async def ask(number: int) -> None:
        await queue.run(lambda: done.append((number, threading.get_ident())))

    for number in range(5):
        await ask(number)
    await queue.aclose(lambda: None)
    assert [number for number, _ in done] == list(range(5))
    assert threading.get_ident() not in {ident for _, ident in done}


async def test_results_and_errors_come_back() -> None:
    queue = SerialQueue(ThreadPool(), "worker")
    assert await queue.run(lambda: 6 * 7) == 42
    with pytest.raises(ZeroDivisionError):
        await queue.run(lambda: 1 // 0)
    assert await queue.run(lambda: "still there") == "still there"
    assert repr(queue) == "the queue of worker, 0 jobs waiting"
    await queue.aclose(lambda: None)


async def test_when_no_job_comes_a_thread_does_once_what_could_wait() -> None:
    idle: list[int] = []
    once = threading.Event()

    def note() -> None:
        idle.append(threading.get_ident())
        once.set()

    queue = SerialQueue(ThreadPool(), "worker", note)
    await queue.run(lambda: None)
    assert await trio.to_thread.run_sync(once.wait, 60)
    assert threading.get_ident() not in idle
    assert await queue.run(lambda: len(idle)) == 1
    await queue.aclose(lambda: None)


async def test_a_cancelled_job_is_done_before_the_next() -> None:
    queue = SerialQueue(ThreadPool(), "worker")
    begun, go_on = threading.Event(), threading.Event()
    done: list[str] = []

    def long() -> None:
        begun.set()
        go_on.wait()
        done.append("long")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(queue.run, long)
        assert await trio.to_thread.run_sync(begun.wait, 60)
        nursery.cancel_scope.cancel()
    assert done == []
    go_on.set()
    await queue.run(lambda: done.append("next"))
    assert done == ["long", "next"]
    await queue.aclose(lambda: None)


async def test_closing_during_a_long_job_waits_for_its_end() -> None:
    queue = SerialQueue(ThreadPool(), "worker")
    waiting = threading.Event()
    done: list[str] = []

    def long() -> None:
        waiting.wait()
        done.append("long")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(queue.run, long)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(queue.aclose, lambda: done.append("closed"))
        await trio.testing.wait_all_tasks_blocked()
        waiting.set()
    assert done == ["long", "closed"]
    await queue.aclose(lambda: done.append("again"))
    assert done[-1] == "closed"
