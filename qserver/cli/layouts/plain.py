"""Layouts for other programs: unaligned, CSV, JSON. They need no widths."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from qserver.cli.cells import Writer, harmless, writers_of
from qserver.cli.layouts.aligned import Write
from qserver.cli.layouts.options import Printing
from qserver.values.keys import Row


class Unaligned:
    """Values with a separator between them; expanded, a line for each with its name."""

    def __init__(self, write: Write, options: Printing) -> None:
        self._write = write
        self._options = options
        self._columns: Sequence[str] = ()
        self._writers: list[Writer] = []
        self._count = 0

    @property
    def _is_expanded(self) -> bool:
        return self._options.expanded == "on"

    def begin(self, columns: Sequence[str], types: Sequence[str]) -> None:
        self._columns = [harmless(name) for name in columns]
        self._writers = writers_of(columns, types)
        if self._options.tuples_only:
            return
        lines = [] if self._options.title is None else [harmless(self._options.title)]
        if not self._is_expanded:
            lines.append(self._options.fieldsep.join(self._columns))
        self._put(lines)

    def rows(self, batch: Sequence[Row]) -> None:
        self._put(line for row in batch for line in self._row(row))

    def end(self, count: int, footers: tuple[str, ...] | None = None) -> None:
        lines = [harmless(each) for each in self._options.footers(count, footers)]
        if self._is_expanded:
            lines = ["", *lines] if footers and lines else []
        self._put(lines)
        if self._options.recordsep != "\n":
            self._write("\n")

    def _row(self, row: Row) -> list[str]:
        null = self._options.null
        cells = [
            null if value is None else harmless(write(value))
            for write, value in zip(self._writers, row, strict=True)
        ]
        self._count += 1
        if not self._is_expanded:
            return [self._options.fieldsep.join(cells)]
        is_titled = self._options.title is not None and not self._options.tuples_only
        between = [""] if self._count > 1 or is_titled else []
        pairs = zip(self._columns, cells, strict=True)
        return between + [self._options.fieldsep.join(pair) for pair in pairs]

    def _put(self, lines: Iterable[str]) -> None:
        self._write("".join(line + self._options.recordsep for line in lines))


class Csv:
    """RFC 4180 with a header; NULL is an empty field, an empty text is `""`."""

    def __init__(self, write: Write, options: Printing) -> None:
        self._write = write
        self._options = options
        self._columns: Sequence[str] = ()
        self._writers: list[Writer] = []

    def begin(self, columns: Sequence[str], types: Sequence[str]) -> None:
        self._columns = columns
        self._writers = writers_of(columns, types)
        if not self._options.tuples_only and self._options.expanded != "on":
            self._write_rows([columns])

    def rows(self, batch: Sequence[Row]) -> None:
        null = self._options.null or None
        cells = (
            [
                null if value is None else write(value)
                for write, value in zip(self._writers, row, strict=True)
            ]
            for row in batch
        )
        if self._options.expanded == "on":
            self._write_rows(pair for row in cells for pair in zip(self._columns, row, strict=True))
        else:
            self._write_rows(cells)

    def end(self, count: int, footers: tuple[str, ...] | None = None) -> None:
        pass

    def _write_rows(self, rows: Iterable[Iterable[str | None]]) -> None:
        separator = self._options.csv_fieldsep
        lines = (separator.join(_field(each, separator) for each in row) for row in rows)
        self._write("".join(f"{line}\n" for line in lines))


class Json:
    """One array of objects."""

    _before, _between, _after = "[\n", ",\n", "\n]\n"

    def __init__(self, write: Write, options: Printing) -> None:
        self._write = write
        self._columns: Sequence[str] = ()
        self._written = False

    def begin(self, columns: Sequence[str], types: Sequence[str]) -> None:
        self._columns = columns
        self._write(self._before)

    def rows(self, batch: Sequence[Row]) -> None:
        encode = msgspec.json.encode
        lines = [encode(dict(zip(self._columns, row, strict=True))).decode() for row in batch]
        if lines:
            self._write((self._between if self._written else "") + self._between.join(lines))
            self._written = True

    def end(self, count: int, footers: tuple[str, ...] | None = None) -> None:
        self._write(self._after if self._written else "]\n")


class Ndjson(Json):
    """One object per line."""

    _before, _between = "", "\n"

    def end(self, count: int, footers: tuple[str, ...] | None = None) -> None:
        if self._written:
            self._write("\n")


def _field(value: str | None, separator: str) -> str:
    if value is None:
        return ""
    if value == "" or any(character in value for character in f'{separator}"\r\n'):
        return '"' + value.replace('"', '""') + '"'
    return value
