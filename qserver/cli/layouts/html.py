"""HTML tables, as psql writes them."""

from __future__ import annotations

from collections.abc import Sequence

from qserver.cli.cells import Writer, harmless, is_number, writers_of
from qserver.cli.layouts.aligned import Write
from qserver.cli.layouts.options import Printing
from qserver.values.keys import Row


class Html:
    def __init__(self, write: Write, options: Printing) -> None:
        self._write = write
        self._options = options
        self._columns: list[str] = []
        self._writers: list[Writer] = []
        self._aligns: list[str] = []
        self._count = 0

    @property
    def _is_expanded(self) -> bool:
        return self._options.expanded == "on"

    def begin(self, columns: Sequence[str], types: Sequence[str]) -> None:
        options = self._options
        self._columns = [escaped(name) for name in columns]
        self._writers = writers_of(columns, types)
        self._aligns = ["right" if is_number(each) else "left" for each in types]
        attributes = f" {options.tableattr}" if options.tableattr else ""
        text = [f'<table border="{options.border}"{attributes}>\n']
        if options.title is not None and not options.tuples_only:
            text.append(f"  <caption>{escaped(options.title)}</caption>\n")
        if not options.tuples_only and not self._is_expanded:
            heads = [f'    <th align="center">{name}</th>\n' for name in self._columns]
            text += ["  <tr>\n", *heads, "  </tr>\n"]
        self._write("".join(text))

    def rows(self, batch: Sequence[Row]) -> None:
        self._write("".join(map(self._record if self._is_expanded else self._row, batch)))

    def end(self, count: int, footers: tuple[str, ...] | None = None) -> None:
        lines = self._options.footers(count, footers)
        if self._is_expanded and footers is None:
            lines = ()
        below = "".join(f"{escaped(each)}<br />\n" for each in lines)
        self._write("</table>\n" + (f"<p>{below}</p>" if below else "") + "\n")

    def _row(self, row: Row) -> str:
        cells = zip(self._aligns, self._cells(row), strict=True)
        lines = "".join(f'    <td align="{align}">{cell}</td>\n' for align, cell in cells)
        return f'  <tr valign="top">\n{lines}  </tr>\n'

    def _record(self, row: Row) -> str:
        self._count += 1
        label = "&nbsp;" if self._options.tuples_only else f"Record {self._count}"
        head = f'\n  <tr><td colspan="2" align="center">{label}</td></tr>\n'
        if self._options.tuples_only:
            head = '\n  <tr><td colspan="2">&nbsp;</td></tr>\n'
        text = [head]
        for name, align, cell in zip(self._columns, self._aligns, self._cells(row), strict=True):
            value = f'    <th>{name}</th>\n    <td align="{align}">{cell}</td>\n'
            text.append(f'  <tr valign="top">\n{value}  </tr>\n')
        return "".join(text)

    def _cells(self, row: Row) -> list[str]:
        texts = [
            self._options.null if value is None else write(value)
            for write, value in zip(self._writers, row, strict=True)
        ]
        return [escaped(text) if text.strip(" \t") else "&nbsp; " for text in texts]


def escaped(text: str) -> str:
    inner = harmless(text).lstrip(" ")
    blanks = "&nbsp;" * (len(harmless(text)) - len(inner))
    for character, name in (("&", "amp"), ("<", "lt"), (">", "gt"), ('"', "quot")):
        inner = inner.replace(character, f"&{name};")
    return blanks + inner.replace("\n", "<br />\n")
