"""Prints results in the layout of the moment, through a pager where they are long."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Final

from qserver.cli.layouts import Printing, layout_of
from qserver.cli.shell.output import Output, pager_command, screen_size
from qserver.values.keys import Row

BATCH_ROWS: Final = 1000
BATCH_SECONDS: Final = 0.25
"""The longest delay before slowly arriving rows are shown."""

Consume = Callable[[Sequence[str], Sequence[str], Iterable[list[Row]]], None]
"""Takes a result: its columns, their types, and its rows as they arrive."""


class Printer:
    def __init__(self, output: Output) -> None:
        self.output = output
        self.options = Printing()
        self.is_for_person = False
        """Whether a pager may be started: at the prompt."""

    def print(
        self,
        columns: Sequence[str],
        types: Sequence[str],
        batches: Iterable[list[Row]],
        title: str | None = None,
        footers: tuple[str, ...] | None = None,
        expands: bool = True,
    ) -> None:
        size = None if self.output.is_redirected else screen_size()
        options = self.options if title is None else replace(self.options, title=title)
        options = options if expands else replace(options, expanded="off")
        layout = layout_of(self.output.write, options, None if size is None else size[0])
        count = 0
        with self.paged():
            layout.begin(columns, types)
            for batch in gathered(batches):
                layout.rows(batch)
                count += len(batch)
            layout.end(count, footers)

    def paged(self) -> AbstractContextManager[None]:
        size, choice = screen_size(), self.options.pager
        command = pager_command(os.environ)
        if not self.is_for_person or choice == "off" or self.output.is_redirected:
            return nullcontext()
        if size is None or command is None:
            return nullcontext()
        return self.output.paged(command, 0 if choice == "always" else size[1])


def gathered(batches: Iterable[list[Row]]) -> Iterator[list[Row]]:
    """Merge batches into larger ones: many rows, or those of a quarter of a second."""
    merged: list[Row] = []
    since = time.monotonic()
    for batch in batches:
        merged += batch
        if len(merged) >= BATCH_ROWS or time.monotonic() - since > BATCH_SECONDS:
            yield merged
            merged, since = [], time.monotonic()
    if merged:
        yield merged


class Counted:
    """Batches of rows, and how many there were."""

    def __init__(self, batches: Iterable[list[Row]]) -> None:
        self._batches = batches
        self.rows = 0

    def __iter__(self) -> Iterator[list[Row]]:
        for batch in self._batches:
            self.rows += len(batch)
            yield batch
