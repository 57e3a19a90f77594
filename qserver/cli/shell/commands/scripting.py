"""Commands for scripts: variables, conditions and texts."""

from __future__ import annotations

import os
import sys
from typing import Final

from qserver.cli.shell.commands.call import Call, Command
from qserver.errors import InvalidRequest


def _set(call: Call) -> None:
    words = call.words()
    if words:
        call.shell.variables.assign(words[0], "".join(words[1:]))
        return
    lines = (
        f"{name} = '" + value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'\n"
        for name, value in call.shell.variables
    )
    call.shell.write("".join(lines))


def _unset(call: Call) -> None:
    call.shell.variables.unset(call.needed("the name of a variable"))


def _set_environment(call: Call) -> None:
    words = call.words(2)
    if not words or not words[0] or "=" in words[0]:
        raise InvalidRequest("\\setenv needs the name of a variable, without =")
    if len(words) == 1:
        os.environ.pop(words[0], None)
    else:
        os.environ[words[0]] = words[1]


def _from_environment(call: Call) -> None:
    words = call.words(2)
    if len(words) != 2:
        raise InvalidRequest("\\getenv needs the names of a variable and of one of the system")
    value = os.environ.get(words[1])
    if value is not None:
        call.shell.variables.assign(words[0], value)


def _text_of(call: Call) -> str:
    words = call.words()
    end = "\n"
    if words[:1] == ["-n"]:
        words, end = words[1:], ""
    return " ".join(words) + end


def _echo(call: Call) -> None:
    call.shell.output.write_to_terminal(_text_of(call))


def _echo_to_results(call: Call) -> None:
    call.shell.write(_text_of(call))


def _warn(call: Call) -> None:
    call.shell.say(_text_of(call))


def _prompt(call: Call) -> None:
    words = call.words()
    if not words:
        raise InvalidRequest("\\prompt needs the name of a variable")
    *text, name = words
    call.shell.say(" ".join(text))
    line = sys.stdin.readline()
    if not line:
        raise InvalidRequest("\\prompt: there was nothing to read")
    call.shell.variables.assign(name, line.removesuffix("\n"))


def _restrict(call: Call) -> None:
    if not call.line:
        raise InvalidRequest("\\restrict needs a key")
    call.shell.restricted_by = call.line


def _unrestrict(call: Call) -> None:
    """The key is taken as it is written: nothing in it runs."""
    if call.shell.restricted_by is None:
        raise InvalidRequest("\\unrestrict: commands are not restricted")
    if call.line != call.shell.restricted_by:
        raise InvalidRequest("\\unrestrict: wrong key")
    call.shell.restricted_by = None


def _condition(call: Call) -> None:
    raise AssertionError("the shell takes conditions itself")


COMMANDS: Final = (
    Command("\\set [name [value]]", "set a variable; alone: list them", _set),
    Command("\\unset name", "forget a variable", _unset),
    Command("\\setenv name [value]", "set or forget a variable of the system", _set_environment),
    Command("\\getenv name name", "set a variable to one of the system", _from_environment),
    Command("\\echo [-n] [text]", "write a text to standard output", _echo),
    Command("\\qecho [-n] [text]", "write a text to where results go", _echo_to_results),
    Command("\\warn [-n] [text]", "write a text to standard error", _warn),
    Command("\\prompt [text] name", "ask for the value of a variable", _prompt),
    Command("\\if expression", "what follows counts only if it is true", _condition),
    Command("\\elif expression", "another condition, if none before was true", _condition),
    Command("\\else", "what follows counts if no condition was true", _condition),
    Command("\\endif", "the end of \\if", _condition),
    Command("\\restrict key", "refuse all commands of the shell, as dumps do", _restrict),
    Command("\\unrestrict key", "allow them again", _unrestrict),
)
