"""Top-n of a vector tree: the rows of each batch that may be among the first `most`.

    ORDER BY a DESC, b LIMIT 2      a 7 6 7 9       by a: what comes after two others goes, here or
                                    b 1 2 0 5       in a later batch; ties stay: 7, 7 and 9
                                                    by all keys: two of the rest, in their order

An earlier row wins a tie, as in a stable sort, unless a key is left that only row code computes.
"""

from __future__ import annotations

import numpy as np

from qserver.sql.vectors.first_rows import FirstRows, worth
from qserver.sql.vectors.operations import Refused, full, is_one
from qserver.sql.vectors.plans import Order
from qserver.sql.vectors.tree_rows import TreeRows
from qserver.sql.vectors.trees import FirstOfTree, TreeKey
from qserver.values.vectors import Array, Vector


class FirstTreeRows:
    """The first rows of one execution."""

    def __init__(self, plan: FirstOfTree, most: int) -> None:
        self._plan = plan
        self._most = most
        key = plan.keys[0]
        is_only = plan.is_whole and len(plan.keys) == 1
        order = Order(plan.program, key.step, key.descending, key.nulls_first, is_only)
        self._by_first_key = FirstRows(order, most)
        self._scale: int | None = None

    def among(self, rows: TreeRows) -> TreeRows:
        """Return the rows that may be among the first, in their order."""
        plan = self._plan
        try:
            found = rows.computed_by(plan.program)
        except Refused:  # row code raises, if a key does
            return rows
        keys = [_comparable(found[key.step], rows.length) for key in plan.keys]
        chosen = None
        if self._scale in (None, keys[0].scale):  # numbers of another scale do not compare
            self._scale = keys[0].scale
            chosen = self._by_first_key.among(keys[0], rows.length)
        if chosen is None:
            chosen = np.arange(rows.length)
        chosen = self._first_of(keys, chosen, rows.length)
        return rows if len(chosen) == rows.length else rows.some(chosen)

    def _first_of(self, keys: list[Vector], chosen: Array, length: int) -> Array:
        """Return those of some rows of a batch that come first by all keys, in their order."""
        most = self._most
        if len(chosen) <= most:
            return chosen
        sorted_by: list[Array] = []
        for key, vector in zip(self._plan.keys, keys, strict=True):
            sorted_by += _sorted_by(key, vector, chosen, length)
        order = np.lexsort(sorted_by[::-1])
        if self._plan.is_whole:
            return np.sort(chosen[order[:most]])
        last = order[most - 1]
        is_tied = np.ones(len(order) - most, np.bool_)
        for values in sorted_by:
            is_tied &= values[order[most:]] == values[last]
        return np.sort(chosen[order[: most + int(is_tied.sum())]])


def _sorted_by(key: TreeKey, vector: Vector, chosen: Array, length: int) -> list[Array]:
    """Return arrays by which rows are in the order of a key: the place of NULL, then the value."""
    values = worth(vector, length, key.descending)[chosen]
    if vector.nulls is None:
        return [values]
    nulls = vector.nulls[chosen]
    values = np.where(nulls, values.dtype.type(0), values)
    return [~nulls if key.nulls_first else nulls, values]


def _comparable(vector: Vector, length: int) -> Vector:
    """Return a key whose values numpy compares: texts, and long numbers, by their places."""
    if is_one(vector) and (vector.words is not None or not isinstance(vector.values, np.generic)):
        if isinstance(vector.values, bool | int | float) and vector.words is None:
            return vector
        return Vector(np.zeros(length, np.int64), vector.nulls, 0, 0, 0, [])
    values = full(vector, length)
    if vector.words is None and values.dtype != np.object_:
        return vector
    if vector.words is None:
        every = values.tolist()
        place = {value: at for at, value in enumerate(sorted(set(every)))}
        places = np.fromiter([place[value] for value in every], np.int64, length)
    else:
        codes, at = np.unique(values, return_inverse=True)
        words = [vector.words[code] for code in codes.tolist()]
        by_word = sorted(range(len(words)), key=words.__getitem__)
        ranks = np.empty(len(words), np.int64)
        ranks[by_word] = np.arange(len(words))
        places = ranks[at]
    # With words, even if they are not told, places do not last longer than a batch.
    return Vector(places, vector.nulls, 0, length, vector.scale, [])
