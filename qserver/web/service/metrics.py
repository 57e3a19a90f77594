"""Counts for the metrics, as plain numbers; `exposition` formats them.

A request costs one dictionary and one list operation; prometheus-client's own counters would cost
more than a point lookup.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from typing import Final

BUCKETS_SECONDS: Final = (
    0.0001,
    0.00025,
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
)


class RouteMetrics:
    __slots__ = ("buckets", "seconds", "statuses")

    def __init__(self) -> None:
        self.statuses: defaultdict[int, int] = defaultdict(int)
        self.buckets = [0] * (len(BUCKETS_SECONDS) + 1)
        self.seconds = 0.0

    def count(self, status: int, seconds: float) -> None:
        self.statuses[status] += 1
        self.buckets[bisect_left(BUCKETS_SECONDS, seconds)] += 1
        self.seconds += seconds


class Metrics:
    def __init__(self) -> None:
        self.routes: dict[str, RouteMetrics] = {}
        self.errors: defaultdict[str, int] = defaultdict(int)
        """By code. Most are in answers with the status 200, and some at the end of a stream."""
        self.rate_limited = 0
        self.internal_errors = 0
        self.loop_stalls = 0
        self.replayed = 0
        self.bulk_rows = 0
        self.bulk_bytes = 0

    def count_stall(self) -> None:
        self.loop_stalls += 1

    def of_route(self, name: str) -> RouteMetrics:
        return self.routes.setdefault(name, RouteMetrics())
