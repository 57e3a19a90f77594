"""\\copy: rows of a table from a file or to one, whatever their number.

    \\copy books from 'books.csv'                              rows in bulk (`copying_in_bulk`)
    \\copy books (id, title) to 'books.data' ndjson
    \\copy (SELECT …) to program 'gzip > books.gz' with (format csv, header)     COPY
    \\copy books from pstdin

The short form has no options but its own; its format is a word, or that of the file's name. What
else psql takes is COPY with the same words, and its format is text unless it says otherwise.

Both stream. What comes in is one transaction: a bad row ends it, with its number in the error, and
nothing is inserted. What goes to a file is written beside it, and the file appears when it is
complete.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, Final, NamedTuple, cast

from qserver.cli.shell.copying_in_bulk import NAME, read_bulk
from qserver.cli.shell.shell import Shell
from qserver.cli.shell.shown_files import opened, rewound, shown, write_whole
from qserver.client import Result
from qserver.errors import InvalidRequest
from qserver.lexing.pieces import PIECE

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
    " [batch rows], or \\copy table [(columns)]|(query) from|to 'file'|program 'command'|pstdin"
    "|stdout with (options of COPY)"
)


class Copy(NamedTuple):
    what: str
    """A table, perhaps with columns, or a query in parentheses."""
    is_in: bool
    path: Path | None
    program: str | None
    """What is run instead of opening a file; neither: standard input or output."""
    options: str

    @property
    def statement(self) -> str:
        return f"COPY {self.what} {'FROM STDIN' if self.is_in else 'TO STDOUT'} {self.options}"


def copy(shell: Shell, argument: str) -> None:
    wanted = _read(argument)
    if wanted.is_in and shell.as_of is not None:
        raise InvalidRequest("an older version can only be read", hint="\\asof now, first.")
    bulk = None
    if wanted.path is not None and not wanted.what.startswith("("):
        bulk = read_bulk(wanted.what, wanted.is_in, wanted.path, wanted.options)
    if bulk is not None:
        bulk.run(shell)
    elif wanted.is_in:
        _copy_in(shell, wanted)
    else:
        _copy_out(shell, wanted)


def _copy_in(shell: Shell, wanted: Copy) -> None:
    with _source(wanted) as file:

        def send() -> Result:
            with rewound(file) as whole:
                return shell.client.copy_in(wanted.statement, whole, **shell.place)

        done = shell.attempt(send)
    shell.say(f"COPY {done.affected_rows}\n")


def _copy_out(shell: Shell, wanted: Copy) -> None:
    def receive(file: BinaryIO) -> int:
        return shell.attempt(lambda: shell.client.copy_out(wanted.statement, file, **shell.place))

    if wanted.path is not None:
        size = write_whole(wanted.path, receive)
    elif wanted.program is not None:
        with _program(wanted.program) as pipe, shown(pipe) as file:
            size = receive(file)
    else:
        shell.copy_to_output(wanted.statement)
        return
    shell.say(f"COPY: {size:,} bytes\n")


@contextmanager
def _source(wanted: Copy) -> Iterator[BinaryIO]:
    """Open what is sent. What a program or standard input has is kept in a file: it is sent only if
    it is whole, and again if the server asks to wait."""
    if wanted.path is not None:
        with opened(wanted.path) as file:
            yield file
        return
    with TemporaryFile() as kept:
        if wanted.program is None:
            shutil.copyfileobj(sys.stdin.buffer, kept)
        else:
            done = subprocess.run(
                wanted.program, shell=True, stdin=subprocess.DEVNULL, stdout=kept, check=False
            )
            _check(wanted.program, done.returncode)
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
        (found["options"] or "").strip(),
    )
    if found["standard"] is not None:
        _check_standard(found["standard"].lower(), wanted.is_in)
    return wanted


def _check_standard(name: str, is_in: bool) -> None:
    if name.endswith("in") != is_in:
        raise InvalidRequest(f"{name} is for the other direction", hint=USAGE)
    if name == "stdin":
        raise InvalidRequest(
            "rows are not read from the script itself",
            hint="Write pstdin for the standard input of qserver sql, or name a file. qserver"
            " import reads dumps, with the rows behind COPY.",
        )


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
