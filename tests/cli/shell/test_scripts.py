"""Files of statements: run in order, stopped at the first error with its place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from qserver.cli import main
from qserver.cli.shell.progress import Progress, bar
from qserver.limits import SCRIPT_DEPTH_MAX
from tests.cli.shell.shells import talk
from tests.client.fake_server import KEY, Answer, FakeServer, error, result, streamed

ROOT = Path(__file__).parent.parent.parent.parent


@pytest.fixture(autouse=True)
def connected(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QSERVER_URL", server.url)
    monkeypatch.setenv("QSERVER_API_KEY", KEY)


def file_with(folder: Path, text: str, name: str = "a.sql") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_file_is_run_statement_by_statement(
    server: FakeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answer("SELECT ';'", streamed(["n"], ["integer"], [[1]]))
    path = file_with(tmp_path, "\ufeff-- a file\nINSERT 1;\nSELECT ';';\nDELETE 2")
    assert main(["sql", "-f", path]) == 0
    assert server.statements() == ["-- a file\nINSERT 1", "SELECT ';'", "DELETE 2"]
    printed = capsys.readouterr()
    assert printed.out == " n \n---\n 1\n(1 row)\n\n"
    assert printed.err == ""


def test_a_file_stops_at_its_first_error_with_file_and_line(
    server: FakeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answer("INSERT\n  two", error("42601", "syntax_error", "no", position=10))
    server.answer("three", error("42601", "syntax_error", "bad"))
    path = file_with(tmp_path, "one;\nINSERT\n  two;\nthree;\nfour;")
    assert main(["sql", "-f", path]) == 3
    assert server.statements() == ["one", "INSERT\n  two"]
    said = capsys.readouterr().err
    assert said == f"{path}:3: ERROR 42601: no\nLINE 2:   two\n          ^\n"
    assert main(["sql", "-f", path, "--keep-going"]) == 1
    assert server.statements()[2:] == ["one", "INSERT\n  two", "three", "four"]
    assert f"{path}:4: ERROR 42601: bad\n  three\n" in capsys.readouterr().err


def test_keep_going_stops_when_the_key_is_refused(
    server: FakeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = file_with(tmp_path, "one; two; three;")
    assert main(["sql", "--key", "svc_k_wrong", "-f", path, "--keep-going"]) == 3
    assert capsys.readouterr().err.count("ERROR QS002") == 1


def test_a_block_of_a_file_is_one_transaction(server: FakeServer, tmp_path: Path) -> None:
    answer = {
        "success": True,
        "results": [result([], [], [])] * 2,
        "affected_rows": 0,
        "version": 1,
        "retries": 0,
        "timings": {},
    }
    server.route("POST", "/v1/transaction", Answer(answer))
    path = file_with(tmp_path, "zero;\nBEGIN;\none;\ntwo;\nCOMMIT WORK;\nthree;")
    assert main(["sql", "-f", path]) == 0
    bodies = [each.body for each in server.requests]
    assert [body.get("sql") or body["statements"] for body in bodies] == [
        "zero",
        ["one", "two"],
        "three",
    ]


def test_a_failed_block_names_the_line_of_its_statement(
    server: FakeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = error("23505", "unique_violation", "duplicate", statement=1, detail="Key (1).")
    server.route("POST", "/v1/transaction", failed)
    path = file_with(tmp_path, "BEGIN;\none;\ntwo;\nCOMMIT;\nthree;")
    assert main(["sql", "-f", path]) == 3
    said = capsys.readouterr().err
    assert said == f"{path}:3: ERROR 23505: duplicate\n  two\nDETAIL: Key (1).\n"
    assert server.statements() == []


def test_a_block_without_an_end_is_an_error_and_nothing_is_sent(
    server: FakeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = file_with(tmp_path, "\nBEGIN;\none;\n")
    assert main(["sql", "-f", path]) == 3
    assert f"{path}:2: BEGIN without COMMIT" in capsys.readouterr().err
    assert main(["sql", "-c", "BEGIN; one"]) == 1
    assert server.requests == []


def test_a_file_that_is_not_text_is_refused(
    server: FakeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.sql"
    path.write_bytes(b"one; \xff\xfe; two;")
    assert main(["sql", "-f", str(path)]) == 3
    assert "not UTF-8" in capsys.readouterr().err


def test_files_may_include_files_but_not_for_ever(
    server: FakeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inner = file_with(tmp_path, "inner;", "inner.sql")
    outer = file_with(tmp_path, f"before;\n\\i {inner}\nafter;", "outer.sql")
    assert main(["sql", "-f", outer]) == 0
    assert server.statements() == ["before", "inner", "after"]
    endless = file_with(tmp_path, f"\\i {tmp_path}/endless.sql\n", "endless.sql")
    assert main(["sql", "-f", endless]) == 3
    assert f"more than {SCRIPT_DEPTH_MAX} deep" in capsys.readouterr().err


def test_statements_of_the_command_line_print_results_and_errors(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answer("SELECT 1", streamed(["n"], ["integer"], [[1]]))
    server.answer("SELECT x", error("42703", "undefined_column", "no x", position=8))
    assert main(["sql", "--format", "csv", "-c", "SELECT 1; SELECT 1;", "-c", "SELECT 1"]) == 0
    assert capsys.readouterr().out == "n\n1\n" * 3
    assert main(["sql", "--database", "shop", "-c", "SELECT x"]) == 1
    assert capsys.readouterr().err == "ERROR 42703: no x\nLINE 1: SELECT x\n               ^\n"
    assert server.requests[-1].body["database"] == "shop"


@pytest.mark.half
def test_what_is_piped_in_is_run_at_once(server: FakeServer) -> None:
    server.answer("SELECT 1", streamed(["n"], ["integer"], [[1]]))
    process = subprocess.Popen(
        [sys.executable, "-m", "qserver", "sql", "--format", "ndjson"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("SELECT 1;\nSELECT")
        process.stdin.flush()
        assert process.stdout.readline() == '{"n":1}\n'  # while the pipe is still open
        process.stdin.write(" 1")
        process.stdin.close()
        assert process.stdout.read() == '{"n":1}\n'
        assert process.wait(240) == 0


def test_a_large_file_takes_little_memory_and_runs_in_order(
    server: FakeServer, tmp_path: Path
) -> None:
    path = file_with(tmp_path, "".join(f"INSERT {n}; -- {'x' * 4000}\n" for n in range(200)))
    with talk(server) as person:
        assert person.run(f"\\i {path}") == ""
    assert len(server.statements()) == 200
    assert server.statements()[-1].endswith("\nINSERT 199")


class Screen(list[str]):
    """A terminal that keeps what is drawn on it."""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.append(text)
        return len(text)

    def flush(self) -> None:
        pass


def test_a_bar_is_drawn_now_and_then_and_makes_room() -> None:
    screen = Screen()
    now = [0.0]
    progress = Progress(screen, 1000, lambda: now[0])  # type: ignore[arg-type]
    progress.update(1, 1)
    assert screen == []
    now[0] = 1.0
    progress.update(500, 7)
    progress.update(501, 8)
    assert screen == ["\r\x1b[K[############------------]  50%  0.0 MB  7 statements"]
    progress.clear()
    progress.clear()
    assert screen[1:] == ["\r\x1b[K"]
    assert bar(2_500_000, None, 1234) == "2.5 MB  1,234 statements"
