"""The script on the page of the shell prints what the page shows."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout

import pytest

from qserver.cli.shell.commands import COMMANDS, run_command
from qserver.cli.shell.scripts import run_file
from qserver.cli.shell.shell import Shell
from tests.cli.databases import MakeClient, empty_database
from tests.cli.real_server import ROOT

__all__ = ["empty_database"]

PAGE = (ROOT / "docs" / "shell.md").read_text(encoding="utf-8")


def test_the_script_prints_what_is_shown(
    empty_database: MakeClient, tmp_path_factory: pytest.TempPathFactory
) -> None:
    found = re.search(r"^```shell\n(.*?)^```\n\n```\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    script, shown = found.groups()
    path = tmp_path_factory.mktemp("page") / "page.sql"
    path.write_text(script, encoding="utf-8")
    printed, said = io.StringIO(), io.StringIO()
    with redirect_stdout(printed):
        shell = Shell(empty_database(), run_command, printed.write, said.write)
        shell.learn_database()
        run_file(shell, path)
    assert (said.getvalue(), printed.getvalue()) == ("", shown)


def test_every_command_is_on_the_page() -> None:
    named = set(re.findall(r"\\[a-zA-Z?!_]+", PAGE))
    assert set(COMMANDS) - named == {"\\p", "\\r", "\\T"}
