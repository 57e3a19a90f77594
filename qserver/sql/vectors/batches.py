"""Several chunks of a scan at once: the longer the vectors, the less it costs to call numpy."""

from __future__ import annotations

from typing import Any

import numpy as np

from qserver.sql.execution import Chunk
from qserver.sql.vectors.plans import Matched
from qserver.values.keys import Row
from qserver.values.vector_families import ColumnVector
from qserver.values.vectors import Array, Vector


class Batch:
    """Chunks in the order of their rows; every column that is wanted has its vectors."""

    __slots__ = ("_chunks", "length")

    def __init__(self, chunks: list[Chunk]) -> None:
        self._chunks = chunks
        self.length = sum([chunk.length for chunk in chunks])

    def column(self, wanted: ColumnVector) -> Vector:
        parts = [chunk.column(wanted) for chunk in self._chunks]
        return parts[0] if len(parts) == 1 else _joined(parts)

    def rows(self, chosen: Array | None) -> Matched:
        """Return some rows; all for None."""
        if chosen is None:
            return Matched([row for chunk in self._chunks for row in chunk.rows()])
        found: list[Row] = []
        start = base = 0
        for chunk in self._chunks:
            base += chunk.length
            stop = int(np.searchsorted(chosen, base))
            if stop > start:
                places = (chosen[start:stop] - (base - chunk.length)).tolist()
                found += chunk.picked(places)
                start = stop
        return Matched(found)


def _joined(parts: list[Vector]) -> Vector:
    nulls = None
    if any(part.nulls is not None for part in parts):
        nulls = np.concatenate([_nulls(part) for part in parts])
    first = parts[0]
    codes, words = [part.values for part in parts], first.words
    if words is not None and any(part.words != words for part in parts):
        codes, words = _words_joined(parts)
    low, high = min([part.low for part in parts]), max([part.high for part in parts])
    if words is not None:
        high = len(words) - 1
    return Vector(np.concatenate(codes), nulls, low, high, first.scale, words)


def _nulls(part: Vector) -> Array:
    return np.zeros(len(part.values), np.bool_) if part.nulls is None else part.nulls


def _words_joined(parts: list[Vector]) -> tuple[list[Any], list[str]]:
    """Return the codes of each part among the words of all."""
    words = sorted({word for part in parts for word in part.words or ()})
    place = dict(zip(words, range(len(words)), strict=True))
    codes = []
    for part in parts:
        known = part.words or []
        table = np.fromiter([place[word] for word in known], np.uint16, len(known))
        codes.append(table[part.values])
    return codes, words
