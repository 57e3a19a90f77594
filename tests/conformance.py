"""Public sqllogictest suites, run against the engine in this process.

    QSERVER_SLT=/path/to/suites python -m tests.conformance
    python -m tests.conformance --suite duckdb --match window --show 40
    python -m tests.conformance --list smoke.list --causes 30

QSERVER_SLT names the folder of the suites; beside it lies `run.py`, the runner that knows the
format and what counts as the same answer. Here is only what lets the runner talk to the engine
without HTTP: it is a synchronous program, so it runs in a thread, and each statement crosses over
to Trio.

The report has a line for each suite and the causes of failures by how often they occur: the same
message about other names and numbers is the same cause.
"""

from __future__ import annotations

import argparse
import heapq
import importlib.util
import re
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import trio

from qserver.durability.memory import MemoryLog
from qserver.engine.database import Database
from qserver.engine.world import OrdinaryWorld
from qserver.errors import QserverError, SqlSyntaxError
from qserver.query.sql_database import Result, SqlDatabase
from qserver.values.text_output import text_function
from qserver.values.types import FLOAT_KINDS, INTEGER_KINDS, Kind, SqlType
from tests.given import GIVEN

VARIABLE = "QSERVER_SLT"
TIMEOUT_MS = 20_000.0
SLOWEST_KEPT = 100


def suites_folder() -> Path | None:
    """Where the suites are, if anybody has said so and it is true."""
    named = GIVEN.get(VARIABLE)
    if not named:
        return None
    folder = Path(named)
    return folder if folder.is_dir() and (folder.parent / "run.py").is_file() else None


def load_runner(folder: Path) -> ModuleType:
    specification = importlib.util.spec_from_file_location("slt_runner", folder.parent / "run.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["slt_runner"] = module
    specification.loader.exec_module(module)
    return module


class InProcess:
    """An engine of the runner: a database in memory, made anew for each file."""

    target = "postgresql"

    def __init__(self, runner: ModuleType, nursery: trio.Nursery) -> None:
        self._result = runner.Result
        self._nursery = nursery
        self._scope: trio.CancelScope | None = None
        self.database: SqlDatabase | None = None
        self.crashes: list[tuple[str, BaseException]] = []
        self.slowest: list[tuple[float, str]] = []

    def reset(self) -> None:
        trio.from_thread.run(self._open)

    async def _open(self) -> None:
        if self._scope is not None:
            self._scope.cancel()
        world = OrdinaryWorld(time.time, Random(0), self._report)
        database = Database(MemoryLog(), world)
        self._scope = await self._nursery.start(_run_in_scope, database)
        self.database = SqlDatabase(database, world)

    def _report(self, text: str, error: Exception) -> None:
        self.crashes.append((text, error))

    def execute(self, sql: str) -> Any:
        before = time.process_time()
        try:
            return trio.from_thread.run(self._execute, sql)
        finally:
            self._note(time.process_time() - before, sql)

    def _note(self, seconds: float, sql: str) -> None:
        """Keeps the few statements that took most of the processor, whatever else it was doing."""
        if len(self.slowest) == SLOWEST_KEPT and seconds <= self.slowest[0][0]:
            return
        heapq.heappush(self.slowest, (seconds, sql))
        if len(self.slowest) > SLOWEST_KEPT:
            heapq.heappop(self.slowest)

    async def _execute(self, sql: str) -> Any:
        assert self.database is not None, "the runner resets before it executes"
        try:
            return self._answer(await self.database.execute(sql, timeout_ms=TIMEOUT_MS))
        except SqlSyntaxError as error:
            return self._failed(error, "parse")
        except QserverError as error:
            return self._failed(error, "sql")
        except Exception as error:  # a bug of ours: it counts, and the run goes on
            self.crashes.append((sql, error))
            return self._result(False, status="crash", message=f"{type(error).__name__}: {error}")

    def _answer(self, result: Result) -> Any:
        writers = [_writer(sql_type) for sql_type in result.types]
        rows = [
            [
                value if value is None or write is None else write(value)
                for value, write in zip(row, writers, strict=True)
            ]
            for row in result.rows
        ]
        names = list(result.columns)
        return self._result(
            True, rows=rows, ncols=len(names), affected=result.affected_rows, names=names
        )

    def _failed(self, error: QserverError, status: str) -> Any:
        return self._result(False, code=error.code, message=error.message, status=status)


async def _run_in_scope(
    database: Database, *, task_status: trio.TaskStatus[trio.CancelScope]
) -> None:
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            await nursery.start(database.run)
            task_status.started(scope)


def _writer(sql_type: SqlType) -> Any:
    """How a value travels in JSON: numbers and truth as they are, all else as text."""
    if sql_type.kind in (*INTEGER_KINDS, *FLOAT_KINDS, Kind.BOOLEAN):
        return None
    return text_function(sql_type)


# --- running files -------------------------------------------------------------------------------


def chosen_files(
    runner: ModuleType, folder: Path, suite: str | None, match: str | None, listed: str | None
) -> list[tuple[str, str]]:
    """Paths of test files, and what they are called."""
    if listed is not None:
        found = runner.collect([], match, str(folder / listed))
    else:
        found = runner.collect([str(folder)], match, None)
    return [(path, key) for path, key in found if suite is None or key.startswith(f"{suite}/")]


async def run_files(
    runner: ModuleType,
    files: list[tuple[str, str]],
    *,
    seconds_most: float | None = None,
    sqlstate: bool = False,
    tell: Any = None,
) -> tuple[list[Any], InProcess]:
    """A report for each file, in order."""
    options = runner.Options()
    options.sqlstate = sqlstate
    if seconds_most is not None:
        options.deadline = time.monotonic() + seconds_most
    reports: list[Any] = []

    def work(engine: InProcess) -> None:
        for path, key in files:
            if options.deadline and time.monotonic() > options.deadline:
                break
            report = runner.run_file(path, engine, options, key)
            report.path = key
            reports.append(report)
            if tell is not None:
                tell(report)

    async with trio.open_nursery() as nursery:
        engine = InProcess(runner, nursery)
        await trio.to_thread.run_sync(work, engine)
        nursery.cancel_scope.cancel()
    return reports, engine


# --- the report ----------------------------------------------------------------------------------


def cause_of(category: str, why: str) -> str:
    """A failure without the names and numbers that make it look unlike others."""
    text = re.sub(r'"[^"]*"|\'[^\']*\'|\b\d+(\.\d+)?\b', "…", why)
    return f"{category}: {text[:110]}"


def by_suite(reports: list[Any]) -> Iterator[str]:
    totals: dict[str, Counter[str]] = {}
    for report in reports:
        total = totals.setdefault(report.path.split("/")[0], Counter())
        total["files"] += 1
        total["clean"] += not report.failed
        total["passed"] += report.passed
        total["failed"] += report.failed
        total["seconds"] += round(report.seconds)
    totals["all"] = sum(totals.values(), Counter())
    for suite, total in totals.items():
        share = 100 * total["passed"] / max(1, total["passed"] + total["failed"])
        yield (
            f"{suite:12} {total['clean']:4} of {total['files']:4} files clean"
            f" {total['passed']:7} passed {total['failed']:6} failed  {share:6.2f} %"
            f" {total['seconds']:5} s"
        )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="public SQL suites against this engine")
    parser.add_argument("--suite", help="one suite: the name of its folder")
    parser.add_argument("--match", help="files whose path matches this regular expression")
    parser.add_argument("--list", dest="listed", help="a file in the folder that names files")
    parser.add_argument("--show", type=int, default=0, help="print so many failures")
    parser.add_argument("--causes", type=int, default=20, help="print so many causes")
    parser.add_argument("--files", action="store_true", help="print a line for each file")
    parser.add_argument("--seconds", type=float, help="stop after so many seconds")
    parser.add_argument("--sqlstate", action="store_true", help="compare error codes as well")
    parser.add_argument("--crashes", type=int, default=0, help="print so many tracebacks")
    parser.add_argument("--slowest", type=int, default=0, help="print so many slow statements")
    options = parser.parse_args(arguments)
    folder = suites_folder()
    if folder is None:
        print(f"{VARIABLE} does not name a folder of suites with run.py beside it", file=sys.stderr)
        return 2
    runner = load_runner(folder)
    files = chosen_files(runner, folder, options.suite, options.match, options.listed)
    shown = [0]

    def tell(report: Any) -> None:
        if options.files:
            print(f"{report.path:60} {report.passed:6} passed {report.failed:6} failed")
        for line, category, why, sql in report.failures:
            if shown[0] < options.show:
                shown[0] += 1
                print(f"{report.path}:{line} [{category}] {why[:300]}\n    {sql[:400]}")
        sys.stdout.flush()

    reports, engine = trio.run(
        lambda: run_files(
            runner, files, seconds_most=options.seconds, sqlstate=options.sqlstate, tell=tell
        )
    )
    causes = Counter(
        cause_of(category, why) for report in reports for _, category, why, _ in report.failures
    )
    print("\n".join(by_suite(reports)))
    for cause, count in causes.most_common(options.causes):
        print(f"{count:7}  {cause}")
    for seconds, sql in sorted(engine.slowest, reverse=True)[: options.slowest]:
        print(f"{seconds:7.2f} s  {' '.join(sql.split())[:150]}")
    for sql, error in engine.crashes[: options.crashes]:
        print("\n" + sql[:500])
        traceback.print_exception(error)
    return 1 if any(report.failed for report in reports) else 0


if __name__ == "__main__":
    sys.exit(main())
