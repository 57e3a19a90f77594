"""Five layouts for results; each prints rows as they arrive.

    layout.begin(columns, types)   once
    layout.rows(batch)             once per batch
    layout.end(count)              once

No layout keeps a row after its batch. So `aligned` takes the widths from the first batch, and
widens a column when a later batch needs it: a result of one batch, nearly every one, is aligned
exactly, and a result of a million rows need not fit in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

import msgspec
from prompt_toolkit.utils import get_cwidth

from qserver.cli.cells import Writer, harmless, is_number, writer_of
from qserver.values.keys import Row

Write = Callable[[str], object]

NULL_TEXT: Final = "NULL"


class Layout(Protocol):
    def begin(self, columns: Sequence[str], types: Sequence[str]) -> None: ...
    def rows(self, batch: Sequence[Row]) -> None: ...
    def end(self, count: int) -> None: ...


class Aligned:
    """Columns as psql prints them; numbers to the right."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._names: list[list[str]] = []
        self._writers: list[Writer] = []
        self._right: list[bool] = []
        self._widths: list[int] = []
        self._headed = False

    def begin(self, columns: Sequence[str], types: Sequence[str]) -> None:
        self._names = [harmless(name).split("\n") for name in columns]
        self._writers = [writer_of(each) for each in types]
        self._right = [is_number(each) for each in types]
        self._widths = [max(map(width, name)) for name in self._names]

    def rows(self, batch: Sequence[Row]) -> None:
        cells = [self._cells(row) for row in batch]
        for row in cells:
            for number, lines in enumerate(row):
                widest = max(map(width, lines))
                if widest > self._widths[number]:
                    self._widths[number] = widest
        self._head()
        self._write("".join(self._lines(row, self._padded) for row in cells))

    def end(self, count: int) -> None:
        self._head()
        self._write(f"({count:,} {'row' if count == 1 else 'rows'})\n")

    def _cells(self, row: Row) -> list[list[str]]:
        return [
            [NULL_TEXT] if value is None else harmless(write(value)).split("\n")
            for write, value in zip(self._writers, row, strict=True)
        ]

    def _head(self) -> None:
        if self._headed:
            return
        self._headed = True
        line = "+".join("-" * (each + 2) for each in self._widths)
        self._write(self._lines(self._names, self._centered) + f"{line}\n")

    def _lines(self, cells: Sequence[Sequence[str]], placed: Callable[[str, int], str]) -> str:
        """A row has as many lines as its tallest cell; `+` marks a cell that continues."""
        text = []
        for at in range(max(map(len, cells), default=1)):
            parts = []
            for number, lines in enumerate(cells):
                content = lines[at] if at < len(lines) else ""
                goes_on = "+" if at + 1 < len(lines) else " "
                parts.append(f" {placed(content, number)}{goes_on}")
            text.append("|".join(parts).rstrip() + "\n")
        return "".join(text)

    def _padded(self, content: str, number: int) -> str:
        blanks = " " * (self._widths[number] - width(content))
        return blanks + content if self._right[number] else content + blanks

    def _centered(self, content: str, number: int) -> str:
        blanks = self._widths[number] - width(content)
        return " " * (blanks // 2) + content + " " * (blanks - blanks // 2)


class Expanded:
    """One line per value, for rows wider than the terminal."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._names: list[str] = []
        self._writers: list[Writer] = []
        self._count = 0

    def begin(self, columns: Sequence[str], types: Sequence[str]) -> None:
        names = [harmless(name).replace("\n", "\\n") for name in columns]
        widest = max(map(width, names), default=0)
        self._names = [name + " " * (widest - width(name)) for name in names]
        self._writers = [writer_of(each) for each in types]

    def rows(self, batch: Sequence[Row]) -> None:
        text = []
        for row in batch:
            self._count += 1
            text.append(f"-[ RECORD {self._count} ]-\n")
            for name, write, value in zip(self._names, self._writers, row, strict=True):
                first, *more = [NULL_TEXT] if value is None else harmless(write(value)).split("\n")
                text.append(f"{name} | {first}".rstrip() + "\n")
                margin = " " * width(name)
                text += [f"{margin} | {line}".rstrip() + "\n" for line in more]
        self._write("".join(text))

    def end(self, count: int) -> None:
        self._write(f"({count:,} {'row' if count == 1 else 'rows'})\n")


class Csv:
    """RFC 4180 with a header; NULL is an empty field, an empty text is `""`."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._writers: list[Writer] = []

    def begin(self, columns: Sequence[str], types: Sequence[str]) -> None:
        self._writers = [writer_of(each) for each in types]
        self._write_rows([columns])

    def rows(self, batch: Sequence[Row]) -> None:
        self._write_rows(
            [
                None if value is None else write(value)
                for write, value in zip(self._writers, row, strict=True)
            ]
            for row in batch
        )

    def end(self, count: int) -> None:
        pass

    def _write_rows(self, rows: Iterable[Iterable[str | None]]) -> None:
        self._write("".join(",".join(map(_field, row)) + "\n" for row in rows))


class Json:
    """One array of objects."""

    _before, _between, _after = "[\n", ",\n", "\n]\n"

    def __init__(self, write: Write) -> None:
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

    def end(self, count: int) -> None:
        self._write(self._after if self._written else "]\n")


class Ndjson(Json):
    """One object per line."""

    _before, _between = "", "\n"

    def end(self, count: int) -> None:
        if self._written:
            self._write("\n")


LAYOUTS: Final[Mapping[str, Callable[[Write], Layout]]] = {
    "aligned": Aligned,
    "csv": Csv,
    "json": Json,
    "ndjson": Ndjson,
}


def table(columns: Sequence[str], types: Sequence[str], rows: Sequence[Row]) -> str:
    """A small complete table, without a row count."""
    text: list[str] = []
    aligned = Aligned(text.append)
    aligned.begin(columns, types)
    aligned.rows(rows)
    return "".join(text)


def width(text: str) -> int:
    """The terminal columns that an escaped text takes."""
    return len(text) if text.isascii() else get_cwidth(text)


def _field(value: str | None) -> str:
    if value is None:
        return ""
    if value == "" or any(character in value for character in '",\r\n'):
        return '"' + value.replace('"', '""') + '"'
    return value
