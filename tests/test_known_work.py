"""Known work measures the machine: what takes twice the work takes twice the steps."""

from __future__ import annotations

import sys
import time
from subprocess import run

import trio

from tests import slowed
from tests.known_work import Heart, WorkClock, measured, step


def test_steps_are_counted_whatever_they_take_here() -> None:
    with measured() as taken:
        for _ in range(20):
            step()
    assert 10 < taken.steps < 40


def test_waiting_is_no_work() -> None:
    with measured() as taken:
        time.sleep(0.05)
    assert taken.steps < 5


def test_a_deadline_of_known_work_comes_after_that_work() -> None:
    async def count() -> int:
        steps = 0
        with trio.move_on_after(0.42):
            while True:
                step()
                steps += 1
                await trio.lowlevel.checkpoint()
        return steps

    steps = trio.run(count, clock=WorkClock())
    assert 40 < steps < 200


async def test_a_heart_tells_who_kept_the_loop() -> None:
    heart = Heart()
    async with trio.open_nursery() as nursery:
        await nursery.start(heart.beat)
        for _ in range(30):
            step()
        await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert 15 < heart.worst_steps() < 60


def test_a_command_that_is_slowed_ends_as_it_would() -> None:
    program = [sys.executable, "-m", "tests.slowed", sys.executable, "-c"]
    assert run([*program, "raise SystemExit(3)"], check=False).returncode == 3
    assert len(slowed.cores()) > 0
