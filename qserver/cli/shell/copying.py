"""\\copy: rows of a table from a file or to one, whatever their number.

    \\copy books from 'books.csv'                              rows in bulk (`copying_in_bulk`)
    \\copy books (id, title) to 'books.data' ndjson
    \\copy (SELECT …) to program 'gzip > books.gz' with (format csv, header)     COPY
    \\copy books from pstdin                                  the standard input of the process
    COPY books FROM stdin;                                   the lines below, up to one of \\.

The short form has no options but its own; its format is a word, or that of the file's name. What
else psql takes is COPY with the same words, and its format is text unless it says otherwise.

Both stream. What comes in is one transaction: a bad row ends it, with its number in the error, and
nothing is inserted. What goes to a file is written beside it, and the file appears when it is
complete. Rows of a script are read before anything is sent, also those of a COPY that is refused:
they never run as statements.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, Final, NamedTuple, cast

from qserver.cli.shell.copying_in_bulk import NAME, read_bulk
from qserver.cli.shell.output import WrittenText
from qserver.cli.shell.script_text import ScriptText
from qserver.cli.shell.shell import Shell
from qserver.cli.shell.shown_files import opened, rewound, shown, write_whole
from qserver.client import Result
from qserver.errors import InvalidRequest
from qserver.lexing.pieces import PIECE
from qserver.query.copying.statement import CopyStatement, read_copy

_TABLE: Final = re.compile(rf"{NAME}(?:\.{NAME})*\s*(?:\(\s*{NAME}(?:\s*,\s*{NAME})*\s*\))?")
_REST: Final = re.compile(
    r"\s*(?P<way>from|to)\s+"
    r"(?:program\s+'(?P<program>(?:[^']|'')+)'|(?P<standard>p?std(?:in|out))(?![^\s;])"
    r"|'(?P<quoted>(?:[^']|'')+)'|(?P<plain>[^\s']+))"
    r"(?:\s+(?P<options>.*))?",
    re.IGNORECASE | re.DOTALL,
)
USAGE: Final = (
    "\\copy table [(columns)] from|to 'file' [csv|ndjson|json] [on conflict ignore|update]"
    " [batch rows], or \\copy table [(columns)]|(query) from|to 'file'|program 'command'|stdin"
    "|pstdin|stdout with (options of COPY)"
)
_TYPED: Final = (
    "Enter data to be copied followed by a newline.\n"
    "End with a backslash and a period on a line by itself, or an EOF signal.\n"
)


class Copy(NamedTuple):
    what: str
    """A table, perhaps with columns, or a query in parentheses."""
    is_in: bool
    path: Path | None
    program: str | None
    """What is run instead of opening a file."""
    standard: str
    """Neither: `stdin` for the lines of the script, `pstdin`, `stdout` or `pstdout`."""
    options: str

    @property
    def statement(self) -> str:
        return f"COPY {self.what} {'FROM STDIN' if self.is_in else 'TO STDOUT'} {self.options}"


def copy(shell: Shell, argument: str) -> None:
    """Run \\copy."""
    wanted = _read(argument)
    if wanted.is_in and not wanted.standard:
        _check_newest(shell)
    bulk = None
    if wanted.path is not None and not wanted.what.startswith("("):
        bulk = read_bulk(wanted.what, wanted.is_in, wanted.path, wanted.options)
    if bulk is not None:
        bulk.run(shell)
    elif wanted.is_in:
        _copy_in(shell, wanted.statement, _source(shell, wanted))
    else:
        _copy_out(shell, wanted)


def copy_statement(shell: Shell, text: str) -> None:
    """Run COPY, whose rows are in the script, or go where results go."""
    copied = read_copy(text)
    if copied.is_from:
        _copy_in(shell, text, _lines(shell, shell.script, copied.format.is_binary))
    else:
        _copy_to_output(shell, copied)


def _copy_in(shell: Shell, statement: str, source: AbstractContextManager[BinaryIO]) -> None:
    with source as file:
        _check_newest(shell)

        def send() -> Result:
            with rewound(file) as whole:
                return shell.client.copy_in(statement, whole, **shell.place)

        done = shell.attempt(send)
    shell.variables.tell(ROW_COUNT=done.affected_rows)
    if not shell.variables.is_on("QUIET"):
        shell.say(f"COPY {done.affected_rows}\n")


def _check_newest(shell: Shell) -> None:
    if shell.as_of is not None:
        raise InvalidRequest("an older version can only be read", hint="\\asof now, first.")


def _copy_to_output(shell: Shell, copied: CopyStatement) -> None:
    if copied.format.is_binary:
        raise InvalidRequest(
            "binary rows are no text that could be printed", hint="\\copy … to 'file'."
        )
    file = cast(BinaryIO, WrittenText(shell.write))
    shell.attempt(lambda: shell.client.copy_out(copied.text, file, **shell.place))


def _copy_out(shell: Shell, wanted: Copy) -> None:
    def receive(file: BinaryIO) -> int:
        return shell.attempt(lambda: shell.client.copy_out(wanted.statement, file, **shell.place))

    if wanted.path is not None:
        size = write_whole(wanted.path, receive)
    elif wanted.program is not None:
        with _program(wanted.program) as pipe, shown(pipe) as file:
            size = receive(file)
    else:
        _copy_to_output(shell, read_copy(wanted.statement))
        return
    shell.say(f"COPY: {size:,} bytes\n")


@contextmanager
def _source(shell: Shell, wanted: Copy) -> Iterator[BinaryIO]:
    """Open what is sent. What a program has is kept in a file: it is sent only if it is whole, and
    again if the server asks to wait."""
    if wanted.path is not None:
        with opened(wanted.path) as file:
            yield file
    elif wanted.program is not None:
        with TemporaryFile() as kept:
            done = subprocess.run(
                wanted.program, shell=True, stdin=subprocess.DEVNULL, stdout=kept, check=False
            )
            _check(wanted.program, done.returncode)
            yield kept
    else:
        text = shell.script if wanted.standard == "stdin" else shell.standard_input
        is_binary = read_copy(wanted.statement).format.is_binary
        with _lines(shell, text, is_binary) as kept:
            yield kept


@contextmanager
def _lines(shell: Shell, text: ScriptText, is_binary: bool) -> Iterator[BinaryIO]:
    """Keep the rows in a file, as those of a program."""
    if sys.stdin.isatty() and not shell.is_in_script:
        shell.note(_TYPED)
    with TemporaryFile() as kept:
        kept.writelines(text.rows(is_binary))
        yield kept


@contextmanager
def _program(command: str) -> Iterator[BinaryIO]:
    """Run a program that reads what is written; it has failed if its exit code says so."""
    process = subprocess.Popen(command, shell=True, stdin=subprocess.PIPE)
    try:
        with process:
            yield cast(BinaryIO, process.stdin)
    except BrokenPipeError as error:
        _check(command, process.returncode)
        raise InvalidRequest(f"the program {command} ended before it had all rows") from error
    _check(command, process.returncode)


def _check(program: str, code: int) -> None:
    if code:
        raise InvalidRequest(f"the program {program} failed with exit code {code}")


def _read(argument: str) -> Copy:
    end = _end_of_what(argument)
    found = _REST.fullmatch(argument, end) if end else None
    if found is None:
        raise InvalidRequest("\\copy is not understood", hint=USAGE)
    name = (found["quoted"] or "").replace("''", "'") or found["plain"]
    program = found["program"]
    wanted = Copy(
        argument[:end].strip(),
        found["way"].lower() == "from",
        None if name is None else Path(name).expanduser(),
        None if program is None else program.replace("''", "'"),
        (found["standard"] or "").lower(),
        (found["options"] or "").strip(),
    )
    if wanted.standard and wanted.standard.endswith("in") != wanted.is_in:
        raise InvalidRequest(f"{wanted.standard} is for the other direction", hint=USAGE)
    return wanted


def _end_of_what(argument: str) -> int:
    """Return where the table, or the query in parentheses, ends; 0 if there is neither."""
    if not argument.startswith("("):
        found = _TABLE.match(argument)
        return 0 if found is None else found.end()
    depth = 0
    for piece in PIECE.finditer(argument):
        if piece.lastgroup == "other":
            for offset, character in enumerate(piece.group()):
                depth += {"(": 1, ")": -1}.get(character, 0)
                if depth == 0:
                    return piece.start() + offset + 1
    return 0
