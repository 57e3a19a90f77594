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

from qserver.client import Client
from tests.cli.real_server import KEY, ROOT
from tests.forked import Forked
from tests.patience import PATIENCE_SECONDS

FOLDER = Path(__file__).parent
SCRIPT = (FOLDER / "like_psql.sql").read_text(encoding="utf-8")
FILLED = ROOT / "tests" / "pgwire" / "dumped.sql"
PSQL = shutil.which("psql")
PG_DUMP = shutil.which("pg_dump")
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

    def create(self, database: str) -> None:
        with Client(self._http, KEY) as client:
            client.create_database(database)

    def dump(self, database: str) -> str:
        assert PG_DUMP is not None, "the test is skipped otherwise"
        done = self._run([PG_DUMP, self._wire.removesuffix("main") + database], "")
        assert done.returncode == 0, done.stderr
        return re.sub(r"(?m)^(\\(?:un)?restrict) .*", r"\1 key", done.stdout)

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


WITH_ROWS = {
    "pstdin in a script of standard input": (
        (),
        "\\copy copied from pstdin\n1\n2\n\\.\nSELECT 7;\n",
    ),
    "stdin in a script": ((), "\\copy copied from stdin\n1\n2\n\\.\nSELECT 7;\n"),
    "COPY": ((), "COPY copied FROM stdin; SELECT 5;\n1\n2\n\\.\nSELECT 7;\n"),
    "no end": ((), "COPY copied FROM stdin;\n1\n2"),
    "no rows": ((), "COPY copied FROM stdin;\n\\.\nSELECT 8;\n"),
    "lines of Windows": ((), "COPY copied FROM stdin;\r\n1\r\n\\.\r\nSELECT 8;\r\n"),
    "within a statement": ((), "SELECT 1 + \\copy copied from stdin\n1\n\\.\n 2;\n"),
    "a row that is wrong": (
        ("-v", "ON_ERROR_STOP=0"),
        "COPY copied FROM stdin;\n1\nx\n\\.\nSELECT 7;\n",
    ),
    "a row that is wrong, and no more": (
        ("-v", "ON_ERROR_STOP=1"),
        "COPY copied FROM stdin;\n1\nx\n\\.\nSELECT 7;\n",
    ),
    "in a transaction": (
        ("-v", "ON_ERROR_STOP=1"),
        "SET lock_timeout = 0;\nBEGIN;\nSET LOCAL search_path = public;\n"
        "INSERT INTO copied VALUES (5);\nSELECT count(*) FROM copied;\n"
        "COPY copied FROM stdin;\n1\n2\n\\.\n\n\\copy copied from stdin\n3\n\\.\n"
        "SELECT count(*) AS n FROM copied \\gset\n\\echo :n\n"
        "CREATE INDEX ON copied (a);\nCOPY (SELECT a FROM copied) TO stdout;\nCOMMIT;\nSELECT 7;\n",
    ),
    "in a transaction that is rolled back": (
        (),
        "BEGIN;\nINSERT INTO copied VALUES (5);\nCOPY copied FROM stdin;\n1\n2\n\\.\n"
        "SELECT count(*) FROM copied;\nROLLBACK;\nINSERT INTO copied VALUES (6);\n",
    ),
    "in a transaction, a row that is wrong": (
        ("-v", "ON_ERROR_STOP=0"),
        "BEGIN;\nINSERT INTO copied VALUES (5);\nCOPY copied FROM stdin;\n1\nx\n"
        "INSERT INTO copied VALUES (8);\n\\.\nSELECT 7;\nCOMMIT;\nINSERT INTO copied VALUES (9);\n",
    ),
    "in a transaction, a row that is wrong, and no more": (
        ("-v", "ON_ERROR_STOP=1"),
        "BEGIN;\nINSERT INTO copied VALUES (5);\nCOPY copied FROM stdin;\n1\nx\n"
        "INSERT INTO copied VALUES (8);\n\\.\nSELECT 7;\nCOMMIT;\nINSERT INTO copied VALUES (9);\n",
    ),
    "in a transaction, back to a savepoint": (
        ("-v", "ON_ERROR_STOP=0"),
        "BEGIN;\nSAVEPOINT a;\nCOPY copied FROM stdin;\nx\n\\.\nROLLBACK TO a;\n"
        "COPY copied FROM stdin;\n4\n\\.\nCOMMIT;\n",
    ),
    "in a transaction, a statement before it that fails": (
        ("-v", "ON_ERROR_STOP=1"),
        "BEGIN;\nINSERT INTO copied VALUES (5);\nINSERT INTO copied VALUES (5);\n"
        "COPY copied FROM stdin;\n1\n\\.\nCOMMIT;\n",
    ),
    "-c": (("-c", "COPY copied FROM stdin"), "1\n2\n\\.\nSELECT 7;\n"),
    "three -c": (
        (
            *("-c", "COPY copied FROM stdin"),
            *("-c", "\\copy copied from pstdin"),
            *("-c", "\\copy copied from stdin"),
        ),
        "1\n\\.\n2\n\\.\n3\n",
    ),
    "a file beside standard input": (("-f", "FILE"), "1\n2\n\\.\nSELECT 7;\n"),
    "a file in a script": (("-f", "-"), "\\i FILE\n1\n\\.\nSELECT 8;\n"),
}


@pytest.mark.long
@pytest.mark.parametrize("case", WITH_ROWS)
def test_rows_of_a_script_are_read_as_psql_reads_them(
    programs: Programs, tmp_path: Path, case: str
) -> None:
    file = tmp_path / "rows.sql"
    file.write_text(
        "\\copy copied from pstdin\nSELECT 7;\n\\copy copied from stdin\n11\n\\.\nSELECT 9;\n"
    )
    options, script = WITH_ROWS[case]
    options = tuple(each.replace("FILE", str(file)) for each in options)
    script = script.replace("FILE", str(file))
    found = []
    for run in (programs.psql, programs.shell):
        assert programs.psql("CREATE TABLE copied (a integer PRIMARY KEY);").returncode == 0
        done = run(script, *options)
        rows = programs.psql("SELECT a FROM copied ORDER BY a; DROP TABLE copied;").stdout
        found.append((done.stdout, done.returncode, "ERROR" in done.stderr, rows))
    assert found[0] == found[1]


@pytest.mark.long
@pytest.mark.skipif(PG_DUMP is None, reason="pg_dump is not installed")
def test_a_dump_is_restored_as_one_transaction(programs: Programs) -> None:
    dump = programs.dump("main")
    assert "\nCOPY " in dump
    programs.create("dumped")
    done = programs.shell(f"BEGIN;\n{dump}\nSELECT 1 / 0;\nCOMMIT;\n", "-d", "dumped")
    assert done.returncode == 3 and "22012" in done.stderr
    assert "CREATE TABLE" not in programs.dump("dumped")
    done = programs.shell(f"BEGIN;\n{dump}\nCOMMIT;\n", "-d", "dumped")
    assert (done.returncode, done.stderr) == (0, "")
    assert difference(dump, programs.dump("dumped")) == []


@pytest.mark.long
@pytest.mark.parametrize("program", ["psql", "shell"])
def test_a_server_that_is_not_there_is_exit_code_2(program: str) -> None:
    away = Programs("http://127.0.0.1:1", "postgresql://me:k@127.0.0.1:1/main")
    assert getattr(away, program)("", "-c", "SELECT 1").returncode == 2
