"""The shell prints what psql prints: both run like_psql.sql on the same database of one server.

psql speaks PostgreSQL's protocol, the shell HTTP. Sizes and definitions are the same on both ways.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from signal import SIGTERM

import pytest

from tests.cli.real_server import KEY, ROOT
from tests.forked import Forked
from tests.patience import PATIENCE_SECONDS

FOLDER = Path(__file__).parent
SCRIPT = (FOLDER / "like_psql.sql").read_text(encoding="utf-8")
FILLED = ROOT / "tests" / "pgwire" / "dumped.sql"
PSQL = shutil.which("psql")
pytestmark = pytest.mark.skipif(PSQL is None, reason="psql is not installed")


class Programs:
    """Both programs, and the server that they speak to."""

    def __init__(self, http: str, wire: str) -> None:
        self._http, self._wire = http, wire

    def _run(self, command: list[str], script: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
        environment |= {"QSERVER_URL": self._http, "QSERVER_API_KEY": KEY, "PGTZ": "UTC"}
        environment |= {"PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8", "PSQLRC": "/dev/null"}
        return subprocess.run(
            command,
            input=script,
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE_SECONDS,
            env=environment,
            cwd=ROOT,
        )

    def psql(self, script: str = "", *options: str) -> subprocess.CompletedProcess[str]:
        assert PSQL is not None, "the tests are skipped otherwise"
        return self._run([PSQL, "-Xq", self._wire, *options], script)

    def shell(self, script: str = "", *options: str) -> subprocess.CompletedProcess[str]:
        return self._run([sys.executable, "-m", "qserver", "sql", "-q", *options], script)


@pytest.fixture(scope="module")
def programs() -> Iterator[Programs]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("QSERVER_")}
    clean |= {"QSERVER_API_KEY": KEY, "QSERVER_PG_PORT": "0"}
    reading, writing = os.pipe()
    process = Forked(["serve", "--port", "0", "--data", ":memory:"], ROOT, clean, writing)
    os.close(writing)
    with os.fdopen(reading) as output:
        try:
            http = wire = None
            while http is None or wire is None:
                line = output.readline()
                assert line, "it has ended"
                http = http or re.search(r"http://[\d.:]+", line)
                wire = wire or re.search(r"@([\d.:]+)/main", line)
            found = Programs(http.group(), f"postgresql://me:{KEY}@{wire[1]}/main")
            assert found.psql(FILLED.read_text(encoding="utf-8")).returncode == 0
            yield found
        finally:
            process.send_signal(SIGTERM)
            output.read()
            process.wait()


def difference(wanted: str, found: str) -> list[str]:
    return list(unified_diff(wanted.split("\n"), found.split("\n"), "psql", "shell", "", n=2))


@pytest.mark.long
def test_the_shell_prints_what_psql_prints(programs: Programs) -> None:
    wanted, found = programs.psql(SCRIPT), programs.shell(SCRIPT)
    assert (wanted.stderr, found.stderr) == ("", "")
    assert difference(wanted.stdout, found.stdout) == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "script", "code"),
    [
        (("-c", "SELECT 1"), "", 0),
        (("-c", "SELECT 1/0"), "", 1),
        (("-v", "ON_ERROR_STOP=1"), "SELECT 1/0;\nSELECT 2;\n", 3),
        (("-v", "ON_ERROR_STOP=0"), "SELECT 1/0;\nSELECT 2;\n", 0),
        (("-f", "nowhere.sql"), "", 1),
    ],
)
def test_an_exit_code_is_that_of_psql(
    programs: Programs, options: tuple[str, ...], script: str, code: int
) -> None:
    wanted, found = programs.psql(script, *options), programs.shell(script, *options)
    assert (wanted.returncode, found.returncode) == (code, code)
    assert wanted.stdout == found.stdout


@pytest.mark.long
@pytest.mark.parametrize("program", ["psql", "shell"])
def test_a_server_that_is_not_there_is_exit_code_2(program: str) -> None:
    away = Programs("http://127.0.0.1:1", "postgresql://me:k@127.0.0.1:1/main")
    assert getattr(away, program)("", "-c", "SELECT 1").returncode == 2
