"""Commands that run the statement before them: \\g and its kin, \\crosstabview, \\watch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final

from qserver.cli.cells import writers_of
from qserver.cli.layouts import Printing
from qserver.cli.shell.commands.call import Call, Command
from qserver.cli.shell.commands.formatting import changed
from qserver.cli.shell.crosstab import crosstab
from qserver.cli.shell.output import PagerLeft
from qserver.cli.shell.shell import Shell
from qserver.cli.splitting import Statement
from qserver.errors import InvalidRequest
from qserver.values.keys import Row

_WATCH_SECONDS_MAX: Final = 86_400
_OPTIONS: Final = re.compile(r"\(\s*(?P<options>[^)]*)\)\s*(?P<rest>.*)", re.DOTALL)
_OPTION: Final = re.compile(r"(?P<name>\w+)\s*(?:=\s*(?P<value>'(?:[^']|'')*'|[^\s']+))?")


class Collected:
    """All rows of a result, for commands that need them together."""

    def __init__(self) -> None:
        self.columns: Sequence[str] = ()
        self.types: Sequence[str] = ()
        self.rows: list[Row] = []

    def __call__(
        self, columns: Sequence[str], types: Sequence[str], batches: Iterable[list[Row]]
    ) -> None:
        self.columns, self.types = columns, types
        for batch in batches:
            self.rows += batch

    def texts(self) -> Iterable[list[str | None]]:
        writers = writers_of(self.columns, self.types)
        for row in self.rows:
            pairs = zip(writers, row, strict=True)
            yield [None if value is None else write(value) for write, value in pairs]


def _collected(call: Call) -> Collected:
    found = Collected()
    call.shell.run(call.statement(), found)
    return found


def _go(call: Call) -> None:
    options, rest = _options_of(call.line, call.shell.printer.options)
    if call.name == "\\gx":
        options = changed(options, "expanded", "on")
    place = rest.strip() if rest.strip().startswith("|") else None
    if place is None and rest.strip():
        place = " ".join(Call(call.shell, call.name, rest, None, call.at).words(1))
    _run_with(call.shell, call.statement(), options, place)


def _run_with(shell: Shell, statement: Statement, options: Printing, place: str | None) -> None:
    kept, shell.printer.options = shell.printer.options, options
    try:
        with shell.output.redirected(place):
            shell.run(statement)
    finally:
        shell.printer.options = kept


def _options_of(line: str, options: Printing) -> tuple[Printing, str]:
    """`(format=csv null='-') file`: options for one result."""
    found = _OPTIONS.fullmatch(line)
    if found is None:
        return options, line
    for each in _OPTION.finditer(found["options"]):
        value = each["value"]
        if value is not None and value.startswith("'"):
            value = value[1:-1].replace("''", "'")
        options = changed(options, each["name"], value)
    return options, found["rest"]


def _set_variables(call: Call) -> None:
    prefix = call.word()
    found = _collected(call)
    if len(found.rows) != 1:
        few = "no rows" if not found.rows else "more than one row"
        raise InvalidRequest(f"{few} returned for \\gset", hint="It takes a query of one row.")
    for name, value in zip(found.columns, next(iter(found.texts())), strict=True):
        if value is None:
            call.shell.variables.unset(prefix + name)
        else:
            call.shell.variables.assign(prefix + name, value)


def _execute_cells(call: Call) -> None:
    for row in _collected(call).texts():
        for cell in row:
            if cell is not None:
                call.shell.run(Statement(cell, call.at))


def _describe_result(call: Call) -> None:
    shell, statement = call.shell, call.statement()
    columns, types = shell.described(statement)
    if not columns:
        shell.say("The command has no result, or the result has no columns.\n")
        return
    rows = list(zip(columns, types, strict=True))
    shell.print_table(("Column", "Type"), ("text", "text"), rows)


def _crosstab(call: Call) -> None:
    words = call.words(4)

    def show(columns: Sequence[str], types: Sequence[str], batches: Iterable[list[Row]]) -> None:
        rows = [row for batch in batches for row in batch]
        call.shell.print_table(*crosstab(columns, types, rows, words))

    call.shell.run(call.statement(), show)


def _watch(call: Call) -> None:
    word = call.word().removeprefix("i=") or "2"
    try:
        seconds = float(word)
    except ValueError:
        raise InvalidRequest(
            f"\\watch: {word!r} is no number of seconds",
            hint="Write the query before it, as SELECT 1 \\watch 5. \\live follows its changes.",
        ) from None
    if not 0 <= seconds <= _WATCH_SECONDS_MAX:
        raise InvalidRequest(f"\\watch takes 0 to {_WATCH_SECONDS_MAX} seconds")
    statement, shell = call.statement(), call.shell
    title = shell.printer.options.title
    with suppress(KeyboardInterrupt, PagerLeft):
        while not shell.is_over:
            now = datetime.now().astimezone().strftime("%c")
            head = f"{now} (every {word}s)" if title is None else f"{title}\t{now} (every {word}s)"
            _run_with(shell, statement, changed(shell.printer.options, "title", head + "\n"), None)
            shell.pause(seconds)
    shell.say("\n")


def _show_buffer(call: Call) -> None:
    statement = call.before or call.shell.last_statement
    call.shell.write("Query buffer is empty.\n" if statement is None else f"{statement.text}\n")


def _reset(call: Call) -> None:
    call.shell.note("Query buffer reset (cleared).\n")


COMMANDS: Final = (
    Command("\\g [(options)] [file]", "run the statement; its result to a file or |program", _go),
    Command("\\gx [(options)] [file]", "as \\g, one line a value", _go),
    Command("\\gset [prefix]", "run it, and set variables to its one row", _set_variables),
    Command("\\gexec", "run it, and then each of its values as a statement", _execute_cells),
    Command("\\gdesc", "show the columns of its result", _describe_result),
    Command("\\crosstabview [columns]", "run it, and show its result as a grid", _crosstab),
    Command("\\watch [seconds]", "run it again and again, until Ctrl-C", _watch),
    Command("\\p", "show the statement before it, or the last one", _show_buffer, ("\\print",)),
    Command("\\r", "drop the statement before it", _reset, ("\\reset",)),
)
