"""How many steps a row takes, by how much source is printed for it.

A row of a usual statement takes about a step. One with five hundred aggregates, or a condition of
thousands of parts, takes hundreds: pages of such rows are shorter, and each row counts for more.
"""

from __future__ import annotations

from dataclasses import dataclass

from qserver.sql.codegen.runtime import ROWS_OF_PAGE

CHARACTERS_OF_STEP = 2048
"""So many characters of source, run once, take about a step."""


@dataclass
class Weight:
    """Of a row, in steps: known when all that is done with one has been printed."""

    value: int = 1

    def add(self, characters: int) -> None:
        self.value += characters // CHARACTERS_OF_STEP

    @property
    def rows(self) -> int:
        """Rows of a page that others can wait for."""
        return max(ROWS_OF_PAGE // self.value, 1)
