"""What was measured of each workload, and the report of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from qserver.benchmarks.workloads import Workload
from qserver.cli.layouts import table
from qserver.workloads.histogram import Histogram


class Measured(Histogram):
    """The measurements of one workload."""

    def __init__(self, workload: Workload) -> None:
        super().__init__()
        self.workload = workload
        self.seconds = 0.0
        self.received_bytes = 0
        self.errors: Counter[str] = Counter()
        self.cpu_seconds: float | None = None
        """Of the server, if it is known."""

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

    @property
    def per_second(self) -> float:
        return self.count / self.seconds if self.seconds else 0.0

    @property
    def rows_per_second(self) -> float:
        return self.per_second * self.workload.rows

    def record(self) -> dict[str, Any]:
        parts = {"p50": 0.50, "p95": 0.95, "p99": 0.99, "max": 1.0}
        return {
            "workload": self.workload.name,
            "requests": self.count,
            "seconds": round(self.seconds, 3),
            "requests_per_second": round(self.per_second, 1),
            "rows_per_second": round(self.rows_per_second, 1),
            **{f"{name}_ms": round(self.percentile(part) * 1e3, 3) for name, part in parts.items()},
            "server_cpu_us": None if self.cpu_us is None else round(self.cpu_us, 1),
            "received_bytes": self.received_bytes,
            "errors": dict(self.errors),
        }


def report(measured: Sequence[Measured]) -> str:
    """The table for people, and below it the errors."""
    times = ("p50 ms", "p95 ms", "p99 ms", "max ms")
    columns = ("workload", "requests/s", "rows/s", *times, "server µs", "MB/s", "errors")
    text = table(columns, ("text", *("numeric",) * 9), [_row(each) for each in measured])
    known = {each.workload.name: each for each in measured}
    for each in measured:
        if each.workload.plain in known:
            text += _beside(each, known[each.workload.plain])
    for each in measured:
        for code, count in each.errors.most_common():
            text += f"{each.workload.name}: {count:,} × {code}\n"
    return text


def _beside(measured: Measured, plain: Measured) -> str:
    """Compare with the same work without what this workload adds."""
    if not plain.per_second:
        return ""
    steps = measured.workload.steps
    rate = measured.per_second / steps / plain.per_second
    text = f"{measured.workload.name}: {rate:.2f} of the rate of {plain.workload.name}"
    if measured.cpu_us is not None and plain.cpu_us:
        text += f", {measured.cpu_us * steps / plain.cpu_us:.2f} times its CPU time"
    return text + "\n"


def _row(measured: Measured) -> tuple[str, ...]:
    record = measured.record()
    megabytes = measured.received_bytes / 1e6 / measured.seconds if measured.seconds else 0.0
    return (
        measured.workload.name,
        f"{measured.per_second:,.0f}",
        f"{measured.rows_per_second:,.0f}",
        *(f"{record[f'{name}_ms']:,.2f}" for name in ("p50", "p95", "p99", "max")),
        "" if measured.cpu_us is None else f"{measured.cpu_us:,.0f}",
        f"{megabytes:,.1f}",
        f"{sum(measured.errors.values()):,}",
    )
