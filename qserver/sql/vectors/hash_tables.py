"""A hash table of integers over numpy: numbers values as they are added, some at a time.

    values    [70 90 | 70 50]       two pieces that were added
    slots     [. 1 . 0 3 .]         open addressing: a slot holds the number of a value
    numbers   [ 0  1 |  0  3]       of the first of equal values; the second 70 has none of its own

All look-ups of a call proceed together, each to its next slot until nothing is left to compare. No
step sorts, and none is longer than the piece that it is given, so others may run in between.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

import numpy as np

from qserver.values.vectors import Array

SLOTS_OF_VALUE: Final = 2
"""Slots for each value, or up to twice as many: few values share one."""

SLOTS_FOR_MISSING: Final = 4
"""The same where most values that are looked up are not there: each goes on to a free slot."""

VALUES_AT_ONCE: Final = 2**15
"""Values that are added between two yields."""

_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)
"""Fibonacci hashing: the upper bits of a product with it depend on all bits of a value."""


class HashTable:
    """Has room for `most` values; that is also the number of a value that is not there."""

    def __init__(self, most: int, slots: int = SLOTS_OF_VALUE) -> None:
        self.most = most
        self.length = 0
        """The values that were added; equal ones count each time."""
        bits = (slots * max(1, most)).bit_length()
        self._shift, self._mask = np.uint64(64 - bits), (1 << bits) - 1
        self._slots: Array = np.full(1 << bits, most, np.int32)
        self._values: Array = np.zeros(most + 1, np.int64)

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return int(self._slots.nbytes + self._values.nbytes)

    @property
    def values(self) -> Array:
        """The values by their numbers."""
        found: Array = self._values[: self.length]
        return found

    def add(self, values: Array) -> Array:
        """Return the number of each value: where it is among all that were added."""
        start, stop = self.length, self.length + len(values)
        assert stop <= self.most, "a table has room for what is added"
        self._values[start:stop] = values
        self.length = stop
        numbers = np.arange(start, stop, dtype=np.int32)
        slots = self._slots_of(values)
        found = self._claimed(slots, numbers)
        others = np.flatnonzero(self._values[found] != values)
        slots = slots[others]
        while len(others):
            slots = (slots + 1) & self._mask
            there = self._claimed(slots, numbers[others])
            found[others] = there
            left = self._values[there] != values[others]
            others, slots = others[left], slots[left]
        return found.astype(np.int64)

    def _claimed(self, slots: Array, numbers: Array) -> Array:
        """Return what is in some slots, after the numbers went into those that were free."""
        found: Array = self._slots[slots]
        free = np.flatnonzero(found == self.most)
        if len(free):
            claimed = slots[free]
            self._slots[claimed] = numbers[free]
            found[free] = self._slots[claimed]
        return found

    def places(self, values: Array) -> Array:
        """Return the number of each value; `most` if it is not there."""
        slots = self._slots_of(values)
        places = self._slots[slots]
        others = np.flatnonzero((self._values[places] != values) & (places < self.most))
        slots = slots[others]
        while len(others):
            slots = (slots + 1) & self._mask
            found = self._slots[slots]
            places[others] = found
            left = (self._values[found] != values[others]) & (found < self.most)
            others, slots = others[left], slots[left]
        return places.astype(np.int64)

    def _slots_of(self, values: Array) -> Array:
        found: Array = (values.view(np.uint64) * _SPREAD) >> self._shift
        return found.view(np.int64)

    def added(self, values: Array) -> Generator[None, None, Array]:
        """Add values in pieces, and return their numbers; others may run after each."""
        parts = []
        for start in range(0, len(values), VALUES_AT_ONCE):
            parts.append(self.add(values[start : start + VALUES_AT_ONCE]))
            yield None
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def grown(self, most: int) -> Generator[None, None, HashTable]:
        """Return a table with more room and the same numbers; its values must differ."""
        larger = HashTable(most)
        yield from larger.added(self.values)
        return larger
