"""Runs labels of Django's suite in a process of its own, and tells what was not known to fail."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Timer
from typing import Final, Literal, get_args
from urllib.parse import parse_qs, urlsplit

import psycopg

from tests.dbapi.served import KEY, client_of, served
from tests.django.suite.databases import PREPARED, WITHOUT_INET
from tests.django.suite.known import KNOWN
from tests.django.suite.sources import tests_folder
from tests.web.contract.servers import free_port

Target = Literal["wire", "postgresql"]
TARGETS: Final[tuple[Target, ...]] = get_args(Target)
LABELS: Final = ("backends", "introspection", "schema", "transactions", "queries")
ROOT: Final = Path(__file__).parents[3]
RUN_SECONDS_MAX: Final = 1800
SECONDS_BETWEEN_NEWS: Final = 15

_HEADLINE = re.compile(r"^(ERROR|FAIL|UNEXPECTED SUCCESS): \w+ \(([\w.]+)\)", re.MULTILINE)
_RESULT = re.compile(r"\.\.\. (ok|FAIL|ERROR|skipped|expected failure|unexpected success)\b")
_COUNT = re.compile(r"^Ran (\d+) tests? in", re.MULTILINE)


@dataclass(frozen=True)
class RunLimit:
    """How long a label may take, and who is told how far it is."""

    seconds: float = RUN_SECONDS_MAX
    told: Callable[[str], None] = lambda _: None


RUN_LIMIT: Final = RunLimit()


@dataclass(frozen=True)
class Outcome:
    target: Target
    label: str
    ran: int
    failed: frozenset[str]
    output: str
    was_stopped: bool = False
    """Whether it took too long, and what it has done until then."""
    done: int = 0

    @property
    def surprises(self) -> list[str]:
        """Failures that are not known, and known ones of the label that did not fail."""
        known = {name for name in KNOWN[self.target] if name.startswith(f"{self.label}.")}
        return [
            *(f"failed: {name}" for name in sorted(self.failed - known)),
            *(f"known to fail, and did not: {name}" for name in sorted(known - self.failed)),
        ]

    @property
    def is_good(self) -> bool:
        return self.ran > 0 and not self.was_stopped and not self.surprises

    @property
    def cells(self) -> tuple[str, ...]:
        """Its row in the table of results."""
        ran = f"stopped after {self.done}" if self.was_stopped else str(self.ran)
        surprises = "?" if self.was_stopped else str(len(self.surprises))
        return self.label, self.target, ran, str(len(self.failed)), surprises

    @property
    def text(self) -> str:
        counts = f"{self.label} on {self.target}: {self.ran} ran, {len(self.failed)} failed"
        return "\n".join([self.output, counts, *self.surprises])


def read(target: Target, label: str, output: str) -> Outcome:
    """What runtests.py says at its end."""
    count = _COUNT.search(output)
    failed = frozenset(name for _, name in _HEADLINE.findall(output))
    return Outcome(target, label, int(count[1]) if count else 0, failed, output)


def run(target: Target, label: str, folder: Path, run_limit: RunLimit = RUN_LIMIT) -> Outcome:
    """Run a label, for so long at most; what it said until then counts."""
    script = tests_folder() / "runtests.py"
    with _databases(target, folder) as environment:
        command = [
            *(sys.executable, "-u", "-W", "ignore", "-m", "tests.django.suite.inside", str(script)),
            *("--settings", "tests.django.suite.settings", "--parallel", "1", "--verbosity", "2"),
            *("--noinput", "--keepdb", label),
        ]
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **environment, "PYTHONPATH": _python_path()},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        watch = Watch(f"{label} on {target}", run_limit.told)
        stopped = Event()
        timer = Timer(run_limit.seconds, stop_run, (process, stopped))
        timer.start()
        try:
            assert process.stdout is not None
            for line in process.stdout:
                watch.see(line)
        finally:
            timer.cancel()
            stop_run(process, Event())
    output = "".join(watch.lines)
    return replace(read(target, label, output), was_stopped=stopped.is_set(), done=watch.done)


def stop_run(process: subprocess.Popen[str], stopped: Event) -> None:
    """End a run, with all processes that it began."""
    if process.poll() is None:
        stopped.set()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Watch:
    """The lines of a run; it tells how far that is, now and then."""

    def __init__(self, name: str, tell: Callable[[str], None]) -> None:
        self.lines: list[str] = []
        self.done = self.failed = 0
        self._name = name
        self._tell = tell
        self._began = self._told = time.monotonic()

    def see(self, line: str) -> None:
        self.lines.append(line)
        found = _RESULT.search(line)
        if found is None:
            return
        self.done += 1
        self.failed += found[1] in ("FAIL", "ERROR")
        now = time.monotonic()
        if now - self._told >= SECONDS_BETWEEN_NEWS:
            self._told = now
            seconds = round(now - self._began)
            self._tell(f"{self._name}: {self.done} done, {self.failed} failed, {seconds} s")


def _python_path() -> str:
    """What this process imports, wherever its packages are."""
    return os.pathsep.join([str(ROOT), *filter(None, sys.path)])


@contextmanager
def _databases(target: Target, folder: Path) -> Iterator[Mapping[str, str]]:
    if target == "postgresql":
        from tests.differential.engines import started_postgres

        with started_postgres() as server:
            url = server.get_uri()
            with psycopg.connect(url, autocommit=True) as connection:
                for name in PREPARED.values():
                    connection.execute(f"CREATE DATABASE {name}".encode())
            parts = urlsplit(url)
            host = parse_qs(parts.query).get("host", [parts.hostname or ""])[0]
            yield _variables(host, parts.port or 5432, parts.username or "postgres", "")
        return
    port = free_port()
    with served(folder, QSERVER_PG_PORT=str(port)) as running:
        with client_of(running) as client:
            for name in ("postgres", *PREPARED.values()):
                client.create_database(name)
        yield {**_variables("127.0.0.1", port, "me", KEY), WITHOUT_INET: "1"}


def _variables(host: str, port: int, user: str, password: str) -> dict[str, str]:
    return {
        "SUITE_HOST": host,
        "SUITE_PORT": str(port),
        "SUITE_USER": user,
        "SUITE_PASSWORD": password,
    }
