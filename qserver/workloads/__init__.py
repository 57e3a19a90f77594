"""Benchmarks that a running service runs on itself, in a scratch database: `GET /bench`.

standard    the workloads: their setup, a client's operation, and the check at the end
measuring   runs clients in a loop until the time is over, and reports
bench_lock  runs one benchmark at a time
"""

from __future__ import annotations

from qserver.workloads.bench_lock import Bench
from qserver.workloads.measuring import BenchReport, Latency, run_workload
from qserver.workloads.standard import WORKLOADS

__all__ = ["WORKLOADS", "Bench", "BenchReport", "Latency", "run_workload"]
