"""\\copy: rows of a table from a file or to one, whatever their number.

    \\copy books from 'books.csv'
    \\copy books (id, title) to 'books.data' ndjson

Both stream. What comes in is one transaction: a bad row ends it, with its number in the error, and
nothing is inserted. What goes out is written beside the file, which appears when it is complete.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, cast

from qserver.cli.shell.progress import Progress
from qserver.cli.shell.shell import Shell
from qserver.client.bulk import MEDIA, Format, OnConflict, format_of
from qserver.errors import InvalidRequest

_NAME: Final = r'(?:"(?:[^"]|"")+"|[^\s"().,]+)'
_COPY: Final = re.compile(
    rf"(?P<table>{_NAME}(?:\.{_NAME})?)"
    rf"\s*(?:\((?P<columns>\s*{_NAME}(?:\s*,\s*{_NAME})*)\s*\))?"
    r"\s+(?P<way>from|to)\s+(?:'(?P<quoted>(?:[^']|'')+)'|(?P<plain>[^\s']+))"
    r"(?:\s+(?P<format>csv|ndjson|json))?(?:\s+on\s+conflict\s+(?P<choice>error|ignore|update))?",
    re.IGNORECASE,
)
USAGE: Final = (
    "\\copy table [(columns)] from|to 'file' [csv|ndjson|json] [on conflict ignore|update]"
)


class Copy(NamedTuple):
    table: str
    columns: Sequence[str] | None
    is_in: bool
    path: Path
    format: Format
    on_conflict: OnConflict | None


def copy(shell: Shell, argument: str) -> None:
    wanted = _read(argument)
    if shell.in_transaction:
        raise InvalidRequest(
            "a transaction is open, and \\copy is one of its own",
            hint="End it with COMMIT or ROLLBACK first.",
        )
    if wanted.is_in and shell.as_of is not None:
        raise InvalidRequest("an older version can only be read", hint="\\as_of now, first.")
    if wanted.is_in:
        _copy_in(shell, wanted)
    else:
        _copy_out(shell, wanted)


def _copy_in(shell: Shell, wanted: Copy) -> None:
    try:
        file = wanted.path.open("rb")
    except OSError as error:
        raise InvalidRequest(f"cannot read {wanted.path}: {error.strerror}") from error
    with file:
        total = os.fstat(file.fileno()).st_size

        def send() -> Any:
            file.seek(0)
            shown = Shown(file, Progress(sys.stderr, total, counted="lines"))
            options = {} if wanted.on_conflict is None else {"on_conflict": wanted.on_conflict}
            try:
                return shell.client.insert_file(
                    wanted.table,
                    cast(BinaryIO, shown),
                    wanted.format,
                    columns=wanted.columns,
                    **options,
                )
            finally:
                shown.progress.clear()

        done = shell.patiently(send)
    shell.say(f"COPY {done.affected_rows}\n")


def _copy_out(shell: Shell, wanted: Copy) -> None:
    beside = wanted.path.with_name(wanted.path.name + ".part")

    def receive() -> int:
        with beside.open("wb") as file:
            shown = Shown(file, Progress(sys.stderr, None, counted="lines"))
            try:
                return shell.client.save_rows(
                    wanted.table,
                    cast(BinaryIO, shown),
                    wanted.format,
                    columns=wanted.columns,
                    as_of=shell.as_of,
                )
            finally:
                shown.progress.clear()

    try:
        size = shell.patiently(receive)
        beside.replace(wanted.path)
    except OSError as error:
        raise InvalidRequest(f"cannot write {wanted.path}: {error.strerror}") from error
    finally:
        beside.unlink(missing_ok=True)
    shell.say(f"COPY: {size:,} bytes\n")


class Shown:
    """A file whose progress is shown."""

    def __init__(self, file: BinaryIO, progress: Progress) -> None:
        self._file = file
        self.progress = progress
        self._bytes = self._lines = 0

    def read(self, size: int) -> bytes:
        piece = self._file.read(size)
        self._note(piece)
        return piece

    def write(self, piece: bytes) -> int:
        self._note(piece)
        return self._file.write(piece)

    def _note(self, piece: bytes) -> None:
        self._bytes += len(piece)
        self._lines += piece.count(b"\n")
        self.progress.update(self._bytes, self._lines)


def _read(argument: str) -> Copy:
    found = _COPY.fullmatch(argument)
    if found is None:
        raise InvalidRequest("\\copy is not understood", hint=USAGE)
    path = Path((found["quoted"] or "").replace("''", "'") or found["plain"]).expanduser()
    is_in = found["way"].lower() == "from"
    if found["choice"] is not None and not is_in:
        raise InvalidRequest("ON CONFLICT is for rows that come in", hint=USAGE)
    given = (found["format"] or "").lower()
    columns = found["columns"]
    return Copy(
        ".".join(map(plain_name, re.findall(_NAME, found["table"]))),
        None if columns is None else [plain_name(each) for each in re.findall(_NAME, columns)],
        is_in,
        path,
        cast(Format, given) if given in MEDIA else format_of(path.name),
        cast("OnConflict | None", (found["choice"] or "").lower() or None),
    )


def plain_name(text: str) -> str:
    """A name as SQL reads it: a quoted one unchanged, otherwise in lower case."""
    if len(text) > 1 and text[0] == text[-1] == '"':
        return text[1:-1].replace('""', '"')
    return text.lower()
