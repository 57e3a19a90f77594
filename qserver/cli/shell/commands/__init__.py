"""The shell's commands: a backslash and a name.

call.py         what a command gets         sending.py      \\\\g and its kin
describing.py   \\\\d and its kin             files.py        files, programs, databases
formatting.py   \\\\pset and its kin          scripting.py    variables, conditions, texts
statements.py   \\\\h                         versions.py     what only qserver has
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final

from qserver.cli.shell.commands import (
    describing,
    files,
    formatting,
    scripting,
    sending,
    statements,
    versions,
)
from qserver.cli.shell.commands.call import Call, Command, Run
from qserver.cli.shell.copying import copy_statement
from qserver.cli.shell.shell import Shell
from qserver.cli.splitting import Statement
from qserver.errors import InvalidRequest


def run_command(shell: Shell, statement: Statement) -> None:
    """Run a command, or COPY, which goes the way of \\copy."""
    if not statement.is_command:
        copy_statement(shell, statement.text)
        return
    name, line = _apart(statement.text)
    run = _found(name)
    if run is None:
        raise InvalidRequest(f"invalid command {name}", hint=_hint(name))
    run(Call(shell, name, line, statement.before, statement.first_line))


def _apart(text: str) -> tuple[str, str]:
    if text.startswith("\\!"):
        return "\\!", text[2:].strip()
    name, *rest = text.split(maxsplit=1)
    return name.rstrip(";") or name, rest[0].strip() if rest else ""


def _found(name: str) -> Run | None:
    command = _BY_NAME.get(name)
    return describing.describing(name) if command is None else command.run


def _hint(name: str) -> str:
    near = get_close_matches(name, _BY_NAME, 1)
    return f"Did you mean {near[0]}? \\? lists the commands." if near else "\\? lists the commands."


def _help(call: Call) -> None:
    widest = max(len(each.usage) for each in COMMANDS.values())
    text = []
    for title, commands in SECTIONS.items():
        text.append(f"{title}\n")
        text += [f"  {each.usage:<{widest}}  {each.meaning}\n" for each in commands]
        text.append("\n")
    text.append("A statement ends with a semicolon. Ctrl-C cancels it, Ctrl-D leaves.\n")
    call.shell.say("".join(text))


SECTIONS: Final = {
    "Statements": sending.COMMANDS,
    "What is there": describing.COMMANDS,
    "Versions, branches, live queries": versions.COMMANDS,
    "How results look": formatting.COMMANDS,
    "Files and programs": files.COMMANDS,
    "Scripts": scripting.COMMANDS,
    "Help": (
        Command("\\?", "this list", _help),
        Command("\\h [statement]", "the form of a statement of SQL", statements.run, ("\\help",)),
    ),
}
COMMANDS: Final = {each.name: each for commands in SECTIONS.values() for each in commands}
_BY_NAME: Final = {name: each for each in COMMANDS.values() for name in (each.name, *each.also)}
