"""Maps keys of GROUP BY to small integers, one for each group of a chunk.

    k % 10     codes = values - low                       values of a narrow range
    other      codes = positions among distinct values    few values of a wide range
    a, b       codes of a * number of b + codes of b

NULL is a group like any other. A chunk with almost as many groups as rows is refused: merging a
group costs more than adding a few rows one by one.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from qserver.sql.vectors.operations import Refused, full
from qserver.values.vector_families import BOOLEAN
from qserver.values.vectors import Array, Vector, distinct_integers, values_of

ROWS_OF_GROUP_MIN: Final = 4
"""A chunk with fewer rows for each group is read row by row."""


class Groups:
    """The groups of a chunk: `codes` of its rows, and the row count of each group that has rows.

    `rows_read` counts the rows of the scan, which row code would have to read again.
    """

    def __init__(
        self, keys: list[Vector], families: list[str], length: int, rows_read: int
    ) -> None:
        most = max(length, rows_read) // ROWS_OF_GROUP_MIN
        pairs = zip(keys, families, strict=True)
        self._keys = [_Key(key, family, length, most) for key, family in pairs]
        first, *others = self._keys
        codes, count = first.codes, first.count
        for key in others:
            count *= key.count
            if count > 16 * max(length, rows_read):
                raise Refused
            codes = codes * key.count + key.codes
        self.codes: Array = codes
        self.space = count
        """One more than the greatest code."""
        self.rows: Array = np.bincount(codes, minlength=count)
        """The rows of each code."""
        self.present: Array = np.flatnonzero(self.rows)
        if len(self.present) > most:
            raise Refused

    def keys(self) -> list[Any]:
        """Return the keys of the present groups in the form of row code: one value, or a tuple."""
        numbers = self.present
        parts: list[list[Any]] = []
        for key in reversed(self._keys):
            parts.append(key.values(numbers % key.count))
            numbers = numbers // key.count
        if len(parts) == 1:
            return parts[0]
        return list(zip(*reversed(parts), strict=True))

    def by_first_row(self) -> list[int]:
        """Return the positions of the present groups, in the order of their first rows."""
        first = np.empty(self.space, np.int64)
        first[self.codes[::-1]] = np.arange(len(self.codes) - 1, -1, -1)
        order: list[int] = np.argsort(first[self.present]).tolist()
        return order


class _Key:
    def __init__(self, key: Vector, family: str, length: int, most: int) -> None:
        self._family = family
        self._key = key
        self._distinct: Array | None = None
        values = full(key, length)
        low, count = int(key.low), int(key.high) - int(key.low) + 1
        if values.dtype == np.bool_:
            values, low, count = values.view(np.int8), 0, 2
        if count <= 4 * length:
            codes = values.astype(np.int64, copy=False)
            self._low = low
            if low:
                codes = codes - low
        else:
            self._low = 0
            self._distinct = distinct_integers(values)
            count = len(self._distinct)
            if count > most:
                raise Refused
            codes = np.searchsorted(self._distinct, values)
        self._null = -1
        if key.nulls is not None:
            self._null = count
            codes = np.where(key.nulls, count, codes)
            count += 1
        self.codes: Array = codes
        self.count = count

    def values(self, codes: Array) -> list[Any]:
        """Return the SQL values of some codes."""
        if self._null >= 0:
            places = np.flatnonzero(codes == self._null).tolist()
            codes = np.minimum(codes, self._null - 1)
        else:
            places = []
        numbers = codes + self._low if self._distinct is None else self._distinct[codes]
        if self._family == BOOLEAN:
            numbers = numbers.astype(np.bool_)
        found = values_of(numbers.tolist(), self._family, self._key.scale, self._key.words)
        for at in places:
            found[at] = None
        return found
