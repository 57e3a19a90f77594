"""A step of known work: what a wait is judged against, on any machine.

A bound in seconds fails on a machine that is slower, or has busy neighbours, and hides a fault on
one that is faster. So a test that says "this does not take long" says it in steps: how often the
same thread could have done a fixed piece of work instead. Both are measured in processor time,
which no other process lengthens by waiting, and close to each other, because a neighbour in the
same cache slows both.

    with measured() as taken:
        ...
    assert taken.steps < 50

A step is what an interpreter does most: calls, arithmetic, objects that are made and dropped, and
some long loops in C. A bound should be far from both the rule and the fault; and what can be
counted is better counted: `counted()` gives the calls of functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from cProfile import Profile
from dataclasses import dataclass
from time import monotonic, thread_time
from typing import Final

import trio
from trio.abc import Clock

STEP_SECONDS: Final = 0.0042
"""What a step takes where docs/performance.md was measured."""

TRIES: Final = 3
TRIES_OF_SLOW: Final = 7
"""How often something is measured that seems to take too long."""

_ROUNDS: Final = 3
_NAMES: Final = tuple(f"name {number}" for number in range(500))


@dataclass(slots=True)
class _Row:
    number: int
    name: str

    def key(self) -> tuple[int, str]:
        return self.number % 97, self.name


def step() -> int:
    """The work itself. It returns the same each time."""
    total = 0
    for turn in range(_ROUNDS):
        rows = [_Row(number * 7919 % 1009 + turn, name) for number, name in enumerate(_NAMES)]
        rows.sort(key=_Row.key)
        by_name = {row.name: row.number for row in rows}
        total += sum(by_name[name] for name in _NAMES if by_name[name] % 3)
        total += len("".join(_NAMES).replace("name", "label").split(" "))
        total += len(set(range(20_000)))
    return total


def seconds_of(action: Callable[[], object]) -> float:
    """Processor time of this thread."""
    began = thread_time()
    action()
    return thread_time() - began


def least_steps(action: Callable[[], object], enough: float = 0.0) -> float:
    """How many steps an action takes: the least of a few tries, of one if it is below `enough`.

    A collection of garbage, or a neighbour in the same cache, lengthens one try and not all.
    """
    least = float("inf")
    for _ in range(TRIES_OF_SLOW):
        with measured() as taken:
            action()
        least = min(least, taken.steps)
        if least < enough:
            break
    return least


def step_seconds() -> float:
    """What a step takes now: the least of a few, because the first may find cold caches."""
    return min(seconds_of(step) for _ in range(TRIES))


@dataclass
class Taken:
    """A measured stretch. Its length is known when it is over."""

    steps: float = 0.0


@contextmanager
def measured() -> Iterator[Taken]:
    """Measure what this thread does inside, in steps that are measured before and after it."""
    taken, before = Taken(), step_seconds()
    began = thread_time()
    yield taken
    seconds = thread_time() - began
    taken.steps = seconds / max(before, step_seconds())


@dataclass
class Counted:
    """A stretch whose calls were counted. Their number is known when it is over."""

    calls: int = 0


@contextmanager
def counted() -> Iterator[Counted]:
    """Count the functions that this thread calls inside, those in C included."""
    found, profile = Counted(), Profile()
    with profile:
        yield found
    found.calls = sum(each.callcount for each in profile.getstats())


def calls_of(action: Callable[[], object]) -> int:
    with counted() as found:
        action()
    return found.calls


class Heart:
    """Beats whenever Trio's loop lets it, or after pauses, and tells how long it had to wait."""

    def __init__(self, pause: float = 0.0) -> None:
        self._pause = pause
        self._step = step_seconds()
        self._longest = 0.0

    async def beat(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        last = thread_time()
        task_status.started()
        while True:
            await trio.sleep(self._pause)
            now = thread_time()
            self._longest = max(self._longest, now - last)
            last = now

    def worst_steps(self) -> float:
        """The longest time between two beats, in steps that are measured before and after all."""
        return self._longest / max(self._step, step_seconds())


class WorkClock(Clock):
    """Trio's clock where a deadline must come after the same work on every machine.

    It goes by the processor time of the loop's thread, and faster where a step takes less: a second
    of it is a second where a step takes `STEP_SECONDS`. The clock on the wall moves it only a
    little, so that whoever sleeps wakes in the end.
    """

    def start_clock(self) -> None:
        self._pace = STEP_SECONDS / step_seconds()
        self._began = thread_time(), monotonic()

    def current_time(self) -> float:
        worked, passed = thread_time() - self._began[0], monotonic() - self._began[1]
        return worked * self._pace + passed / 100

    def deadline_to_sleep_time(self, deadline: float) -> float:
        return deadline - self.current_time()
