"""The layouts of results; each prints rows as they arrive.

    layout.begin(columns, types)   once
    layout.rows(batch)             once per batch
    layout.end(count, footers)     once

    aligned.py, expanded.py   for people        plain.py   unaligned, CSV, JSON for programs
    options.py                what \\pset sets    html.py    for pages

No layout keeps a row after its batch. So `aligned` takes the widths from the first batch, and
widens a column when a later batch needs it: a result of one batch, nearly every one, is aligned
exactly, and a result of a million rows need not fit in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

from qserver.cli.layouts.aligned import Aligned, Write
from qserver.cli.layouts.expanded import Expanded
from qserver.cli.layouts.html import Html
from qserver.cli.layouts.options import Printing
from qserver.cli.layouts.plain import Csv, Json, Ndjson, Unaligned
from qserver.cli.layouts.text_cells import width
from qserver.values.keys import Row

__all__ = [
    "LAYOUTS",
    "Aligned",
    "Expanded",
    "Layout",
    "Printing",
    "Write",
    "layout_of",
    "table",
    "width",
]


class Layout(Protocol):
    def begin(self, columns: Sequence[str], types: Sequence[str]) -> None: ...
    def rows(self, batch: Sequence[Row]) -> None: ...
    def end(self, count: int, footers: tuple[str, ...] | None = None) -> None: ...


LAYOUTS: Final[Mapping[str, Callable[[Write, Printing], Layout]]] = {
    "aligned": Aligned,
    "unaligned": Unaligned,
    "csv": Csv,
    "html": Html,
    "json": Json,
    "ndjson": Ndjson,
}


def layout_of(write: Write, options: Printing, columns_max: int | None = None) -> Layout:
    """The layout that the options name. With `auto`, one wider than `columns_max` is expanded."""
    if options.format != "aligned":
        return LAYOUTS[options.format](write, options)
    if options.expanded == "auto" and columns_max is not None:
        return Fitted(write, options, columns_max)
    return (Expanded if options.expanded == "on" else Aligned)(write, options)


class Fitted:
    """Aligned if the first batch of rows fits in the width, else expanded."""

    def __init__(self, write: Write, options: Printing, columns_max: int) -> None:
        self._write = write
        self._options = options
        self._columns_max = columns_max
        self._columns: tuple[Sequence[str], Sequence[str]] = ((), ())
        self._layout: Layout | None = None

    def begin(self, columns: Sequence[str], types: Sequence[str]) -> None:
        self._columns = columns, types

    def rows(self, batch: Sequence[Row]) -> None:
        self._chosen(batch).rows(batch)

    def end(self, count: int, footers: tuple[str, ...] | None = None) -> None:
        self._chosen(()).end(count, footers)

    def _chosen(self, batch: Sequence[Row]) -> Layout:
        if self._layout is None:
            text: list[str] = []
            trial = Aligned(text.append, replace(self._options, title=None))
            trial.begin(*self._columns)
            trial.rows(batch)
            widest = max((width(line) for line in "".join(text).split("\n")), default=0)
            fits = widest <= self._columns_max
            self._layout = (Aligned if fits else Expanded)(self._write, self._options)
            self._layout.begin(*self._columns)
        return self._layout


def table(columns: Sequence[str], types: Sequence[str], rows: Sequence[Row]) -> str:
    """A small complete table for other commands, without a row count."""
    text: list[str] = []
    aligned = Aligned(text.append, Printing(null="NULL"))
    aligned.begin(columns, types)
    aligned.rows(rows)
    return "".join(f"{line.rstrip()}\n" for line in "".join(text).split("\n")[:-1])
