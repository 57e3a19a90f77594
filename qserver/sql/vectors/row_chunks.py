"""Turns plain rows into chunks for a join: rows of small pages, or written by the same transaction.

For an aggregate alone row code is as good. But a single row left over makes row code fill its hash
table of the whole right side.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from qserver.functions.context import Context
from qserver.sql.execution import Chunk
from qserver.sql.vectors.plans import VALUES_FILLED_OF_STEP
from qserver.values.keys import Row
from qserver.values.vector_families import ColumnVector

if TYPE_CHECKING:
    from qserver.values.vectors import Vector

ROWS_MAX: Final = 2048
"""Rows of one chunk: making their vectors takes less than a millisecond."""


class RowChunk:
    """Some rows as a `Chunk`. Its vectors live as long as it does."""

    __slots__ = ("_rows", "_vectors", "filled", "is_ready", "length")

    is_unpacked = True

    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows
        self._vectors: dict[ColumnVector, Vector] = {}
        self.length = len(rows)
        self.filled = 0
        self.is_ready = False

    def prepare(
        self, columns: tuple[ColumnVector, ...], vectors: Any, is_eager: bool
    ) -> Iterator[None]:
        from qserver.values.vectors import vector_of  # imports numpy

        self.is_ready = False
        for wanted in columns:
            at = wanted.position
            vector = vector_of([row[at] for row in self._rows], wanted)
            if vector is None:
                return
            self._vectors[wanted] = vector
            yield
        self.is_ready = True

    def load(self, columns: tuple[ColumnVector, ...], vectors: Any) -> Iterator[None]:
        """Nothing to do: nobody saves these rows."""
        return iter(())

    def has(self, wanted: ColumnVector) -> bool:
        return wanted in self._vectors

    def column(self, wanted: ColumnVector) -> Vector:
        return self._vectors[wanted]

    def forget_rows(self) -> None:
        """Nothing to do: nobody else has these rows."""

    def runs(self, places: list[int] | None = None) -> Iterator[list[Row]]:
        yield self._rows if places is None else [self._rows[at] for at in places]


def all_chunks(
    parts: Iterable[Chunk | list[Row]], context: Context, columns: int
) -> Iterator[Chunk]:
    """Yield the parts of a scan, in order, with all rows in chunks."""
    rows: list[Row] = []
    for part in parts:
        if isinstance(part, list):
            rows += part
        if rows and (len(rows) >= ROWS_MAX or not isinstance(part, list)):
            context.work += len(rows) * columns // VALUES_FILLED_OF_STEP
            yield RowChunk(rows)
            rows = []
        if not isinstance(part, list):
            yield part
    if rows:
        context.work += len(rows) * columns // VALUES_FILLED_OF_STEP
        yield RowChunk(rows)
