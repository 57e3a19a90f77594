"""Power failures at every operation of a run, and what a start makes of each.

    worker, under the library ─► journal ─► replay ─┬─ before every operation: a power failure
                                                    │       └─► a folder ─► start ─► audit
                                                    └─ some of these folders: the worker again

The worker runs once for each phase, however many failures are tried. What does need a run for each
is a process that is killed at an operation, and one that meets an error there and goes on.
"""

from __future__ import annotations

import copy
import errno
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

import trio

from tests.powerloss.audit import Promises, audit
from tests.powerloss.disk import Disk, Luck, Survivors, put_down
from tests.powerloss.journal import Operation, Recorder
from tests.powerloss.worker import DIED

ROOT: Final = Path(__file__).parent.parent.parent
PROBLEMS_MAX: Final = 5
CHANGES: Final = frozenset("CDWTRUE")
"""Operations after which a power failure may leave something else than before them."""
KILLED: Final = 137

Audit: TypeAlias = Callable[[Path, Promises], Awaitable[list[str]]]
"""Tells what is wrong with a folder, after these promises."""


@dataclass(slots=True)
class Report:
    operations: int = 0
    failures: int = 0
    """Power failures that were tried; those that leave the same count once."""
    folders: int = 0
    promises: int = 0
    kills: int = 0
    problems: list[str] = field(default_factory=list)

    def add(self, other: Report) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def __str__(self) -> str:
        lines = [
            f"operations: {self.operations:,}, power failures: {self.failures:,},"
            f" different folders that they left: {self.folders:,}, kills: {self.kills},"
            f" promises: {self.promises:,}"
        ]
        lines += [f"PROBLEM: {problem}" for problem in self.problems]
        lines.append("nothing was lost" if not self.problems else "something was lost")
        return "\n".join(lines)


class Campaign:
    """One folder, from the first phase to the last, and all failures on the way."""

    def __init__(
        self,
        library: Path,
        place: Path,
        *,
        bug: str | None = None,
        lucks: Sequence[int | str] = ("nothing", "all", 1),
        problems_most: int = PROBLEMS_MAX,
        tell: Callable[[str], None] | None = None,
        audit: Audit = audit,
        every: int = 1,
    ) -> None:
        """Let the power fail before each operation, or before one in so many (`every`)."""
        self._library = library
        self._place = place
        self._bug = bug
        self._lucks = lucks
        self._problems_most = problems_most
        self._tell = tell or (lambda line: None)
        self._audit = audit
        self._every = every
        self._seen: set[int] = set()
        self.left: list[tuple[Survivors, Promises]] = []
        """The folders that were tried, and what had been promised by then."""
        self.report = Report()
        place.mkdir(parents=True, exist_ok=True)

    def run(self, phases: Sequence[str], fail_at: int = 0) -> Report:
        """Let the power fail everywhere in these phases, in which one operation may fail before."""
        recorder = self._record(phases, {}, fail_at)
        trio.run(self._fail_everywhere, recorder, Disk(recorder.root), Promises())
        recorder.control.close()
        return self.report

    def run_again(self, start: Survivors, promises: Promises) -> Report:
        """The same for a start on what a power failure has left."""
        recorder = self._record(["again"], start)
        disk = Disk(recorder.root)
        disk.load(start)
        trio.run(self._fail_everywhere, recorder, disk, copy.deepcopy(promises))
        recorder.control.close()
        return self.report

    def run_killed(self, phases: Sequence[str], kill_at: int, half: bool) -> Report:
        """Kill the process at an operation, and start on what it has left."""
        recorder = self._recorder({})
        recorder.control.set(kill_at=kill_at, kill_half=int(half))
        for phase in phases:
            if run_worker(recorder, phase, self._bug) == KILLED:
                break
        promises = Promises()
        for operation in recorder.operations():
            if operation.kind == "A":
                promises.hear(operation.data.decode())
        problems = trio.run(self._audit, recorder.root, promises)
        self.report.problems += [f"killed at operation {kill_at}: {each}" for each in problems]
        self.report.kills += 1
        recorder.control.close()
        return self.report

    def _recorder(self, start: Survivors) -> Recorder:
        folder = self._place / "recorded"
        shutil.rmtree(folder, ignore_errors=True)
        put_down(start, folder)
        return Recorder(self._library, folder, self._place / "notes")

    def _record(self, phases: Sequence[str], start: Survivors, fail_at: int = 0) -> Recorder:
        """Run the worker, one phase after the other."""
        recorder = self._recorder(start)
        for phase in phases:
            recorder.control.set(fail_at=fail_at, fail_errno=errno.EIO)
            run_worker(recorder, phase, self._bug)
        return recorder

    async def _fail_everywhere(self, recorder: Recorder, disk: Disk, promises: Promises) -> None:
        news, left = True, 0
        for number, operation in enumerate(recorder.operations()):
            self.report.operations += 1
            if operation.kind in CHANGES and news:
                if left == 0:
                    await self._fail_here(disk, promises, number, operation)
                news, left = False, (left or self._every) - 1
            if operation.kind == "A":
                promises.hear(operation.data.decode())
                self.report.promises += 1
            else:
                disk.replay(operation)
            news = news or operation.kind in CHANGES or operation.kind == "A"
            if len(self.report.problems) >= self._problems_most:
                return
        await self._fail_here(disk, promises, -1, None)

    async def _fail_here(
        self, disk: Disk, promises: Promises, number: int, operation: Operation | None
    ) -> None:
        for luck in self._lucks:
            seed = luck if isinstance(luck, str) else luck * 1_000_003 + number
            left = disk.survivors(Luck(seed))
            self.report.failures += 1
            mark = hash((promises.count, *left.items()))
            if mark in self._seen:
                continue
            self._seen.add(mark)
            where = f"operation {number} ({operation}), {luck}"
            self.left.append((left, copy.deepcopy(promises)))
            problems = await self._try(left, promises)
            self.report.problems += [f"before {where}: {problem}" for problem in problems]
            self._tell(f"{self.report.failures} power failures")

    async def _try(self, left: Survivors, promises: Promises) -> list[str]:
        self.report.folders += 1
        folder = self._place / "left"
        shutil.rmtree(folder, ignore_errors=True)
        put_down(left, folder)
        return await self._audit(folder, promises)


def run_worker(recorder: Recorder, phase: str, bug: str | None = None) -> int:
    """One life of the worker; the code that it ended with."""
    command = [sys.executable, "-m", "tests.powerloss.worker", str(recorder.root), phase]
    command += ["--bug", bug] if bug is not None else []
    result = subprocess.run(
        command,
        cwd=ROOT,
        env=recorder.environment(),
        capture_output=True,
        check=False,
    )
    if result.returncode not in (0, DIED, KILLED):
        raise RuntimeError(f"the worker failed: {result.stderr.decode(errors='replace')}")
    return result.returncode
