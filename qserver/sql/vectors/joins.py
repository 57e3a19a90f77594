"""Hash joins over vectors: finds the rows of the right side that match each row of a chunk.

    right side ──► columns as vectors, and a table of its keys (`join_tables`)
    left side  ──► batches: places of their keys, then pairs of row numbers

A row meets its matches in the order of the right side, as in row code.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

import numpy as np

from qserver.functions.context import Context
from qserver.sql.vectors.batches import concatenated
from qserver.sql.vectors.builds import Build, Taken
from qserver.sql.vectors.frames import Frame, JoinedColumns, computed
from qserver.sql.vectors.join_tables import JoinTable
from qserver.sql.vectors.operations import Refused, full, scaled, shortened
from qserver.sql.vectors.plans import ROWS_OF_STEP, VALUES_FILLED_OF_STEP, JoinPlan
from qserver.sql.vectors.program import JoinedColumn
from qserver.values.vector_families import BOOLEAN, TEXT
from qserver.values.vectors import Array, Vector, vector_of

ROWS_MAX: Final = 2**20
"""A right side with more rows is joined by row code."""

ROWS_JOINED_MAX: Final = 2**18
"""A chunk that meets more rows is joined row by row."""

WORDS_MAX: Final = 2**16
"""Distinct texts of a column of the right side."""


class Lookup:
    """The right side of a join as vectors."""

    def __init__(
        self,
        columns: JoinedColumns,
        keys: list[Vector],
        length: int,
        counts_only: bool = False,
    ) -> None:
        self.columns = columns
        self._scales = [key.scale for key in keys]
        self._table = JoinTable(keys, length, counts_only)

    def filled(self) -> Generator[None, None, None]:
        """Fill the table; others may run after each step."""
        return self._table.filled()

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return sum([vector.size for vector in self.columns.values()]) + self._table.size

    def matches(self, keys: list[Vector], length: int) -> _Matches:
        """Return the matches of rows with these keys."""
        pairs = zip(keys, self._scales, strict=True)
        same_scale = [
            scaled(key, scale) if key.scale <= scale else shortened(key, scale)
            for key, scale in pairs
        ]
        return _Matches(self._table, self._table.places(same_scale, length))


def joined(frame: Frame, build: Build) -> Frame:
    """Return the rows of a frame, each with its matches."""
    plan = build.plan
    lookup: Lookup | None = build.lookup
    if lookup is None:
        raise Refused
    vectors = computed(plan.program, frame)
    found = lookup.matches([vectors[at] for at in plan.keys], frame.length)
    if plan.kind in ("semi", "anti"):
        frame = frame.some(np.flatnonzero(found.exists() == (plan.kind == "semi")))
    else:
        left, right = found.pairs(plan.kind == "left")
        if left is not None:
            frame = frame.some(left)
        frame = frame.with_joined(plan.sources, lookup.columns, right)
    for check in plan.checks:
        if frame.length:
            truth = computed(check.program, frame)[check.truth]
            frame = frame.some(np.flatnonzero(full(truth, frame.length)))
    return frame


class _Matches:
    """The rows of the right side that match some rows."""

    def __init__(self, table: JoinTable, places: Array) -> None:
        self._table = table
        self._places = places

    def count(self) -> int:
        """Return the number of pairs."""
        return int(self._table.counts[self._places].sum())

    def exists(self) -> Array:
        found: Array = self._table.counts[self._places] > 0
        return found

    def pairs(self, outer: bool) -> tuple[Array | None, Array]:
        """Return rows of the left side (None: all of them once), and their matches."""
        table = self._table
        if table.row_of is not None:
            right = table.row_of[self._places]
            if outer:
                return None, right
            left = np.flatnonzero(right < table.length)
            return (None, right) if len(left) == len(right) else (left, right[left])
        counts = table.counts[self._places]
        if outer:
            counts = np.maximum(counts, 1)
        ends = np.cumsum(counts)
        count = int(ends[-1])
        if count > ROWS_JOINED_MAX:
            raise Refused
        left = np.repeat(np.arange(len(counts)), counts)
        first = table.starts[self._places] - (ends - counts)
        return left, table.order[np.arange(count) + first[left]]


# --- vectors of the right side -------------------------------------------------------------------


def prepare(build: Build, context: Context) -> Generator[None, None, None]:
    """Turn a right side into vectors, unless that is done; yield now and then."""
    if not build.is_prepared:
        build.is_prepared = True
        build.lookup = yield from _lookup_of(build, context)


def _lookup_of(build: Build, context: Context) -> Generator[None, None, Lookup | None]:
    """Return a right side as vectors; None if a column has none. Yields now and then."""
    plan = build.plan
    columns: dict[JoinedColumn, list[Vector]] = {wanted: [] for wanted in plan.columns}
    texts = {wanted: _Texts() for wanted in columns if wanted.vector.family == TEXT}
    length = len(build.rows) + sum([taken.length for taken in build.taken])
    if length > ROWS_MAX:
        return None
    for piece in build.pieces():
        for wanted, vectors in columns.items():
            vector = _vector(plan, piece, wanted)
            if vector is not None and wanted in texts:
                vector = texts[wanted].numbered(vector)
            if vector is None:
                return None
            vectors.append(vector)
        if not isinstance(piece, Taken):
            context.work += len(piece) * len(columns) // VALUES_FILLED_OF_STEP
        yield
    for wanted, known in texts.items():
        columns[wanted] = known.in_order(columns[wanted])
        context.work += known.count
        yield
    whole = {
        wanted: _whole(vectors, wanted, plan.kind == "left") for wanted, vectors in columns.items()
    }
    context.work += length * len(columns) // ROWS_OF_STEP
    yield
    is_asked = plan.kind in ("semi", "anti")
    lookup = Lookup(whole, [whole[key] for key in plan.right_keys], length, is_asked)
    try:
        for _ in lookup.filled():
            context.work += length // ROWS_OF_STEP
            yield
    except Refused:
        return None
    context.hold_bytes(lookup.size)
    context.work += length // ROWS_OF_STEP
    return lookup


class _Texts:
    """The distinct texts of a column of the right side, numbered as they come."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    @property
    def count(self) -> int:
        return len(self._numbers)

    def numbered(self, vector: Vector) -> Vector | None:
        """Return the texts of a piece as numbers; None if there are too many."""
        numbers = self._numbers
        table = [numbers.setdefault(word, len(numbers)) for word in vector.words or ()]
        if len(numbers) > WORDS_MAX:
            return None
        return Vector(np.array(table, np.int32)[vector.values], vector.nulls)

    def in_order(self, vectors: list[Vector]) -> list[Vector]:
        """Return numbered texts as positions in sorted order, as every vector has them."""
        words = sorted(self._numbers)
        places = np.empty(len(words), np.int32)
        places[[self._numbers[word] for word in words]] = np.arange(len(words))
        last = len(words) - 1
        return [Vector(places[each.values], each.nulls, 0, last, 0, words) for each in vectors]


def _vector(plan: JoinPlan, piece: list[Any] | Taken, wanted: JoinedColumn) -> Vector | None:
    if isinstance(piece, Taken):
        vector = piece.batch.column(wanted.vector)
        return vector if piece.chosen is None else vector.chosen(piece.chosen)
    at = wanted.vector.position
    if len(plan.sources) == 1:
        values = [row[at] for row in piece]
    else:
        place = plan.sources.index(wanted.source)
        values = [item[place][at] for item in piece]
    return vector_of(values, wanted.vector, WORDS_MAX)


def _whole(vectors: list[Vector], wanted: JoinedColumn, with_null: bool) -> Vector:
    """Concatenate the vectors of the pieces, perhaps with a NULL at the end."""
    if with_null or not vectors:
        null = vector_of([None], wanted.vector)
        assert null is not None, "NULL always fits"
        if vectors and wanted.vector.family != BOOLEAN:  # within the bounds of others
            first = vectors[0]
            value = first.values[:1]
            null = Vector(value, null.nulls, first.low, first.high, first.scale, first.words)
        vectors = [*vectors, null]
    return concatenated(vectors)
