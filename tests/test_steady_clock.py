"""What waits for a deadline has so many turns before it, however long the process stood still."""

from __future__ import annotations

import time

import trio

from tests.steady_clock import MOMENT_SECONDS, SteadyClock

DEADLINE_SECONDS = 0.05


def stand_still() -> None:
    time.sleep(2 * MOMENT_SECONDS)


def test_a_process_that_stood_still_has_its_turns_before_a_deadline() -> None:
    async def turns() -> int:
        count = 0
        with trio.move_on_after(DEADLINE_SECONDS):
            while True:
                stand_still()
                await trio.lowlevel.checkpoint()
                count += 1
        return count

    least = DEADLINE_SECONDS / MOMENT_SECONDS / 4
    assert trio.run(turns, clock=SteadyClock()) >= least


def test_who_sleeps_wakes() -> None:
    async def sleep() -> float:
        began = trio.current_time()
        await trio.sleep(DEADLINE_SECONDS)
        return trio.current_time() - began

    assert trio.run(sleep, clock=SteadyClock()) >= DEADLINE_SECONDS
