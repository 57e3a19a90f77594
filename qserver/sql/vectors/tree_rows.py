"""Rows of a vector tree: for each source its columns, and the numbers of the rows in them.

A join only chooses row numbers; a column is gathered when a program reads it, and kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from qserver.sql.execution import Chunk
from qserver.sql.vectors.batches import concatenated
from qserver.sql.vectors.frames import ConstantValue, computed
from qserver.sql.vectors.operations import Refused, full, is_one
from qserver.sql.vectors.program import JoinedColumn, Program
from qserver.sql.vectors.text_operations import texts
from qserver.sql.vectors.tree_digits import OwnDigits
from qserver.values.vector_families import ColumnVector, as_texts
from qserver.values.vectors import Array, Vector

Columns = Mapping[JoinedColumn, Vector]


class ScannedColumns(dict[JoinedColumn, Vector]):
    """The columns of some chunks, put together when they are read."""

    def __init__(self, chunks: list[Chunk]) -> None:
        super().__init__()
        self._chunks = chunks

    def __missing__(self, wanted: JoinedColumn) -> Vector:
        column = wanted.vector
        parts = []
        for chunk in self._chunks:
            parts.append(chunk.column(column if chunk.has(column) else as_texts(column)))
        found = self[wanted] = together(parts)
        return found


def together(parts: list[Vector]) -> Vector:
    """Concatenate vectors of one column; texts as they are where one part has them so."""
    if len(parts) == 1:
        return parts[0]
    for part in parts:
        if isinstance(part, OwnDigits):
            return part.joined(parts)
    if any(_is_plain(part) for part in parts):
        parts = [Vector(texts(part), part.nulls) for part in parts]
    if len({part.scale for part in parts}) > 1:
        raise Refused
    return concatenated(parts)


def _is_plain(part: Vector) -> bool:
    """Whether these are texts as they are; long numbers are objects, too."""
    if part.words is not None or part.values.dtype != np.object_:
        return False
    return any(isinstance(value, str) for value in part.values[:1])


class TreeRows:
    """Some rows of the sources that have been joined so far."""

    __slots__ = ("_made", "_sides", "constants", "length")

    def __init__(
        self,
        sides: dict[int, tuple[Columns, Array | None]],
        length: int,
        constants: list[ConstantValue],
    ) -> None:
        self._sides = sides
        self._made: dict[JoinedColumn, Vector] = {}
        self.constants = constants
        self.length = length

    def column(self, wanted: ColumnVector) -> Vector:
        raise AssertionError("a tree has no scan of its own")

    def joined_column(self, wanted: JoinedColumn) -> Vector:
        found = self._made.get(wanted)
        if found is None:
            columns, rows = self._sides[wanted.source]
            found = columns[wanted]
            if rows is not None:
                found = found.chosen(rows)
            self._made[wanted] = found
        return found

    def some(self, chosen: Array) -> TreeRows:
        """Return some of the rows, each perhaps several times."""
        known: dict[int, Array] = {}
        sides: dict[int, tuple[Columns, Array | None]] = {}
        for source, (columns, rows) in self._sides.items():
            if rows is None:
                sides[source] = columns, chosen
                continue
            if id(rows) not in known:
                known[id(rows)] = rows[chosen]
            sides[source] = columns, known[id(rows)]
        return TreeRows(sides, len(chosen), self.constants)

    def joined_with(self, sources: tuple[int, ...], columns: Columns, rows: Array) -> TreeRows:
        """Return each row with a row of other sources."""
        sides = {**self._sides, **dict.fromkeys(sources, (columns, rows))}
        return TreeRows(sides, self.length, self.constants)

    def part(self, start: int, stop: int) -> TreeRows:
        return self.some(np.arange(start, stop))

    def pieces(self, most: int) -> Iterator[TreeRows]:
        """Yield all rows, so many at a time."""
        if self.length <= most:
            yield self
            return
        for start in range(0, self.length, most):
            yield self.part(start, min(start + most, self.length))

    def values(self, program: Program, wanted: tuple[int, ...]) -> list[Vector]:
        """Return vectors of some steps, each with a value for each row."""
        found = computed(program, self)
        return [whole(found[at], self.length) for at in wanted]

    def computed_by(self, program: Program) -> list[Vector]:
        """Return the vectors of all steps; one value may stand for all rows."""
        return computed(program, self)

    def passing(self, program: Program, truth: int) -> TreeRows:
        """Return the rows that satisfy a condition."""
        found = computed(program, self)[truth]
        if is_one(found):
            return self if found.values else self.part(0, 0)
        if found.values.all():
            return self
        return self.some(np.flatnonzero(found.values))


def whole(vector: Vector, length: int) -> Vector:
    if not is_one(vector):
        return vector
    return Vector(full(vector, length), vector.nulls, vector.low, vector.high, vector.scale)
