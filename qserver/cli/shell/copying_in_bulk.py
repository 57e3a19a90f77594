"""The short form of \\copy: rows in bulk, by the routes of tables.

    \\copy books from 'books.csv'
    \\copy books from 'a lot.csv' on conflict ignore batch 100000

Rows that come in are one transaction, or a batch of them is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, cast

from qserver.cli.shell.row_batches import row_batches
from qserver.cli.shell.shell import Shell
from qserver.cli.shell.shown_files import opened, rewound, write_whole
from qserver.client.bulk import MEDIA, Format, OnConflict, format_of, tells_format
from qserver.errors import InvalidRequest, QserverError

NAME: Final = r'(?:"(?:[^"]|"")+"|[^\s"().,]+)'
_OPTIONS: Final = re.compile(
    r"(?P<format>csv|ndjson|json)?"
    r"(?:(?:^|\s+)on\s+conflict\s+(?P<choice>error|ignore|update))?"
    r"(?:(?:^|\s+)batch\s+(?P<batch>\d+))?",
    re.IGNORECASE,
)
_BATCHED: Final = ("csv", "ndjson")


class BulkCopy(NamedTuple):
    table: str
    columns: Sequence[str] | None
    is_in: bool
    path: Path
    format: Format
    on_conflict: OnConflict | None
    batch: int | None
    """How many rows are a transaction; None: all."""

    def run(self, shell: Shell) -> None:
        if shell.in_transaction:
            raise InvalidRequest(
                "a transaction is open, and this \\copy is one of its own",
                hint="End it with COMMIT or ROLLBACK first, or say how the rows are written, as in"
                " WITH (FORMAT csv, HEADER): then they are a part of it.",
            )
        if not self.is_in:
            size = write_whole(self.path, lambda file: self._receive(shell, file))
            shell.say(f"COPY: {size:,} bytes\n")
            return
        with opened(self.path) as file:
            count = self._send_all(shell, file) if self.batch is None else self._send(shell, file)
        shell.say(f"COPY {count}\n")

    def _receive(self, shell: Shell, file: BinaryIO) -> int:
        return shell.patiently(
            lambda: shell.client.save_rows(
                self.table, file, self.format, columns=self.columns, as_of=shell.as_of
            )
        )

    def _send_all(self, shell: Shell, file: BinaryIO) -> int:
        def send() -> int:
            with rewound(file) as whole:
                return self._insert(shell, whole)

        return shell.patiently(send)

    def _send(self, shell: Shell, file: BinaryIO) -> int:
        """Send batches, each a transaction; return how many rows were changed."""
        assert self.batch is not None, "the caller has asked"
        changed = before = 0
        with rewound(file) as whole:
            for rows, content in row_batches(whole, self.format == "csv", self.batch):
                try:
                    changed += shell.patiently(_again(self._insert, shell, content))
                except QserverError as error:
                    if error.row is not None:
                        error.row += before
                    if before:
                        there = (
                            "row of the file is"
                            if before == 1
                            else (f"{before:,} rows of the file are")
                        )
                        error.hint = f"The first {there} in the table. {error.hint or ''}".strip()
                    raise
                before += rows
        return changed

    def _insert(self, shell: Shell, file: BinaryIO) -> int:
        options: dict[str, Any] = {}
        if self.on_conflict is not None:
            options["on_conflict"] = self.on_conflict
        done = shell.client.insert_file(
            self.table, file, self.format, columns=self.columns, **options
        )
        return int(done.affected_rows)


def _again(
    insert: Callable[[Shell, BinaryIO], int], shell: Shell, content: bytes
) -> Callable[[], int]:
    return lambda: insert(shell, BytesIO(content))


def read_bulk(what: str, is_in: bool, path: Path, options: str) -> BulkCopy | None:
    """Read the short form; None if it is COPY: by its options, or for want of a format."""
    found = _OPTIONS.fullmatch(options)
    if found is None or not (options or tells_format(path.name)):
        return None
    if not is_in and (found["choice"] or found["batch"]):
        word = "ON CONFLICT" if found["choice"] else "BATCH"
        raise InvalidRequest(f"{word} is for rows that come in")
    given = (found["format"] or "").lower()
    format = cast(Format, given) if given in MEDIA else format_of(path.name)
    batch = None if found["batch"] is None else int(found["batch"])
    if batch == 0:
        raise InvalidRequest("a batch has at least one row")
    if batch is not None and format not in _BATCHED:
        raise InvalidRequest(
            f"{format} has no rows that could be sent in batches",
            hint="CSV has, and so have JSON lines (ndjson).",
        )
    table, _, columns = what.partition("(")
    names = re.findall(NAME, columns)
    return BulkCopy(
        ".".join(map(plain_name, re.findall(NAME, table))),
        list(map(plain_name, names)) or None,
        is_in,
        path,
        format,
        cast("OnConflict | None", (found["choice"] or "").lower() or None),
        batch,
    )


def plain_name(text: str) -> str:
    """A name as SQL reads it: a quoted one unchanged, otherwise in lower case."""
    if len(text) > 1 and text[0] == text[-1] == '"':
        return text[1:-1].replace('""', '"')
    return text.lower()
