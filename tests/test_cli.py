"""The command line says the truth about what this version can do."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import qserver
from qserver.cli import main

ROOT = Path(__file__).parent.parent


def test_package_and_pyproject_agree_on_the_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert qserver.__version__ == project["version"]


def test_version_is_printed_by_the_module_as_a_program() -> None:
    command = [sys.executable, "-m", "qserver", "--version"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == f"qserver {qserver.__version__}\n"


def test_serve_says_what_is_missing_and_what_can_be_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["serve", "--host", "127.0.0.1", "--port", "8000", "--data", "somewhere"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "HTTP front end is not part of it" in printed.err
    for command in ("make simulate", "make bench", "make test"):
        assert command in printed.err


@pytest.mark.parametrize(
    "arguments",
    [[], ["sing"], ["serve", "--colour"], ["serve", "--port", "65536"], ["serve", "--port", "-1"]],
)
def test_a_senseless_command_line_ends_with_two(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
