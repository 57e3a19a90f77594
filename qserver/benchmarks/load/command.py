"""`qserver bench`: runs one workload after the other, then prints the table."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from collections.abc import Sequence

import msgspec
import trio

from qserver.benchmarks.load.clients import Load
from qserver.benchmarks.load.histogram import Histogram, report
from qserver.benchmarks.load.server_clock import ServerClock
from qserver.benchmarks.load.setup import prepared
from qserver.benchmarks.load.workloads import workload_of
from qserver.cli.command_line import WORKLOADS
from qserver.cli.connection import key_of, url_of


def run(options: argparse.Namespace) -> int:
    url, key = url_of(options, os.environ), key_of(options, os.environ)
    names: Sequence[str] = options.workloads or WORKLOADS
    try:
        sizes = options.clients, options.rate, options.seconds
        histograms = trio.run(_measure, url, key, names, *sizes)
    except BaseExceptionGroup as group:
        if group.subgroup(KeyboardInterrupt) is not None:
            raise KeyboardInterrupt from None  # a nursery wraps Ctrl-C in a group
        raise
    if options.json:
        text = msgspec.json.encode([each.record() for each in histograms])
        sys.stdout.write(msgspec.json.format(text, indent=2).decode() + "\n")
    else:
        sys.stdout.write(report(histograms))
    return 0 if any(each.count for each in histograms) else 1


async def _measure(
    url: str, key: str, names: Sequence[str], clients: int, rate: float | None, seconds: float
) -> list[Histogram]:
    watcher = Watcher(seconds)
    histograms = []
    watcher.say("setting up …")
    made = prepared(url, key, f"bench_{secrets.token_hex(4)}")
    async with made as target, ServerClock(url, key) as clock:
        for name in names:
            load = Load(workload_of(name, target), target.address, clients, rate)
            histograms.append(await load.run(seconds, watcher.watch, clock))
    watcher.say("")
    return histograms


class Watcher:
    """One status line on standard error, redrawn while the bench runs; only on a terminal."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._is_shown = sys.stderr.isatty()

    def say(self, text: str) -> None:
        if self._is_shown:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()

    def watch(self, histogram: Histogram, passed: float) -> None:
        rate = histogram.count / passed if passed > 0 else 0.0
        self.say(
            f"{histogram.workload:<9} {passed:.0f} of {self._seconds:.0f} s  {rate:,.0f} requests/s"
        )
