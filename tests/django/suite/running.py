"""Runs labels of Django's suite in a process of its own, and tells what was not known to fail."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
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
RUN_SECONDS_MAX: Final = 3600

_HEADLINE = re.compile(r"^(ERROR|FAIL|UNEXPECTED SUCCESS): \w+ \(([\w.]+)\)", re.MULTILINE)
_COUNT = re.compile(r"^Ran (\d+) tests? in", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    target: Target
    label: str
    ran: int
    failed: frozenset[str]
    output: str

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
        return self.ran > 0 and not self.surprises

    @property
    def text(self) -> str:
        counts = f"{self.label} on {self.target}: {self.ran} ran, {len(self.failed)} failed"
        return "\n".join([self.output, counts, *self.surprises])


def read(target: Target, label: str, output: str) -> Outcome:
    """What runtests.py says at its end."""
    count = _COUNT.search(output)
    failed = frozenset(name for _, name in _HEADLINE.findall(output))
    return Outcome(target, label, int(count[1]) if count else 0, failed, output)


def run(target: Target, label: str, folder: Path) -> Outcome:
    script = tests_folder() / "runtests.py"
    with _databases(target, folder) as environment:
        command = [
            *(sys.executable, "-W", "ignore", "-m", "tests.django.suite.inside", str(script)),
            *("--settings", "tests.django.suite.settings", "--parallel", "1"),
            *("--noinput", "--keepdb", label),
        ]
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **environment, "PYTHONPATH": _python_path()},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=RUN_SECONDS_MAX,
            check=False,
        )
    return read(target, label, done.stdout)


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
