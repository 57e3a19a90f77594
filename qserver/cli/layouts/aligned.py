"""Columns side by side, as psql prints them: numbers to the right, `+` where a cell goes on.

The widths are those of the first batch of rows; a wider cell of a later one widens its column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from qserver.cli.cells import harmless, is_number
from qserver.cli.layouts.options import Printing
from qserver.cli.layouts.text_cells import TextCells, names_of, padded, widest, width
from qserver.values.keys import Row

Write = Callable[[str], object]
Rule = tuple[str, str, str, str]
"""What a line is filled with, and its left end, crossings and right end."""


@dataclass(frozen=True, slots=True)
class Lines:
    """The characters that a table is drawn with."""

    bar: str
    goes_on: str
    top: Rule
    middle: Rule
    bottom: Rule


ASCII_RULE: Final = ("-", "+", "+", "+")
LINES: Final = {
    "ascii": Lines("|", "+", ASCII_RULE, ASCII_RULE, ASCII_RULE),
    "unicode": Lines("│", "↵", ("─", "┌", "┬", "┐"), ("─", "├", "┼", "┤"), ("─", "└", "┴", "┘")),
}


def rule(characters: Rule, widths: Sequence[int], border: int) -> str:
    fill, left, middle, right = characters
    if border == 0:
        return " ".join(fill * each for each in widths) + "\n"
    line = middle.join(fill * (each + 2) for each in widths)
    return (left + line + right if border == 2 else line) + "\n"


class Aligned:
    def __init__(self, write: Write, options: Printing) -> None:
        self._write = write
        self._options = options
        self._lines = LINES[options.linestyle]
        self._names: list[list[str]] = []
        self._cells = TextCells((), (), "")
        self._right: list[bool] = []
        self._widths: list[int] = []
        self._headed = False

    def begin(self, columns: Sequence[str], types: Sequence[str]) -> None:
        self._names = names_of(columns)
        self._cells = TextCells(columns, types, self._options.null)
        self._right = [is_number(each) for each in types]
        names = [] if self._options.tuples_only else self._names
        self._widths = [widest(each) for each in names] or [0] * len(self._names)

    def rows(self, batch: Sequence[Row]) -> None:
        cells = [self._cells.of(row) for row in batch]
        for row in cells:
            for number, lines in enumerate(row):
                self._widths[number] = max(self._widths[number], widest(lines))
        self._head()
        if self._names:
            self._write("".join(map(self._row, cells)))

    def end(self, count: int, footers: tuple[str, ...] | None = None) -> None:
        self._head()
        options = self._options
        if options.border == 2:
            self._write(rule(self._lines.bottom, self._widths, 2))
        below = "".join(f"{harmless(each)}\n" for each in options.footers(count, footers))
        self._write(f"{below}\n")

    def _head(self) -> None:
        if self._headed:
            return
        self._headed = True
        options, widths = self._options, self._widths
        text = []
        if options.title is not None and not options.tuples_only:
            text.append(self._titled(harmless(options.title)) + "\n")
        if options.border == 2:
            text.append(rule(self._lines.top, widths, 2))
        if not options.tuples_only:
            if self._names:
                text.append(self._header())
            text.append(rule(self._lines.middle, widths, options.border) if widths else "--\n")
        self._write("".join(text))

    def _titled(self, title: str) -> str:
        total = sum(self._widths) + (0, 3, 3)[self._options.border] * len(self._widths)
        total += (len(self._widths) - 1, -1, 1)[self._options.border]
        return " " * max((total - width(title)) // 2, 0) + title

    def _header(self) -> str:
        text = []
        for at in range(max(map(len, self._names))):
            parts = []
            for lines, columns in zip(self._names, self._widths, strict=True):
                content = lines[at] if at < len(lines) else ""
                left = (columns - width(content)) // 2
                mark = self._lines.goes_on if at + 1 < len(lines) else " "
                parts.append(padded(" " * left + content, columns) + mark)
            text.append(self._framed(parts))
        return "".join(text)

    def _row(self, cells: list[list[str]]) -> str:
        """A row has as many lines as its tallest cell."""
        text, last = [], len(cells) - 1
        for at in range(max(map(len, cells))):
            parts = []
            for number, lines in enumerate(cells):
                is_padded = number < last or self._options.border == 2
                goes_on = at + 1 < len(lines)
                content = lines[at] if at < len(lines) else ""
                if at < len(lines) and self._right[number]:
                    content = " " * (self._widths[number] - width(content)) + content
                elif is_padded or goes_on:
                    content = padded(content, self._widths[number])
                mark = self._lines.goes_on if goes_on else " " if is_padded else ""
                parts.append(content + mark)
            text.append(self._framed(parts))
        return "".join(text)

    def _framed(self, parts: list[str]) -> str:
        bar, border = self._lines.bar, self._options.border
        if border == 0:
            return "".join(parts) + "\n"
        line = " " + f"{bar} ".join(parts)
        return (bar + line + bar if border == 2 else line) + "\n"
