"""The thread does what it is asked in order, whoever still waits for it."""

from __future__ import annotations

import threading

import pytest
import trio

from qserver.durability.writer_thread import WriterThread


async def test_jobs_run_in_order_in_one_thread_that_is_not_the_event_loops() -> None:
    thread = WriterThread("worker")
    done: list[tuple[int, int]] = []

    async def ask(number: int) -> None:
        await thread.run(lambda: done.append((number, threading.get_ident())))

    for number in range(5):
        await ask(number)
    await thread.aclose(lambda: None)
    assert [number for number, _ in done] == list(range(5))
    assert len({ident for _, ident in done} | {threading.get_ident()}) == 2


async def test_results_and_errors_come_back() -> None:
    thread = WriterThread("worker")
    assert await thread.run(lambda: 6 * 7) == 42
    with pytest.raises(ZeroDivisionError):
        await thread.run(lambda: 1 // 0)
    assert await thread.run(lambda: "still there") == "still there"
    assert repr(thread) == "the thread worker, 0 jobs waiting"
    await thread.aclose(lambda: None)


async def test_when_no_job_comes_the_thread_does_once_what_could_wait() -> None:
    idle: list[str] = []
    once = threading.Event()

    def note() -> None:
        idle.append(threading.current_thread().name)
        once.set()

    thread = WriterThread("worker", note)
    await thread.run(lambda: None)
    assert await trio.to_thread.run_sync(once.wait, 60)
    assert await thread.run(lambda: len(idle)) >= 1
    assert set(idle) == {"worker"}
    await thread.aclose(lambda: None)


async def test_a_cancelled_job_is_done_before_the_next() -> None:
    thread = WriterThread("worker")
    begun, go_on = threading.Event(), threading.Event()
    done: list[str] = []

    def long() -> None:
        begun.set()
        go_on.wait()
        done.append("long")

    with trio.move_on_after(0.01) as scope:
        await thread.run(long)
    assert scope.cancelled_caught and begun.is_set() and done == []
    go_on.set()
    await thread.run(lambda: done.append("next"))
    assert done == ["long", "next"]
    await thread.aclose(lambda: None)


async def test_closing_during_a_long_job_waits_for_its_end() -> None:
    thread = WriterThread("worker")
    waiting = threading.Event()
    done: list[str] = []

    def long() -> None:
        waiting.wait()
        done.append("long")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(thread.run, long)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(thread.aclose, lambda: done.append("closed"))
        await trio.testing.wait_all_tasks_blocked()
        waiting.set()
    assert done == ["long", "closed"]
    await thread.aclose(lambda: done.append("again"))
    assert done[-1] == "closed"
