"""The command line: what makes no sense ends with 2, what fails with 1 and a sentence."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import qserver
from qserver.cli import main
from qserver.cli.command_line import WORKLOADS, command_line, duration
from qserver.config import SETTINGS
from tests.client.fake_server import KEY, FakeServer

ROOT = Path(__file__).parent.parent.parent


def run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """The command as its own process, with no settings but these."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("QSERVER_")}
    return subprocess.run(
        [sys.executable, "-m", "qserver", *arguments],
        cwd=ROOT,
        env={**clean, **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
    )


def test_package_and_pyproject_agree_on_the_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert qserver.__version__ == project["version"]


def test_version_is_printed_by_the_module_as_a_program() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"qserver {qserver.__version__}\n")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["sing"],
        ["serve", "--colour"],
        ["sql", "--format", "xml"],
        ["sql", "--key", "a", "--key-file", "b"],
        ["key"],
        ["key", "create"],
        ["key", "create", "ci", "--expires-in", "soon"],
        ["database", "delete"],
        ["bench", "--seconds", "0"],
        ["bench", "--clients", "0"],
        ["bench", "--workload", "sleep"],
    ],
)
def test_a_senseless_command_line_ends_with_two(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: qserver" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["serve", "sql", "key", "database", "bench"])
def test_help_has_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert f"examples:\n  qserver {command}" in capsys.readouterr().out


def test_serve_has_a_flag_for_each_setting() -> None:
    flags = [each for each in SETTINGS if each.field]
    arguments = [part for each in flags for part in (each.flag, f"<{each.field}>")]
    options = command_line().parse_args(["serve", *arguments])
    for each in flags:
        assert getattr(options, each.field) == f"<{each.field}>"


def test_help_names_each_workload(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["bench", "--help"])
    printed = capsys.readouterr().out
    assert all(f"\n  {name} " in printed for name in WORKLOADS)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("10m", 600), ("12h", 43_200), ("30d", 2592000)]
)
def test_a_time_has_a_unit(text: str, seconds: int) -> None:
    assert duration(text) == seconds


def test_a_command_without_a_key_says_where_to_get_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("QSERVER_API_KEY", raising=False)
    assert main(["database", "list"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("qserver: no API key\n")
    assert "QSERVER_API_KEY" in printed.err


@pytest.mark.half
def test_a_server_that_is_not_there_takes_two_lines_and_no_traceback() -> None:
    done = run("key", "list", "--url", "http://127.0.0.1:1", QSERVER_API_KEY=KEY)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 2
    assert "cannot reach http://127.0.0.1:1" in done.stderr


@pytest.mark.half
def test_a_key_that_is_not_good_says_what_to_do(server: FakeServer) -> None:
    done = run("key", "list", "--url", server.url, "--key", "svc_k_other")
    assert done.returncode == 1
    assert done.stderr == (
        "qserver: the key is not good\n"
        "Pass a good key with --key or --key-file, or set QSERVER_API_KEY.\n"
    )


@pytest.mark.long
def test_a_wrong_setting_is_a_sentence() -> None:
    done = run("serve", "--port", "99999")
    assert done.returncode == 1
    assert "--port '99999' is wrong" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_key_file_holds_the_key(
    server: FakeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "key"
    path.write_text(f"{KEY}\n", encoding="utf-8")
    assert main(["sql", "--url", server.url, "--key-file", str(path), "-c", "SELECT 1"]) == 0
    assert server.statements() == ["SELECT 1"]
    assert main(["sql", "--url", server.url, "--key-file", str(tmp_path), "-c", "SELECT 1"]) == 1
    assert "cannot read the key file" in capsys.readouterr().err
