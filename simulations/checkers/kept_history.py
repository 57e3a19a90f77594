"""Knows which older versions must be readable, and which must not, whatever the clock has shown.

    lost for good ──────────┬─────────── may be there ───────────┬──── must be there ──── now
                            │                                    │
       since history was shorter, or none      the clock may be wrong by so much

A version is in history if it was the newest at some moment since the horizon: so what counts is the
time of the version after it. While the wall clock is right, the two bounds are one.
"""

from __future__ import annotations

from math import inf
from typing import Protocol


class Clock(Protocol):
    clock_errors: tuple[float, float]

    def true_time(self) -> float: ...


class KeptHistory:
    def __init__(self, clock: Clock, seconds: float) -> None:
        self.seconds = seconds
        """How long versions are kept now; 0: only the newest one."""
        self.changes = 0
        """How often that has changed."""
        self._clock = clock
        self._lost_before = -inf

    def change(self, seconds: float) -> None:
        """Keep versions for so long from now on; versions that are too old by now may be lost."""
        self._lost_before = self.safe_since()
        self.seconds = seconds
        self.changes += 1

    def safe_since(self) -> float:
        """Return the time since which all versions must be readable now, except the newest."""
        latest = self._clock.true_time() + self._clock.clock_errors[1]
        return max(self._lost_before, latest - self.seconds)

    def must_have(self, ended: float) -> bool:
        """Return whether a version that was the newest until this time must be readable."""
        return self.seconds > 0 and ended > self.safe_since()

    def gone_before(self, asked: float) -> float:
        """Return the time before which a reader that asked at another time may find no version."""
        return asked + self._clock.clock_errors[0] - self.seconds if self.seconds else inf
