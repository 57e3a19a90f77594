"""Trio's clock for short deadlines beside real sockets: it stands still while the process does.

A client and a server in one process need a few turns of the loop to answer each other. On a busy
machine a stop between two turns may be longer than a deadline that is to pass in the end. So
between two looks at this clock, one in each turn, no more than a moment passes.
"""

from __future__ import annotations

from time import monotonic
from typing import Final

from trio.abc import Clock

MOMENT_SECONDS: Final = 0.001


class SteadyClock(Clock):
    def __init__(self) -> None:
        self._time = 0.0

    def start_clock(self) -> None:
        self._looked = monotonic()

    def current_time(self) -> float:
        now = monotonic()
        self._time += min(now - self._looked, MOMENT_SECONDS)
        self._looked = now
        return self._time

    def deadline_to_sleep_time(self, deadline: float) -> float:
        return min(deadline - self.current_time(), MOMENT_SECONDS)
