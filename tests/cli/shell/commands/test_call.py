"""What a command gets of its line, and what it says where that is too much or too little."""

from __future__ import annotations

import pytest

from qserver.cli.shell.commands import COMMANDS, run_command
from qserver.cli.shell.commands.call import Call, Command
from qserver.cli.shell.shell import Shell
from qserver.cli.splitting import Statement
from qserver.client import Client
from qserver.errors import InvalidRequest

BEFORE = Statement("SELECT 1", 1)


def call(line: str, before: Statement | None = None) -> tuple[Call, list[str]]:
    said: list[str] = []
    with Client("http://127.0.0.1:1", "key", "shop") as client:
        shell = Shell(client, run_command, said.append, said.append)
    return Call(shell, "\\x", line, before, 1), said


def test_arguments_are_words_quotes_and_variables() -> None:
    made, said = call("one 'two words' :name")
    made.shell.variables.assign("name", "three")
    assert made.words() == ["one", "two words", "three"]
    assert said == []


def test_an_argument_too_many_is_told_and_ignored() -> None:
    made, said = call("on off")
    assert made.words(1) == ["on"]
    assert said == ['\\x: extra argument "off" ignored\n']


def test_a_semicolon_out_of_habit_is_no_part_of_a_word() -> None:
    assert call("on;")[0].word() == "on"
    assert call("")[0].word() == ""


def test_what_is_missing_is_told() -> None:
    with pytest.raises(InvalidRequest, match="needs a name"):
        call("")[0].needed("a name")
    with pytest.raises(InvalidRequest, match="needs a statement"):
        call("")[0].statement()
    assert call("", BEFORE)[0].statement() is BEFORE


def test_the_last_statement_is_that_of_a_command_on_a_line_of_its_own() -> None:
    made, _ = call("")
    made.shell.last_statement = BEFORE
    assert made.statement() is BEFORE


def test_a_command_is_called_what_its_usage_begins_with() -> None:
    def run(_: Call) -> None: ...

    for usage in ("\\g [file]", "\\g[file]", "\\g"):
        assert Command(usage, "", run).name == "\\g"
    assert all(name == command.name for name, command in COMMANDS.items())
