"""How long tests take: a run writes it down, and `make durations` prints the longest.

Of each test the seconds on the clock and the processor seconds, its child processes included, are
kept in a file that git ignores. A run of some tests renews only theirs. The processor tells more:
the clock also shows what else the machine had to do.
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Generator, Mapping, Sequence
from multiprocessing import forkserver
from pathlib import Path
from typing import Final

import pytest

FILE: Final = Path(__file__).parents[1] / ".test-durations.json"
LONGEST: Final = 25
PROCESSOR: Final = "processor seconds"
TICKS: Final = os.sysconf("SC_CLK_TCK")

_Times = dict[str, tuple[float, float]]


def processor_seconds() -> float:
    """Of this process, of its children that have ended, and of forked servers that have."""
    return sum(os.times()[:4]) + _of_forked_servers()


def _of_forked_servers() -> float:
    """Of the process that forks servers, and of those of its own that have ended."""
    pid = forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # there is none, or no /proc
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS


class Durations:
    """A plugin: each process that runs tests measures, and the one that reports writes."""

    def __init__(self) -> None:
        self._began = 0.0
        self._times: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        self._began = processor_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "teardown":
            report.user_properties.append((PROCESSOR, processor_seconds() - self._began))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        times = self._times[report.nodeid]
        times[0] += report.duration
        times[1] += sum(float(str(of)) for name, of in report.user_properties if name == PROCESSOR)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        ours = session.config.rootpath == FILE.parent
        if ours and self._times and not hasattr(session.config, "workerinput"):
            write({**read(), **self._times})


def write(times: Mapping[str, Sequence[float]]) -> None:
    """Write them whole: another run may read, or write, at the same time."""
    part = FILE.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps(times, indent=0))
    part.replace(FILE)


def read() -> _Times:
    if not FILE.exists():
        return {}
    kept: dict[str, list[float]] = json.loads(FILE.read_text())
    return {name: (clock, processor) for name, (clock, processor) in kept.items()}


def longest(times: _Times) -> str:
    """The longest tests and files, by their processor time."""
    files: dict[str, tuple[float, float]] = {}
    for name, (clock, processor) in times.items():
        file = name.partition("::")[0]
        before = files.get(file, (0.0, 0.0))
        files[file] = before[0] + clock, before[1] + processor
    lines = [f"{sum(clock for clock, _ in times.values()):8.1f}  clock, seconds"]
    lines.append(f"{sum(processor for _, processor in times.values()):8.1f}  processor, seconds")
    for some in (files, times):
        lines.append("\n   clock  processor")
        ordered = sorted(some.items(), key=lambda each: -each[1][1])
        lines += [f"{clock:8.1f} {cpu:10.1f}  {name}" for name, (clock, cpu) in ordered[:LONGEST]]
    return "\n".join(lines)


if __name__ == "__main__":
    print(longest(read()) if FILE.exists() else "run `make test` first", file=sys.stdout)
