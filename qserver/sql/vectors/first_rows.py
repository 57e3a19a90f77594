"""Top-n: finds the rows of a chunk that can be among the first `most`.

Each batch drops rows that come after `most` others, of this batch or earlier ones. The rest goes to
the heap of row code, in the order of the scan. Ties stay, unless this key is the only one: then the
earlier row wins, as in a stable sort.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from qserver.sql.vectors.operations import full
from qserver.sql.vectors.plans import Order
from qserver.values.vectors import Array, Vector

ROWS_OF_FIRST_MIN = 4
"""Fewer rows for each wanted one are not worth sifting."""


class FirstRows:
    """The best keys of a scan so far."""

    def __init__(self, order: Order, most: int) -> None:
        self.order = order
        self._most = most
        self._best: Array | None = None
        """Keys of the first rows so far, the worst last; larger is worse. Not those of texts."""
        self._seen = 0
        """Keys so far that are not NULL."""

    def among(self, key: Vector, length: int) -> Array | None:
        """Return the ascending positions of rows that may be among the first; None for all."""
        most = self._most
        if length < ROWS_OF_FIRST_MIN * most:
            return None
        if most <= 0:
            return np.empty(0, np.int64)
        worths = worth(key, length, self.order.descending)
        places = None
        if key.nulls is not None:
            places = np.flatnonzero(~key.nulls)
            worths = worths[places]
        self._seen += len(worths)
        kept = self._kept(worths, key.words is None)
        if places is not None and kept is not None:
            kept = places[kept]
        elif kept is None:
            kept = places
        if key.nulls is None or kept is None:
            return kept
        if not self.order.nulls_first and self._seen >= most:
            return kept
        return np.union1d(kept, np.flatnonzero(key.nulls))

    def _kept(self, worth: Array, is_lasting: bool) -> Array | None:
        """Return the positions of keys that may be among the first."""
        most, is_only = self._most, self.order.is_only
        kept = None
        if self._best is not None and len(self._best) == most:
            worst = self._best[-1]
            kept = np.flatnonzero(worth < worst if is_only else worth <= worst)
            worth = worth[kept]
        if len(worth) > most:
            worst = np.partition(worth, most - 1)[most - 1]
            better = np.flatnonzero(worth <= worst)
            if is_only and len(better) > most:
                better = _without_late_ties(worth, worst, better, most)
            worth = worth[better]
            kept = better if kept is None else kept[better]
        if is_lasting and len(worth):
            best = worth if self._best is None else np.concatenate((self._best, worth))
            self._best = np.sort(best)[:most]
        return kept


def worth(key: Vector, length: int, descending: bool) -> Array:
    """Return the keys as numbers of which the smallest comes first."""
    values: Array = full(key, length)
    if values.dtype.kind in "bu":
        values = values.astype(np.int64)
    if not descending:
        return values
    # ~x is -x - 1, which cannot overflow.
    return -values if values.dtype.kind == "f" else ~values


def _without_late_ties(worth: Array, worst: Any, better: Array, most: int) -> Array:
    """Drop the last of the rows that tie with the worst."""
    tied = worth[better] == worst
    surplus = len(better) - most
    late = np.flatnonzero(tied)[-surplus:]
    return np.delete(better, late)
