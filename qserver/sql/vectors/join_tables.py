"""The rows of the right side of a join by the places of their keys.

    right keys   7 9 7          places of the keys: value - least, for integers of a narrow range;
    rows         0 1 2          their numbers in a hash table for others; of words for text

    row_of    [0 . 1]           where keys are unique: the row of each place
    order     [0 2 1]           otherwise the rows by place, each from starts[place], counts[place]

The last place means "no such key", and the last row is a row of NULLs for it. Several keys combine
into one: the place of the first times the number of places of the second, plus its place. NULL has
no place. A table is filled in steps: what reaches all over it is done for a part of the rows at a
time, and what goes straight through them for all.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Final, Protocol

import numpy as np

from qserver.sql.vectors.hash_tables import SLOTS_FOR_MISSING, HashTable
from qserver.sql.vectors.operations import Refused, full
from qserver.values.vectors import Array, Vector

ROWS_AT_ONCE: Final = 2**17
"""Rows whose places are counted or put in order between two yields."""

ROW_NUMBER: Final = np.int32
"""What numbers of rows and of places take: there are fewer than 2**31."""

ROWS_SPREAD_MAX: Final = 2**20
"""So many rows may have keys of a range eight times as wide; what more there are need their own."""


class _Places(Protocol):
    count: int
    """The number of places; also the place of a key that is not there."""
    size: int
    """Bytes in memory."""

    def made(self, values: Array) -> Generator[None, None, Array]:
        """Make the places of some values, and return that of each."""

    def of(self, key: Vector, length: int) -> Array: ...


class _Numbers:
    """Places of integers: value - least in a narrow range, else from a hash table."""

    count = size = 0
    _low = _high = 0
    _hashed: HashTable | None = None

    def made(self, values: Array) -> Generator[None, None, Array]:
        values = values.astype(np.int64, copy=False)
        yield None
        self._low, self._high = int(values.min()), int(values.max())
        self.count = self._high - self._low + 1
        if self.count <= 8 * min(len(values), ROWS_SPREAD_MAX) + len(values) + 2**16:
            yield None
            return values - self._low
        self.count = len(values)
        hashed = self._hashed = HashTable(len(values), SLOTS_FOR_MISSING)
        self.size = hashed.size
        yield None
        return (yield from hashed.added(values))

    def of(self, key: Vector, length: int) -> Array:
        values = full(key, length)
        return self.of_values(values.astype(np.int64, copy=False), key.low, key.high)

    def of_values(self, values: Array, low: int, high: int) -> Array:
        if self._hashed is not None:
            return self._hashed.places(values)
        places = values - self._low
        if low < self._low or high > self._high:  # a difference that overflows is not used
            there = (values >= self._low) & (values <= self._high)
            places = np.where(there, places, self.count)
        return places


class _Words:
    """Places of texts."""

    size = 0  # the words are those of the column

    def __init__(self, words: list[str]) -> None:
        self.count = len(words)
        self._place = dict(zip(words, range(len(words)), strict=True))

    def made(self, values: Array) -> Generator[None, None, Array]:
        yield None
        return values.astype(np.int64)

    def of(self, key: Vector, length: int) -> Array:
        assert key.words is not None
        places = [self._place.get(word, self.count) for word in key.words]
        found: Array = np.array(places, np.int64)[key.values]
        return found


class JoinTable:
    """`counts_only`: nobody asks which rows have a key, only whether there are some."""

    def __init__(self, keys: list[Vector], length: int, counts_only: bool = False) -> None:
        self.length = length
        """Also the number of the row of NULLs, behind all others."""
        self.count = 0
        self.row_of: Array | None = None
        self._counts_only = counts_only
        self._given = keys
        self._keys: list[_Places] = []
        self._both: list[_Numbers] = []

    def filled(self) -> Generator[None, None, None]:
        """Fill the table; others may run after each step."""
        rows = _rows_without_null(self._given, self.length)
        yield None
        places = rows
        if len(rows):
            found = yield from self._places_of(rows)
            yield None
            places = found.astype(ROW_NUMBER)
            del found
        self._given = []
        self.counts: Array = np.zeros(self.count + 1, ROW_NUMBER)
        for some in _parts(len(places)):
            np.add.at(self.counts, places[some], ROW_NUMBER(1))
            yield None
        if self._counts_only:
            return
        if self.counts.max(initial=0) <= 1:
            row_of = yield from _filled(self.count + 1, self.length)
            for some in _parts(len(places)):
                row_of[places[some]] = rows[some]
                yield None
            self.row_of = row_of
            return
        starts = np.cumsum(self.counts, dtype=ROW_NUMBER)
        yield None
        starts -= self.counts
        yield None
        self.order: Array = yield from _filled(len(rows) + 1, self.length)
        yield from self._put(rows, places, starts.copy())
        starts[self.counts == 0] = len(rows)
        self.starts: Array = starts

    def _put(self, rows: Array, places: Array, free: Array) -> Generator[None, None, None]:
        """Put the rows in the order of their places; `free` is where the next of a place goes."""
        for some in _parts(len(places)):
            yield None
            by_place = yield from stable_order(places[some], self.count)
            ordered = places[some][by_place]
            begins = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
            lengths = np.diff(begins, append=len(ordered))
            before = np.repeat(begins - free[ordered[begins]], lengths)
            self.order[np.arange(len(ordered)) - before] = rows[some][by_place]
            free[ordered[begins]] += lengths

    def _places_of(self, rows: Array) -> Generator[None, None, Array]:
        """Return the places of rows, all of whose keys are combined into one."""
        places = rows
        for number, key in enumerate(self._given):
            made = _Numbers() if key.words is None else _Words(key.words)
            self._keys.append(made)
            others = yield from made.made(_chosen(key, rows))
            if not number:
                self.count, places = made.count, others
                continue
            if self.count * made.count >= 2**62:
                raise Refused
            both = _Numbers()
            self._both.append(both)
            yield None
            places = yield from both.made(places * made.count + others)
            self.count = both.count
        return places

    @property
    def size(self) -> int:
        """Bytes in memory."""
        arrays = [self.counts]
        if not self._counts_only:
            arrays += [self.order, self.starts] if self.row_of is None else [self.row_of]
        places = sum([each.size for each in (*self._keys, *self._both)])
        return places + sum([array.nbytes for array in arrays])

    def places(self, keys: list[Vector], length: int) -> Array:
        """Return the place of each row of the left side; `count` if it has no match."""
        if not self._keys:
            return np.zeros(length, np.int64)
        places, count = self._keys[0].of(keys[0], length), self._keys[0].count
        for key, other, both in zip(keys[1:], self._keys[1:], self._both, strict=True):
            seconds = other.of(key, length)
            pairs = places * other.count + seconds
            pairs[(places == count) | (seconds == other.count)] = -1
            places, count = both.of_values(pairs, -1, 2**62), both.count
        for key in keys:
            if key.nulls is not None:
                places = np.where(key.nulls, count, places)
        return places


def _parts(length: int) -> Iterator[slice]:
    for start in range(0, length, ROWS_AT_ONCE):
        yield slice(start, min(start + ROWS_AT_ONCE, length))


def _filled(length: int, value: int) -> Generator[None, None, Array]:
    """Return an array of equal numbers; memory that was not used before costs more than they do."""
    found = np.empty(length, ROW_NUMBER)
    for some in _parts(length):
        found[some] = value
        yield None
    return found


def stable_order(places: Array, count: int) -> Generator[None, None, Array]:
    """Return the order of numbers below `count`: numpy sorts 16 bits by counting them."""
    order: Array = np.argsort((places & 0xFFFF).astype(np.uint16), kind="stable")
    shift = 16
    while count > 1 << shift:
        yield None
        upper = ((places[order] >> shift) & 0xFFFF).astype(np.uint16)
        yield None
        order = order[np.argsort(upper, kind="stable")]
        shift += 16
    return order


def _chosen(key: Vector, rows: Array) -> Array:
    values: Array = key.values
    return values if len(rows) == len(values) else values[rows]


def _rows_without_null(keys: list[Vector], length: int) -> Array:
    """Return the rows without a NULL key; a row of NULLs has one."""
    with_nulls = [key.nulls for key in keys if key.nulls is not None]
    if not with_nulls:
        return np.arange(length, dtype=ROW_NUMBER)
    present = np.ones(length, np.bool_)
    for nulls in with_nulls:
        present &= ~nulls[:length]
    return np.flatnonzero(present).astype(ROW_NUMBER)
