"""The right side of a hash join: collected as it comes, then turned into vectors, or a hash table.

    rows    [r, r, …]                 rows that row code appended
    taken   [Taken, Taken, …]         chunks that were not read by rows
    table   {key: [r, r], …}          the hash table of row code; filled when row code gets a row

Before the left side is read, the wanted columns become vectors (`joins`). The first row that is
left for row code fills the table. Both run in steps, with an empty page between them, so that the
loop over the pages can yield.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from qserver.functions.context import Context
from qserver.sql.vectors.plans import JoinPlan, Matched
from qserver.values.keys import Row

if TYPE_CHECKING:
    from qserver.sql.vectors.batches import VectorBatch
    from qserver.values.vectors import Array

ROWS_AT_ONCE: Final = 2048
"""Rows that go into vectors or into the table between two yields."""


class Taken(NamedTuple):
    """Chunks that belong before `rows[position]`, and which of their rows; None for all."""

    position: int
    batch: VectorBatch
    chosen: Array | None

    @property
    def length(self) -> int:
        return self.batch.length if self.chosen is None else len(self.chosen)


class Build:
    """One right side of one execution."""

    def __init__(
        self,
        plan: JoinPlan,
        rows: list[Any],
        taken: list[Taken],
        table: dict[Any, list[Any]],
        key: Callable[[Any], Any],
    ) -> None:
        self.plan = plan
        self.rows = rows
        self.taken = taken
        self.lookup: Any = None
        """A `Lookup` of `joins`; None if a column has no vector."""
        self.is_prepared = False
        self.is_filled = False
        self._table = table
        self._key = key

    def pieces(self) -> Iterator[list[Any] | Taken]:
        """Yield all rows in order, few at a time."""
        start = 0
        for taken in self.taken:
            yield from self._slices(start, taken.position)
            yield taken
            start = taken.position
        yield from self._slices(start, len(self.rows))

    def _slices(self, start: int, stop: int) -> Iterator[list[Any]]:
        for at in range(start, stop, ROWS_AT_ONCE):
            yield self.rows[at : min(at + ROWS_AT_ONCE, stop)]

    def fill(self, context: Context) -> Iterator[None]:
        """Fill the hash table of row code; yield now and then."""
        self.is_filled = True
        for piece in self.pieces():
            if isinstance(piece, Taken):
                for rows in piece.batch.rows(piece.chosen):
                    context.charge_memory(len(rows), 4)  # the others were, when they were kept
                    self._add(rows)
                    context.work += len(rows)
                    yield
            else:
                self._add(piece)
                context.work += len(piece)
                yield

    def _add(self, rows: list[Any]) -> None:
        table, key, many = self._table, self._key, len(self.plan.right_keys) > 1
        for item in rows:
            value = key(item)
            if value is None or (many and None in value):
                continue
            found = table.get(value)
            if found is None:
                table[value] = [item]
            else:
                found.append(item)


def filled(builds: tuple[Build, ...], context: Context) -> Iterator[list[Row]]:
    """Fill the hash tables of row code, unless that is done; yield empty pages."""
    for build in builds:
        if not build.is_filled:
            for _ in build.fill(context):
                yield Matched()
