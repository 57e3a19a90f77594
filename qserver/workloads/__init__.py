"""Benchmarks that a running service makes of itself, in a scratch database: `GET /bench`.

kinds      the workloads: what is set up, what a client does over and over, what must be true
measuring  clients in a loop until the time is over, and the report
turnstile  one at a time
"""

from __future__ import annotations

from qserver.workloads.measuring import BenchReport, Latency, run_workload
from qserver.workloads.rate_gate import Bench
from qserver.workloads.standard import WORKLOADS

__all__ = ["WORKLOADS", "Bench", "BenchReport", "Latency", "run_workload"]
