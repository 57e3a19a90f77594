"""Rows of texts as CSV, in bulk requests of a bounded size; each request is one transaction."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from qserver.client import Client, bulk

TextRow: TypeAlias = Iterable[str | None]

BATCH_BYTES: Final = 4 * 1024 * 1024
BATCH_ROWS: Final = 20_000
"""A request with rows ends after so many bytes or rows."""
_NEEDS_QUOTES: Final = re.compile(r'[",\r\n]|\A\Z')


def batches(columns: tuple[str, ...], rows: Iterable[TextRow]) -> Iterator[tuple[bytes, int]]:
    """The rows as CSV, some at a time, each with a head and the number of rows."""
    head = csv_line(columns)
    lines, size = [head], 0
    for row in rows:
        line = csv_line(row)
        lines.append(line)
        size += len(line)
        if size >= BATCH_BYTES or len(lines) > BATCH_ROWS:
            yield b"".join(lines), len(lines) - 1
            lines, size = [head], 0
    if len(lines) > 1:
        yield b"".join(lines), len(lines) - 1


def csv_line(row: TextRow) -> bytes:
    """One row: NULL is nothing, the empty text is two quotes."""
    return b"%b\n" % ",".join(["" if cell is None else _quoted(cell) for cell in row]).encode()


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if _NEEDS_QUOTES.search(text) else text


def insert_batch(client: Client, table: str, body: bytes) -> None:
    """Insert the rows of a body; `table` is its name as the route takes it."""
    request = bulk.insert(table, [body], "csv", database=client.database, overriding="system")
    client.call(request)
