"""Counts the latencies of one workload in buckets, and prints the report of all.

A bucket is two percent wide, so a percentile is exact to two percent, and an hour of load takes no
more memory than a second.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from qserver.cli.layouts import table

_STEP: Final = math.log(1.02)


class Histogram:
    """The measurements of one workload."""

    def __init__(
        self, workload: str, rows: int = 1, plain: str | None = None, steps: int = 1
    ) -> None:
        """Each request reads or writes `rows`. `plain` is the workload to compare with: one request
        of it does what `steps` do here."""
        self.steps = steps
        self.workload = workload
        self.rows = rows
        self.plain = plain
        self.seconds = 0.0
        self.received_bytes = 0
        self.errors: Counter[str] = Counter()
        self.count = 0
        self.longest = 0.0
        self.cpu_seconds: float | None = None
        """Of the server, if it is known."""
        self._buckets: Counter[int] = Counter()

    def add(self, latency_seconds: float) -> None:
        self.count += 1
        if latency_seconds > self.longest:
            self.longest = latency_seconds
        self._buckets[int(math.log(max(latency_seconds, 1e-6) * 1e6) / _STEP)] += 1

    def set_cpu(self, before: float | None, after: float | None) -> None:
        """Note what the server's CPU clock showed before and after."""
        if before is not None and after is not None and after >= before:  # it was not restarted
            self.cpu_seconds = after - before

    @property
    def cpu_us(self) -> float | None:
        """Microseconds of the server's CPU time that a request took, if they are known."""
        if self.cpu_seconds is None or not self.count:
            return None
        return self.cpu_seconds / self.count * 1e6

    def percentile_ms(self, part: float) -> float:
        """The latency that this part of the requests does not exceed."""
        wanted = part * self.count
        passed = 0
        for bucket in sorted(self._buckets):
            passed += self._buckets[bucket]
            if passed >= wanted:
                return min(math.exp((bucket + 0.5) * _STEP) / 1e3, self.longest * 1e3)
        return 0.0

    @property
    def per_second(self) -> float:
        return self.count / self.seconds if self.seconds else 0.0

    def record(self) -> dict[str, Any]:
        return {
            "workload": self.workload,
            "requests": self.count,
            "seconds": round(self.seconds, 3),
            "requests_per_second": round(self.per_second, 1),
            "rows_per_second": round(self.per_second * self.rows, 1),
            "p50_ms": round(self.percentile_ms(0.50), 3),
            "p95_ms": round(self.percentile_ms(0.95), 3),
            "p99_ms": round(self.percentile_ms(0.99), 3),
            "max_ms": round(self.longest * 1e3, 3),
            "server_cpu_us": None if self.cpu_us is None else round(self.cpu_us, 1),
            "received_bytes": self.received_bytes,
            "errors": dict(self.errors),
        }


def report(histograms: Sequence[Histogram]) -> str:
    """The table for people, and below it the errors."""
    rows = [_row(each) for each in histograms]
    times = ("p50 ms", "p95 ms", "p99 ms", "max ms")
    columns = ("workload", "requests/s", "rows/s", *times, "server µs", "MB/s", "errors")
    text = table(columns, ("text", *("numeric",) * 9), rows)
    known = {each.workload: each for each in histograms}
    for each in histograms:
        if each.plain is not None and each.plain in known:
            text += _beside(each, known[each.plain])
    for each in histograms:
        for code, count in each.errors.most_common():
            text += f"{each.workload}: {count:,} × {code}\n"
    return text


def _beside(histogram: Histogram, plain: Histogram) -> str:
    """Compare with the same work without what this workload adds."""
    if not plain.per_second:
        return ""
    steps = histogram.steps
    rate = histogram.per_second / steps / plain.per_second
    text = f"{histogram.workload}: {rate:.2f} of the rate of {plain.workload}"
    if histogram.cpu_us is not None and plain.cpu_us:
        text += f", {histogram.cpu_us * steps / plain.cpu_us:.2f} times its CPU time"
    return text + "\n"


def _row(histogram: Histogram) -> tuple[str, ...]:
    record = histogram.record()
    megabytes = histogram.received_bytes / 1e6 / histogram.seconds if histogram.seconds else 0.0
    times = (f"{record[f'{name}_ms']:,.2f}" for name in ("p50", "p95", "p99", "max"))
    return (
        histogram.workload,
        f"{histogram.per_second:,.0f}",
        f"{histogram.per_second * histogram.rows:,.0f}",
        *times,
        "" if histogram.cpu_us is None else f"{histogram.cpu_us:,.0f}",
        f"{megabytes:,.1f}",
        f"{sum(histogram.errors.values()):,}",
    )
