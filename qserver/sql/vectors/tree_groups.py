"""Groups rows of a vector tree: numbers the groups, and adds up the calls of each.

    keys      7 9 7 NULL      combined into one number for each row: value - least, times the count
    numbers   0 1 0 2         of the second key, and so on; groups are numbered by their first rows

Each batch is added up by itself. What comes out is a batch of fewer rows, and all of these are
added up again at the end: counts and sums by their sums, extremes by extremes.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from qserver.sql.vectors.operations import Refused
from qserver.values.vectors import INTEGER_MAX, Array, Vector

COMBINED_MAX: Final = 2**62
"""Keys whose combinations are more are numbered before they are combined further."""

_EXACT_FLOAT: Final = 2**53
_HALF: Final = 28
_LOWER: Final = (1 << _HALF) - 1


class Numbered(NamedTuple):
    """The group of each row, and the first row of each group."""

    groups: Array
    first: Array

    @property
    def number(self) -> int:
        """Of groups."""
        return len(self.first)


class TextKey:
    """Numbers the texts of a key as they come, the same for all batches."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def numbered(self, vector: Vector) -> Vector:
        numbers, words = self._numbers, vector.words
        if words is None:
            codes = [numbers.setdefault(text, len(numbers)) for text in vector.values.tolist()]
            values = np.array(codes, np.int64)
        else:
            table = [numbers.setdefault(word, len(numbers)) for word in words]
            values = np.array(table, np.int64)[vector.values]
        return Vector(values, vector.nulls, 0, max(0, len(numbers) - 1))

    def texts(self, codes: Array, nulls: Array | None) -> Vector:
        table = np.empty(len(self._numbers), np.object_)
        table[:] = list(self._numbers)
        return Vector(table[codes], nulls)

    @property
    def size(self) -> int:
        return 100 * len(self._numbers)


def numbered(keys: list[Vector], length: int) -> Numbered:
    """Number the groups of some rows; without keys all rows are one."""
    if not keys:
        return Numbered(np.zeros(length, np.int64), np.zeros(1, np.int64))
    combined, space = _places(keys[0])
    for key in keys[1:]:
        others, count = _places(key)
        if space * count >= COMBINED_MAX:
            combined, space = _ranked(combined)
        if space * count >= COMBINED_MAX:
            others, count = _ranked(others)
        combined, space = combined * count + others, space * count
    if space <= 4 * length + 1024:
        return _by_place(combined, space)
    return _by_order(combined)


def _places(key: Vector) -> tuple[Array, int]:
    values = key.values
    if values.dtype == np.bool_:
        values, low, high = values.view(np.int8), 0, 1
    else:
        low, high = int(key.low), int(key.high)
    if high - low >= COMBINED_MAX:
        values, high = _ranked(values)
        low = 0
    places = values.astype(np.int64) - low
    count = high - low + 1
    if key.nulls is not None:
        places[key.nulls] = count
        count += 1
    return places, count


def _ranked(values: Array) -> tuple[Array, int]:
    distinct, places = np.unique(values, return_inverse=True)
    return places, len(distinct)


def _by_place(combined: Array, space: int) -> Numbered:
    length = len(combined)
    first_of = np.full(space, length)
    first_of[combined[::-1]] = np.arange(length - 1, -1, -1)
    present = np.flatnonzero(first_of < length)
    first = first_of[present]
    order = np.argsort(first)
    number_of = np.empty(space, np.int64)
    number_of[present[order]] = np.arange(len(present))
    return Numbered(number_of[combined], first[order])


def _by_order(combined: Array) -> Numbered:
    order = np.argsort(combined)
    values = combined[order]
    is_new = np.empty(len(values), np.bool_)
    is_new[:1] = True
    np.not_equal(values[1:], values[:-1], out=is_new[1:])
    starts = np.flatnonzero(is_new)
    first = np.minimum.reduceat(order, starts)
    rank = np.argsort(first)
    number = np.empty(len(starts), np.int64)
    number[rank] = np.arange(len(starts))
    groups = np.empty(len(values), np.int64)
    groups[order] = number[np.cumsum(is_new) - 1]
    return Numbered(groups, first[rank])


# --- what is added up ----------------------------------------------------------------------------


def counts(found: Numbered, valid: Array | None) -> Array:
    groups = found.groups if valid is None else found.groups[valid]
    return np.bincount(groups, minlength=found.number)


def sums(found: Numbered, argument: Vector, valid: Array | None) -> Array:
    """Return exact sums of 64 bits."""
    groups, values = _valid(found, argument.values, valid)
    if not len(values):
        return np.zeros(found.number, np.int64)
    most = max(abs(int(argument.low)), abs(int(argument.high))) * len(values)
    if most < _EXACT_FLOAT:  # floats are exact so far
        return _summed(groups, values, found.number)
    if most > INTEGER_MAX:
        raise Refused
    values = values.astype(np.int64, copy=False)
    upper = _summed(groups, values >> _HALF, found.number)
    return (upper << _HALF) + _summed(groups, values & _LOWER, found.number)


def _summed(groups: Array, values: Array, count: int) -> Array:
    return np.bincount(groups, weights=values, minlength=count).astype(np.int64)


def extremes(found: Numbered, values: Array, valid: Array | None, least: bool) -> Array:
    """Return the least or greatest values; anything for a group without one."""
    groups, values = _valid(found, values, valid)
    values = values.astype(np.int64, copy=False)
    if not len(values):
        return np.ones(found.number, np.int64)  # also a date
    best = np.full(found.number, values.max() if least else values.min())
    (np.minimum if least else np.maximum).at(best, groups, values)
    return best


def _valid(found: Numbered, values: Any, valid: Array | None) -> tuple[Array, Array]:
    if valid is None:
        return found.groups, values
    return found.groups[valid], values[valid]
