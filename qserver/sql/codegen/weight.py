"""Estimates the steps per row from the length of the printed source.

A row of an ordinary statement takes about one step. A row with five hundred aggregates, or a
condition of thousands of parts, takes hundreds: pages of such rows are shorter, and each row counts
for more.
"""

from __future__ import annotations

from dataclasses import dataclass

from qserver.sql.codegen.runtime import ROWS_OF_PAGE

CHARACTERS_OF_STEP = 2048
"""Characters of source that take about one step per run."""


@dataclass
class Weight:
    """The steps of a row: known when all its code has been printed."""

    value: int = 1

    def add(self, characters: int) -> None:
        self.value += characters // CHARACTERS_OF_STEP

    @property
    def rows(self) -> int:
        """Rows of a page, short enough for other tasks to wait for."""
        return max(ROWS_OF_PAGE // self.value, 1)
