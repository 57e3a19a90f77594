"""Reads the arguments of the shell's commands, as psql reads them.

    \\set name 'it''s\\tone' "Two" :three `four`

Single quotes take `''` and escapes of C; double quotes stay, for names; a text in backquotes is run
by the system's shell, and its output is the argument. Variables are replaced outside of quotes.
"""

from __future__ import annotations

import re
import subprocess
from typing import Final

from qserver.cli.shell.variables import Variables
from qserver.cli.splitting import VARIABLE
from qserver.errors import InvalidRequest

_PART: Final = re.compile(
    r"""(?P<quoted>'(?:\\.|''|[^'\\])*')|(?P<named>"[^"]*")|(?P<run>`[^`]*`)"""
    r"""|(?P<open>['"`])|(?P<colon>:)|(?P<plain>[^\s'"`:]+)""",
    re.DOTALL,
)
_ESCAPE: Final = re.compile(r"''|\\(x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
_NAMED: Final = {"n": "\n", "t": "\t", "b": "\b", "r": "\r", "f": "\f"}
_RUN_SECONDS_MAX: Final = 600


def arguments_of(text: str, variables: Variables) -> list[str]:
    """The arguments of a command."""
    found: list[str] = []
    position, is_joined = 0, False
    while position < len(text):
        if text[position].isspace():
            position, is_joined = position + 1, False
            continue
        value, position = _part(text, position, variables)
        if is_joined:
            found[-1] += value
        else:
            found.append(value)
        is_joined = True
    return found


def _part(text: str, position: int, variables: Variables) -> tuple[str, int]:
    part = _PART.match(text, position)
    assert part is not None, "one of the alternatives takes any character but blanks"
    value = part.group()
    match part.lastgroup:
        case "quoted":
            return unescaped(value[1:-1]), part.end()
        case "run":
            return output_of(value[1:-1]), part.end()
        case "open":
            raise InvalidRequest("unterminated quoted string", hint=f"A {value} is missing.")
        case "colon":
            found = VARIABLE.match(text, position)
            if found is None:
                return value, part.end()
            expanded = variables.expanded(found)
            return found.group() if expanded is None else expanded, found.end()
        case _:
            return value, part.end()


def unescaped(text: str) -> str:
    """What a text in single quotes says."""

    def meant(found: re.Match[str]) -> str:
        escape: str | None = found[1]
        if escape is None:
            return "'"
        if escape[0] == "x" and len(escape) > 1:
            return chr(int(escape[1:], 16))
        if escape[0] in "01234567":
            return chr(int(escape, 8) % 256)
        return _NAMED.get(escape, escape)

    return _ESCAPE.sub(meant, text)


def output_of(command: str) -> str:
    """What a command of the system prints, without the line feed at its end."""
    done = subprocess.run(
        command, shell=True, stdout=subprocess.PIPE, timeout=_RUN_SECONDS_MAX, check=False
    )
    if done.returncode:
        raise InvalidRequest(f"{command}: it failed with exit code {done.returncode}")
    return done.stdout.decode("utf-8", "replace").removesuffix("\n")
