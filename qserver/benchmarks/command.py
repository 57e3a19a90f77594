"""`qserver bench`: runs one workload after the other, then prints the table."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from collections.abc import Sequence

import msgspec
import trio

from qserver.benchmarks.clients import Load
from qserver.benchmarks.printing import StatusLine
from qserver.benchmarks.report import Measured, report
from qserver.benchmarks.server_clock import server_clock
from qserver.benchmarks.setup import prepared
from qserver.benchmarks.workloads import workload_of
from qserver.cli.command_line import WORKLOADS
from qserver.cli.connection import key_of, url_of


def run(options: argparse.Namespace) -> int:
    url, key = url_of(options, os.environ), key_of(options, os.environ)
    names: Sequence[str] = options.workloads or WORKLOADS
    try:
        sizes = options.clients, options.rate, options.seconds
        measured = trio.run(_measure, url, key, names, *sizes)
    except BaseExceptionGroup as group:
        if group.subgroup(KeyboardInterrupt) is not None:
            raise KeyboardInterrupt from None  # a nursery wraps Ctrl-C in a group
        raise
    if options.json:
        text = msgspec.json.encode([each.record() for each in measured])
        sys.stdout.write(msgspec.json.format(text, indent=2).decode() + "\n")
    else:
        sys.stdout.write(report(measured))
    return 0 if any(each.count for each in measured) else 1


async def _measure(
    url: str, key: str, names: Sequence[str], clients: int, rate: float | None, seconds: float
) -> list[Measured]:
    line = StatusLine(sys.stderr)

    def watch(measured: Measured, passed: float) -> None:
        now = measured.count / passed if passed > 0 else 0.0
        name = measured.workload.name
        line.say(f"{name:<9} {passed:.0f} of {seconds:.0f} s  {now:,.0f} requests/s")

    measured = []
    line.say("setting up …")
    made = prepared(url, key, f"bench_{secrets.token_hex(4)}")
    async with made as (target, tables), server_clock(url, key) as clock:
        for name in names:
            load = Load(workload_of(name, target, tables), target.address, clients, rate)
            measured.append(await load.run(seconds, watch, clock))
    line.say("")
    return measured
