"""Percentiles are latencies that occurred, exact to a thousandth."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.workloads.histogram import Histogram
from qserver.workloads.measuring import latency_of


def histogram_of(latencies: list[float]) -> Histogram:
    histogram = Histogram()
    for each in latencies:
        histogram.add(each)
    return histogram


def test_percentiles_are_latencies_that_occurred() -> None:
    latency = latency_of(histogram_of([at / 1000 for at in range(1, 101)]))
    assert (latency.p50, latency.p95, latency.p99, latency.max) == (50_000, 95_000, 99_000, 100_000)
    assert latency_of(histogram_of([0.002])).p50 == 2_000


def test_without_latencies_all_are_zero() -> None:
    assert [Histogram().percentile(part) for part in (0.5, 1.0)] == [0.0, 0.0]


@pytest.mark.long
@given(st.lists(st.floats(0.0, 100.0).filter(lambda each: each == 0 or each > 1e-8), min_size=1))
def test_percentiles_are_exact_to_a_thousandth(latencies: list[float]) -> None:
    histogram = histogram_of(latencies)
    ordered = sorted(latencies)
    for part in (0.5, 0.95, 0.99, 1.0):
        exact = ordered[max(0, -int(-part * len(ordered) // 1) - 1)]
        assert histogram.percentile(part) in latencies
        assert histogram.percentile(part) == pytest.approx(exact, rel=0.00101)
