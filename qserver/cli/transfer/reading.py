"""Reads an export in JSON lines as statements, each with its lines in the file.

A file that begins as an export but does not end as one was cut off. That is known only at its end,
so `Cut` is raised there, after all steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from qserver.cli.splitting import Statement
from qserver.cli.transfer.inserts import Inserts
from qserver.cli.transfer.snapshot import TableShape
from qserver.cli.transfer.sql_text import CUT_HINT, PIECE_BYTES, Cut, Read, Step
from qserver.cli.transfer.writing import FORMAT, Head
from qserver.errors import InvalidRequest


def ndjson_steps(read: Read, by_row: bool = False) -> Iterator[Step]:
    """`by_row`: one statement per row, so that each can fail by itself."""
    lines = _lines(read)
    number, line = next(lines, (1, b""))
    head = _decoded(number, line, Head)
    if head.qserver_export > FORMAT:
        raise InvalidRequest(
            f"the file has format {head.qserver_export}, this release knows {FORMAT}",
            hint="It was written by a newer release of qserver: use that one.",
        )
    yield from (Step(Statement(text, 1), 1) for text in head.before)
    tables = {each.table: each.to_table() for each in head.tables}
    inserts = Inserts(before_rows=" ")
    first = previous = number + 1
    is_whole = False
    for number, line in lines:
        entry = _decoded(number, line, Entry)
        if entry.end:
            is_whole = True
            break
        full = inserts.take(*_row(number, entry, tables))
        if full is not None:
            yield Step(Statement(full, first), previous)
            first = number
        if by_row:
            full = inserts.finish()
            assert full is not None
            yield Step(Statement(full, number), number)
            first = number + 1
        previous = number
    full = inserts.finish()
    if full is not None:
        yield Step(Statement(full, first), previous)
    if not is_whole:
        raise Cut("the file is not whole: its last line is missing", hint=CUT_HINT)
    yield from (Step(Statement(text, 1), 1) for text in head.after)


class Entry(msgspec.Struct, frozen=True):
    """A line after the first: a row, or the end."""

    table: str | None = None
    row: dict[str, msgspec.Raw] = msgspec.field(default_factory=dict)
    end: bool = False


def _row(
    number: int, entry: Entry, tables: dict[str, TableShape]
) -> tuple[TableShape, list[str | None], tuple[str, ...]]:
    table = tables.get(entry.table or "")
    if table is None:
        raise InvalidRequest(f"line {number}: the first line knows no table {entry.table!r}")
    columns = tuple(entry.row)
    if columns == table.columns:
        columns = table.columns  # the same object saves the lookup of types
    unknown = [name for name in columns if name not in table.columns]
    if unknown:
        raise InvalidRequest(f"line {number}: {table.name} has no column {unknown[0]!r}")
    return table, [_text(number, raw) for raw in entry.row.values()], columns


def _text(number: int, raw: msgspec.Raw) -> str | None:
    """The text of a value; a JSON number or boolean is its own text."""
    text = bytes(raw).decode()
    if text == "null":
        return None
    if text[0] == '"':
        return str(msgspec.json.decode(raw))
    if text[0] in "{[":
        raise InvalidRequest(
            f"line {number}: a value is neither a string, a number, a boolean nor null",
            hint="JSON and arrays are written as strings that hold their text.",
        )
    return text


def _lines(read: Read) -> Iterator[tuple[int, bytes]]:
    number, kept = 0, b""
    while True:
        piece = read(PIECE_BYTES)
        *whole, kept = (kept + piece).split(b"\n")
        if not piece and kept:
            whole = [*whole, kept]
        for line in whole:
            number += 1
            if line.strip():
                yield number, line
        if not piece:
            return


def _decoded(number: int, line: bytes, into: type[Any]) -> Any:
    try:
        return msgspec.json.decode(line, type=into)
    except msgspec.DecodeError as error:
        raise InvalidRequest(
            f"line {number} is not a line of an export: {error}",
            hint="Pass --format sql if the file holds SQL.",
        ) from error
