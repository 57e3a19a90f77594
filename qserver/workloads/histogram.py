"""Latencies, counted in buckets: an hour of load takes no more memory than a second.

A bucket is a thousandth wide and remembers one of its latencies, so a percentile is a latency that
occurred, and exact to a thousandth.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Final

_STEP: Final = math.log(1.001)
_SHORTEST: Final = 1e-9


class Histogram:
    """Latencies in seconds."""

    def __init__(self) -> None:
        self.count = 0
        self.longest = 0.0
        self._buckets: Counter[int] = Counter()
        self._occurred: dict[int, float] = {}

    def add(self, seconds: float) -> None:
        self.count += 1
        if seconds > self.longest:
            self.longest = seconds
        bucket = math.floor(math.log(max(seconds, _SHORTEST)) / _STEP)
        self._buckets[bucket] += 1
        self._occurred[bucket] = seconds

    def percentile(self, part: float) -> float:
        """The latency that this part of them does not exceed; 0 if there are none."""
        if part >= 1.0:
            return self.longest
        wanted, passed = part * self.count, 0
        for bucket in sorted(self._buckets):
            passed += self._buckets[bucket]
            if passed >= wanted:
                return self._occurred[bucket]
        return 0.0
