"""The shell's commands: lines that begin with a backslash."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from qserver.cli.command_line import moment
from qserver.cli.layouts import LAYOUTS
from qserver.cli.shell.copying import copy, plain_name
from qserver.cli.shell.describe import databases_listed, table_described, tables_listed
from qserver.cli.shell.failures import StatementFailed
from qserver.cli.shell.scripts import run_file
from qserver.cli.shell.shell import Shell
from qserver.cli.splitting import Statement
from qserver.errors import InvalidRequest, QserverError


@dataclass(frozen=True, slots=True)
class Command:
    """`run` gets the text after the name, stripped."""

    usage: str
    meaning: str
    run: Callable[[Shell, str], None]


def run_command(shell: Shell, line: str) -> None:
    # Ignore a semicolon typed out of habit.
    name, _, argument = line.strip().rstrip(";").partition(" ")
    command = COMMANDS.get(name)
    if command is None:
        raise InvalidRequest(f"there is no command {name}", hint="\\? lists the commands.")
    command.run(shell, argument.strip())


def _describe(shell: Shell, argument: str) -> None:
    tables = shell.client.tables()["tables"]
    shell.write(
        table_described(tables, plain_name(argument)) if argument else tables_listed(tables)
    )


def _databases(shell: Shell, argument: str) -> None:
    shell.write(databases_listed(shell.client.databases()))


def _connect(shell: Shell, argument: str) -> None:
    if not argument:
        raise InvalidRequest("\\c needs the name of a database", hint="\\l lists them.")
    if shell.in_transaction:
        raise InvalidRequest("a transaction is open", hint="End it with COMMIT or ROLLBACK first.")
    before, shell.client.database = shell.client.database, plain_name(argument)
    try:
        shell.database = shell.client.tables()["database"]
    except BaseException:
        shell.client.database = before
        raise
    shell.names_are_stale = True
    shell.as_of = None  # versions are those of one database
    shell.say(f"Now using the database {shell.database}.\n")


def _expanded(shell: Shell, argument: str) -> None:
    shell.is_expanded = _switched(shell.is_expanded, argument)
    shell.say(f"Expanded display is {_on_or_off(shell.is_expanded)}.\n")


def _timing(shell: Shell, argument: str) -> None:
    shell.is_timed = _switched(shell.is_timed, argument)
    shell.say(f"Timing is {_on_or_off(shell.is_timed)}.\n")


def _format(shell: Shell, argument: str) -> None:
    if argument and argument not in LAYOUTS:
        raise InvalidRequest(
            f"there is no format {argument}", hint=f"Choose one of: {', '.join(LAYOUTS)}."
        )
    shell.layout_name = argument or shell.layout_name
    shell.say(f"The format is {shell.layout_name}.\n")


def _include(shell: Shell, argument: str) -> None:
    if not argument:
        raise InvalidRequest("\\i needs the name of a file")
    run_file(shell, Path(argument).expanduser())


def _output(shell: Shell, argument: str) -> None:
    try:
        shell.write_to(Path(argument).expanduser() if argument else None)
    except OSError as error:
        raise InvalidRequest(f"cannot write to {argument}: {error.strerror}") from error
    shell.say(f"Results go to {argument or 'the terminal'}.\n")


def _watch(shell: Shell, argument: str) -> None:
    sql = argument or shell.last_query
    if not sql:
        raise InvalidRequest("\\watch needs a query", hint="\\watch SELECT …, or run one before.")
    try:
        shell.watch(sql)
    except KeyboardInterrupt:
        shell.say("\n")
    except QserverError as error:  # its position is one of the query, not of the command
        raise StatementFailed(Statement(sql, shell.line), error) from error


def _as_of(shell: Shell, argument: str) -> None:
    if shell.in_transaction:
        raise InvalidRequest("a transaction is open", hint="End it with COMMIT or ROLLBACK first.")
    if argument in ("", "now"):
        shell.as_of = None
        shell.say("Statements read the newest version.\n")
        return
    found = shell.client.query("SELECT 1", as_of=moment(argument))
    shell.as_of = found.version
    shell.say(f"Statements read version {found.version}, until \\as_of now.\n")


def _quit(shell: Shell, argument: str) -> None:
    shell.is_over = True


def _help(shell: Shell, argument: str) -> None:
    widest = max(len(each.usage) for each in COMMANDS.values())
    shell.say("".join(f"  {each.usage:<{widest}}  {each.meaning}\n" for each in COMMANDS.values()))
    shell.say("A statement ends with a semicolon. Ctrl-C cancels it, Ctrl-D leaves.\n")


COMMANDS: Final = {
    "\\d": Command("\\d [table]", "list the tables, or describe one", _describe),
    "\\l": Command("\\l", "list the databases", _databases),
    "\\c": Command("\\c database", "use another database", _connect),
    "\\x": Command("\\x [on|off]", "one line a value, for wide rows", _expanded),
    "\\timing": Command("\\timing [on|off]", "show how long each statement took", _timing),
    "\\format": Command("\\format [name]", "aligned, csv, json or ndjson", _format),
    "\\i": Command("\\i file", "run the statements of a file", _include),
    "\\o": Command("\\o [file]", "write results to a file; alone: to the terminal", _output),
    "\\copy": Command(
        "\\copy table from|to 'file'", "rows of a CSV, NDJSON or JSON file in, or out to one", copy
    ),
    "\\watch": Command(
        "\\watch [query]", "the query, or the last one, and then its changes; Ctrl-C ends", _watch
    ),
    "\\as_of": Command(
        "\\as_of version|time|now", "read the database as it was; writes are refused", _as_of
    ),
    "\\q": Command("\\q", "leave", _quit),
    "\\?": Command("\\?", "this list", _help),
}


def _switched(now: bool, argument: str) -> bool:
    if argument not in ("", "on", "off"):
        raise InvalidRequest(f"{argument!r} is neither on nor off")
    return not now if argument == "" else argument == "on"


def _on_or_off(switch: bool) -> str:
    return "on" if switch else "off"
