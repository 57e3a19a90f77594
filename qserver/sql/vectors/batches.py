"""Batches several chunks of a scan: longer vectors make numpy calls cheaper per row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from qserver.sql.execution import Chunk
from qserver.sql.vectors.plans import Matched
from qserver.values.vector_families import ColumnVector
from qserver.values.vectors import Array, Vector

Buffers: TypeAlias = dict[ColumnVector, Array]
"""Where columns of one batch after the other are put together: new memory costs more than that."""


class VectorBatch:
    """Prepared chunks, in the order of their rows. Its columns last until the next batch."""

    __slots__ = ("_buffers", "_chunks", "_columns", "length")

    def __init__(self, chunks: list[Chunk], buffers: Buffers) -> None:
        self._chunks = chunks
        self._buffers = buffers
        self._columns: dict[ColumnVector, Vector] = {}
        self.length = sum([chunk.length for chunk in chunks])

    def column(self, wanted: ColumnVector) -> Vector:
        found = self._columns.get(wanted)
        if found is None:
            found = self._columns[wanted] = self._made(wanted)
        return found

    def _made(self, wanted: ColumnVector) -> Vector:
        parts = [chunk.column(wanted) for chunk in self._chunks]
        return concatenated(parts, lambda arrays: self._joined(wanted, arrays))

    def _joined(self, wanted: ColumnVector, arrays: list[Array]) -> Array:
        kind = max([array.dtype for array in arrays], key=lambda each: each.itemsize)
        buffer = self._buffers.get(wanted)
        if buffer is None or len(buffer) < self.length or buffer.dtype != kind:
            buffer = self._buffers[wanted] = np.empty(self.length, kind)
        found = buffer[: self.length]
        np.concatenate(arrays, out=found)
        return found

    def rows(self, chosen: Array | None) -> Iterator[Matched]:
        """Yield some rows, or all for None, as they are read."""
        start = base = 0
        for chunk in self._chunks:
            places = None
            if chosen is not None:
                base += chunk.length
                stop = int(np.searchsorted(chosen, base))
                places = (chosen[start:stop] - (base - chunk.length)).tolist()
                start = stop
                if not places:
                    continue
            for run in chunk.runs(places):
                yield Matched(run)


def concatenated(
    parts: list[Vector], joined: Callable[[list[Array]], Array] = np.concatenate
) -> Vector:
    if len(parts) == 1:
        return parts[0]
    nulls = None
    if any(part.nulls is not None for part in parts):
        nulls = np.concatenate([_nulls(part) for part in parts])
    codes, words = [part.values for part in parts], parts[0].words
    if words is not None and any(part.words is not words and part.words != words for part in parts):
        codes, words = _words_joined(parts)
    low, high = min([part.low for part in parts]), max([part.high for part in parts])
    if words is not None:
        high = len(words) - 1
    return Vector(joined(codes), nulls, low, high, parts[0].scale, words)


def _nulls(part: Vector) -> Array:
    return np.zeros(len(part.values), np.bool_) if part.nulls is None else part.nulls


def _words_joined(parts: list[Vector]) -> tuple[list[Any], list[str]]:
    """Return the codes of each part, renumbered among the words of all."""
    words = sorted({word for part in parts for word in part.words or ()})
    place = dict(zip(words, range(len(words)), strict=True))
    kind = np.min_scalar_type(len(words))
    codes = []
    for part in parts:
        known = part.words or []
        table = np.fromiter([place[word] for word in known], kind, len(known))
        codes.append(table[part.values])
    return codes, words
