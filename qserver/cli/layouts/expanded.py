"""One line per value, for rows wider than the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from qserver.cli.cells import harmless
from qserver.cli.layouts.aligned import LINES, Rule, Write
from qserver.cli.layouts.options import Printing, counted
from qserver.cli.layouts.text_cells import TextCells, names_of, padded, widest
from qserver.values.keys import Row


class Expanded:
    """The widths are those of the first batch of rows, as in `Aligned`."""

    def __init__(self, write: Write, options: Printing) -> None:
        self._write = write
        self._options = options
        self._lines = LINES[options.linestyle]
        self._names: list[list[str]] = []
        self._cells = TextCells((), (), "")
        self._name_width = self._value_width = 0
        self._count = 0

    def begin(self, columns: Sequence[str], types: Sequence[str]) -> None:
        self._names = names_of(columns)
        self._cells = TextCells(columns, types, self._options.null)
        self._name_width = max(map(widest, self._names), default=0)
        if self._options.title is not None and not self._options.tuples_only:
            self._write(f"{harmless(self._options.title)}\n")

    def rows(self, batch: Sequence[Row]) -> None:
        cells = [self._cells.of(row) for row in batch]
        widths = (widest(lines) for row in cells for lines in row)
        self._value_width = max([self._value_width, *widths])
        text = []
        for row in cells:
            self._count += 1
            text.append(self._record_line())
            for name, value in zip(self._names, row, strict=True):
                text.append(self._value(name, value))
        self._write("".join(text))

    def end(self, count: int, footers: tuple[str, ...] | None = None) -> None:
        options = self._options
        text = [self._rule(self._lines.bottom)] if options.border == 2 and self._count else []
        if self._count == 0 and footers is None and not options.tuples_only:
            text.append(f"{counted(0)}\n")
        if footers and not options.tuples_only:
            text += ["\n" if self._count else "", *(f"{harmless(each)}\n" for each in footers)]
        self._write("".join([*text, "\n"]))

    def _record_line(self) -> str:
        options = self._options
        characters = self._lines.top if self._count == 1 else self._lines.middle
        if options.tuples_only:
            is_drawn = self._count > 1 or options.border == 2
            return self._rule(characters) if is_drawn else ""
        line = self._rule(characters)[:-1]
        fill, left, _, right = characters
        label = {
            0: f"* Record {self._count}",
            1: f"{fill}[ RECORD {self._count} ]",
            2: f"{left}{fill}[ RECORD {self._count} ]",
        }[options.border]
        rest = line[len(label) :]
        if options.border == 2 and len(rest) < 2:
            rest = f"{fill}{right}"
        return f"{label}{rest}\n"

    def _rule(self, characters: Rule) -> str:
        fill, left, middle, right = characters
        names, values = self._name_width, self._value_width
        if self._options.border == 0:
            return " " * (names + values) + "\n"
        if self._options.border == 1:
            return fill * (names + 1) + middle + fill * (values + 1) + "\n"
        return left + fill * (names + 2) + middle + fill * (values + 2) + right + "\n"

    def _value(self, name: list[str], value: list[str]) -> str:
        text, border = [], self._options.border
        goes_on, bar = self._lines.goes_on, self._lines.bar
        for at in range(max(len(name), len(value))):
            left = padded(name[at] if at < len(name) else "", self._name_width)
            left += goes_on if at + 1 < len(name) else " "
            right = value[at] if at < len(value) else ""
            mark = goes_on if at + 1 < len(value) else " "
            if border == 2 or mark == goes_on:
                right = padded(right, self._value_width) + mark
            line = left + (f"{bar} " if border else "") + right
            text.append(f"{bar} {line}{bar}\n" if border == 2 else f"{line}\n")
        return "".join(text)
