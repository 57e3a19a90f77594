"""Cuts CSV and JSON lines into batches of rows, each of which is a file of its own.

    id,name          id,name         id,name
    1,"a             1,"a            3,c
    b"          ─►   b"         and
    2,b              2,b
    3,c

A line ends a row of CSV unless a quote is open, which an odd number of quotes tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO


def row_batches(file: BinaryIO, is_csv: bool, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield up to `size` rows at a time, and their number; behind its header if it is CSV."""
    header = b""
    rows = _rows(file, is_csv)
    if is_csv:
        header = next(rows, b"")
        if header and not header.endswith(b"\n"):
            header += b"\n"
    batch: list[bytes] = []
    for row in rows:
        batch.append(row)
        if len(batch) == size:
            yield size, header + b"".join(batch)
            batch = []
    if batch:
        yield len(batch), header + b"".join(batch)


def _rows(file: BinaryIO, is_csv: bool) -> Iterator[bytes]:
    waiting: list[bytes] = []
    is_open = False
    while line := file.readline():
        if is_csv and line.count(b'"') % 2:
            is_open = not is_open
        if is_open:
            waiting.append(line)
            continue
        row = b"".join((*waiting, line)) if waiting else line
        waiting = []
        if is_csv or not row.isspace():
            yield row
    if waiting:  # a quote that nobody closed: the server tells of it
        yield b"".join(waiting)
