"""All groups of a part of a vector tree so far: what batches add up to is folded into them.

    batch ──► Added ─┐
    batch ──► Added ─┴─► merged ──► numbers of the groups ──► keys, counts, sums, extremes
                                     (hash tables)            one array each, by number

A few batches wait until they are merged. Where the groups are few, that is at the end, once. Where
they are many, they are folded into arrays that grow, so memory is that of the groups, however many
rows there are, and no step is longer than a few batches. The number 0 is that of a key that is
NULL; where there are several keys, or none is NULL, no group has it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

import numpy as np

from qserver.sql.vectors.hash_tables import HashTable
from qserver.sql.vectors.operations import Mixed, Refused
from qserver.sql.vectors.tree_groups import Numbered, extremes, numbered, sums
from qserver.sql.vectors.tree_rows import together
from qserver.sql.vectors.trees import GroupCall
from qserver.values.vectors import INTEGER_MAX, Array, Vector, distinct_integers, integers

WAITING_MAX: Final = 2**17
"""Groups of batches that wait; more are merged and folded. To number so many takes ten
milliseconds, and less than to look them up."""

FOLDED_AT_ONCE_MIN: Final = 2**14
"""Groups that wait later, since merging those of several batches does not make them fewer."""

GROUPS_FOLDED_MIN: Final = 2**16
"""The groups that there is room for, when the first are folded."""

GROWTH: Final = 2
GROUPS_MAX: Final = 2**30
"""A number of a group fits into half of an integer. Memory ends before."""


class Added:
    """Groups of some rows: their keys, and for each call the number of values and the result."""

    def __init__(self, keys: list[Vector], counts: list[Array], results: list[Any]) -> None:
        self.keys = keys
        self.counts = counts
        """Of the rows, then of the values of each call."""
        self.results = results
        """Vectors; None for a count."""

    @property
    def length(self) -> int:
        return len(self.counts[0])

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return 8 * self.length * (len(self.keys) + len(self.counts) + len(self.results))


def merged(parts: list[Added], calls: tuple[GroupCall, ...]) -> Generator[None, None, Added]:
    """Add up the groups of several batches; others may run after each step."""
    if len(parts) == 1:
        return parts[0]
    keys = [together([part.keys[at] for part in parts]) for at in range(len(parts[0].keys))]
    yield None
    found = numbered(keys, sum([part.length for part in parts]))
    counts = []
    for at in range(len(calls) + 1):
        yield None
        values = np.concatenate([part.counts[at] for part in parts])
        counts.append(sums(found, integers(values, None), None))
    results = []
    for number, call in enumerate(calls):
        yield None
        results.append(_merged(number, call, found, parts))
    return Added([key.chosen(found.first) for key in keys], counts, results)


def _merged(number: int, call: GroupCall, found: Numbered, parts: list[Added]) -> Vector | None:
    if call.name == "count":
        return None
    partials: list[Vector] = [part.results[number] for part in parts]
    scale = partials[0].scale
    if any(partial.scale != scale for partial in partials):
        raise Refused
    values = np.concatenate([partial.values for partial in partials])
    present = np.concatenate([part.counts[number + 1] for part in parts]) > 0
    valid = None if present.all() else present
    if call.name in ("min", "max"):
        return Vector(extremes(found, values, valid, call.name == "min"), None, 0, 0, scale)
    total = sums(found, integers(values, None), valid)
    if not call.is_mixed:
        return Vector(total, None, 0, 0, scale)
    made = Mixed(total, None, 0, 0, scale)
    scales = np.concatenate([partial.scales for partial in partials if isinstance(partial, Mixed)])
    made.scales = extremes(found, scales, valid, least=False)
    return made


# --- numbers of groups ---------------------------------------------------------------------------


class _KeyNumbers:
    """Numbers the values of a key from 1, as they come; NULL is 0."""

    def __init__(self) -> None:
        self._table = HashTable(0)

    @property
    def count(self) -> int:
        return 1 + self._table.length

    @property
    def size(self) -> int:
        return self._table.size

    def of(self, values: Array, nulls: Array | None) -> Generator[None, None, Array]:
        if nulls is not None:
            found = np.zeros(len(values), np.int64)
            present = np.flatnonzero(~nulls)
            found[present] = yield from self.of(values[present], None)
            return found
        table = self._table
        places = table.places(values)
        missing = np.flatnonzero(places == table.most)
        if not len(missing):
            return 1 + places
        yield None
        new = distinct_integers(values[missing])
        if table.length + len(new) > table.most:
            most = max(GROUPS_FOLDED_MIN, GROWTH * (table.length + len(new)))
            if most >= GROUPS_MAX:
                raise Refused
            table = self._table = yield from table.grown(most)
        yield from table.added(new)
        places[missing] = table.places(values[missing])
        return 1 + places


class _GroupNumbers:
    """Numbers groups by their keys: two numbers are one integer, which has a number of its own."""

    def __init__(self, keys: int) -> None:
        self._keys = [_KeyNumbers() for _ in range(keys)]
        self._both = [_KeyNumbers() for _ in range(1, keys)]

    @property
    def count(self) -> int:
        return (self._both or self._keys)[-1].count if self._keys else 1

    @property
    def size(self) -> int:
        return sum([each.size for each in (*self._keys, *self._both)])

    def of(self, keys: list[Vector], length: int) -> Generator[None, None, Array]:
        found = np.zeros(length, np.int64)
        for at, (key, own) in enumerate(zip(keys, self._keys, strict=True)):
            numbers = yield from own.of(key.values.astype(np.int64, copy=False), key.nulls)
            if at:
                numbers = yield from self._both[at - 1].of((found << 32) | numbers, None)
            found = numbers
        return found


# --- groups that grow ----------------------------------------------------------------------------


class _Key:
    """The values of a key, by the number of the group."""

    def __init__(self, first: Vector) -> None:
        self._values: Array = np.zeros(0, first.values.dtype)
        self._nulls: Array = np.zeros(0, np.bool_)
        self._low, self._high = first.low, first.high
        self._scale = first.scale

    def put(self, numbers: Array, room: int, key: Vector) -> None:
        if key.scale != self._scale:
            raise Refused
        kind = np.promote_types(self._values.dtype, key.values.dtype)
        self._values = _with_room(self._values.astype(kind, copy=False), room)
        self._nulls = _with_room(self._nulls, room)
        self._values[numbers] = key.values
        if key.nulls is not None:
            self._nulls[numbers] = key.nulls
        self._low, self._high = min(self._low, key.low), max(self._high, key.high)

    @property
    def size(self) -> int:
        return int(self._values.nbytes + self._nulls.nbytes)

    def vector(self, rows: slice) -> Vector:
        nulls = self._nulls[rows]
        values = self._values[rows]
        return Vector(values, nulls if nulls.any() else None, self._low, self._high, self._scale)


class _Result:
    """The results of a call, by the number of the group."""

    def __init__(self, call: GroupCall, first: Vector) -> None:
        self._call = call
        self._scale = first.scale
        self._values: Array = np.zeros(0, np.int64)
        self._scales: Array = np.zeros(0, np.int64)
        self._most = 0
        """No sum is beyond that."""

    def put(self, numbers: Array, room: int, result: Vector, is_first: Array, valid: Array) -> None:
        """`is_first`: where the groups had no value yet; `valid`: where they have one now."""
        if result.scale != self._scale:
            raise Refused
        self._values = _with_room(self._values, room)
        numbers, given, is_first = numbers[valid], result.values[valid], is_first[valid]
        if not len(numbers):
            return
        known = self._values[numbers]
        if self._call.name in ("min", "max"):
            best = np.minimum if self._call.name == "min" else np.maximum
            self._values[numbers] = np.where(is_first, given, best(known, given))
            return
        more = _most(given)
        if self._most + more > INTEGER_MAX:
            self._most = _most(self._values)
        self._most += more
        if self._most > INTEGER_MAX:
            raise Refused
        self._values[numbers] = known + given
        if isinstance(result, Mixed):
            self._scales = _with_room(self._scales, room)
            self._scales[numbers] = np.maximum(self._scales[numbers], result.scales[valid])

    @property
    def size(self) -> int:
        return int(self._values.nbytes + self._scales.nbytes)

    def vector(self, rows: slice) -> Vector:
        values = self._values[rows]
        if not self._call.is_mixed:
            return Vector(values, None, 0, 0, self._scale)
        made = Mixed(values, None, 0, 0, self._scale)
        made.scales = _with_room(self._scales, len(self._values))[rows]
        return made


def _most(values: Array) -> int:
    return max(-int(values.min()), int(values.max()), 0)


def _with_room(values: Array, room: int) -> Array:
    """Return values with zeros behind them, if there are fewer than `room`."""
    if len(values) >= room:
        return values
    found = np.zeros(max(room, 2 * len(values)), values.dtype)
    found[: len(values)] = values
    return found


class Folded:
    """The groups of all batches so far."""

    def __init__(self, keys: int, calls: tuple[GroupCall, ...]) -> None:
        self._calls = calls
        self._waiting: list[Added] = []
        self._waiting_rows = 0
        self._waiting_size = 0
        self._numbers = _GroupNumbers(keys)
        self._has_null = not keys
        self._keys: list[_Key] | None = None
        """None until groups are folded."""
        self._counts: list[Array] = []
        self._results: list[_Result | None] = []

    def add(self, added: Added) -> None:
        self._waiting.append(added)
        self._waiting_rows += added.length
        self._waiting_size += added.size

    @property
    def size(self) -> int:
        """Bytes in memory."""
        if self._keys is None:
            return self._waiting_size
        found = self._waiting_size + self._numbers.size
        found += sum([key.size for key in self._keys])
        found += sum([each.nbytes for each in self._counts])
        return found + sum([each.size for each in self._results if each is not None])

    def in_time(self) -> Generator[None, None, None]:
        """Fold what waits, if that is much."""
        if self._waiting_rows > (WAITING_MAX if self._keys is None else FOLDED_AT_ONCE_MIN):
            yield from self.fold()

    def fold(self) -> Generator[None, None, None]:
        """Fold all that waits; others may run after each step."""
        if not self._waiting:
            return
        added = yield from merged(self._waiting, self._calls)
        self._waiting, self._waiting_rows, self._waiting_size = [], 0, 0
        yield None
        numbers = yield from self._numbers.of(added.keys, added.length)
        yield None
        self._put(added, numbers, self._numbers.count)

    def _put(self, added: Added, numbers: Array, room: int) -> None:
        if self._keys is None:
            self._keys = [_Key(key) for key in added.keys]
            self._counts = [np.zeros(0, np.int64) for _ in added.counts]
            self._results = [
                None if result is None else _Result(call, result)
                for call, result in zip(self._calls, added.results, strict=True)
            ]
        for known, key in zip(self._keys, added.keys, strict=True):
            known.put(numbers, room, key)
        if len(added.keys) == 1 and added.keys[0].nulls is not None:
            self._has_null = self._has_null or bool(added.keys[0].nulls.any())
        self._counts = [_with_room(counts, room) for counts in self._counts]
        firsts = [counts[numbers] == 0 for counts in self._counts[1:]]
        for counts, more in zip(self._counts, added.counts, strict=True):
            counts[numbers] += more
        for call, (mine, result) in enumerate(zip(self._results, added.results, strict=True)):
            if mine is not None:
                mine.put(numbers, room, result, firsts[call], added.counts[call + 1] > 0)

    def whole(self) -> Generator[None, None, Added | None]:
        """Return all groups; None if there is none."""
        if self._keys is None:
            if not self._waiting:
                return None
            return (yield from merged(self._waiting, self._calls))
        yield from self.fold()
        rows = slice(self._first, self._numbers.count)
        keys = [key.vector(rows) for key in self._keys]
        counts = [each[rows] for each in self._counts]
        results = [None if each is None else each.vector(rows) for each in self._results]
        return Added(keys, counts, results)

    @property
    def _first(self) -> int:
        return 0 if self._has_null else 1

    def places(self, keys: list[Vector], length: int) -> Generator[None, None, Array]:
        """Return where groups that have been folded are among all."""
        numbers = yield from self._numbers.of(keys, length)
        return numbers - self._first
