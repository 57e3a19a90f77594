"""Knows which older versions must be there, and which must not be, whatever the clock has shown.

    lost for good ──────────┬─────────── may be there ───────────┬──── must be there ──── now
                            │                                    │
       since history was shorter, or none      the clock may be wrong by so much

A version is in history if it was the newest at some moment since the horizon: so what counts is the
time of the version behind it. While the wall clock is right, the two bounds are one.
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
        """Keep versions for so long from now on; what is too old until now may be lost."""
        self._lost_before = self.safe_since()
        self.seconds = seconds
        self.changes += 1

    def safe_since(self) -> float:
        """Return the time from which on all versions must be there now, but for the newest."""
        latest = self._clock.true_time() + self._clock.clock_errors[1]
        return max(self._lost_before, latest - self.seconds)

    def must_have(self, ended: float) -> bool:
        """Return whether a version must be readable that was the newest until this time."""
        return self.seconds > 0 and ended > self.safe_since()

    def gone_before(self, asked: float) -> float:
        """Return before which time no version may be found by who has asked at another."""
        return asked + self._clock.clock_errors[0] - self.seconds if self.seconds else inf
