"""Hash joins over vectors: finds the rows of the right side that match each row of a chunk.

    right keys   7 9 7          places of the keys: value - least, for integers of a narrow range;
    rows         0 1 2          among the sorted distinct ones for others; of words for text

    row_of    [0 . 1]           where keys are unique: the row of each place
    order     [0 2 1]           otherwise the rows by place, each from starts[place], counts[place]

The last place means "no such key", and the last row is a row of NULLs for it. Several keys combine
into one: the place of the first times the number of places of the second, plus its place. NULL has
no place. A row meets its matches in the order of the right side, as in row code.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final, Protocol

import numpy as np

from qserver.functions.context import Context
from qserver.sql.vectors.batches import concatenated
from qserver.sql.vectors.builds import Build, Taken
from qserver.sql.vectors.frames import Frame, JoinedColumns, computed
from qserver.sql.vectors.operations import Refused, full, scaled, shortened
from qserver.sql.vectors.plans import ROWS_OF_STEP, VALUES_FILLED_OF_STEP, JoinPlan
from qserver.sql.vectors.program import JoinedColumn
from qserver.values.vector_families import BOOLEAN, TEXT
from qserver.values.vectors import Array, Vector, vector_of

ROWS_MAX: Final = 2**20
"""A right side with more rows is joined by row code: sorting its keys would take too long."""

ROWS_JOINED_MAX: Final = 2**18
"""A chunk that meets more rows is joined row by row."""

SLOTS_OF_KEY: Final = 4
"""Slots of the hash table for each key, or up to twice as many: few keys share one."""

WORDS_MAX: Final = 2**16
"""Distinct texts of a column of the right side."""


class Lookup:
    """The right side of a join as vectors."""

    def __init__(self, columns: JoinedColumns, keys: list[Vector], length: int) -> None:
        self.columns = columns
        self._scales = [key.scale for key in keys]
        self._table = _Table(keys, length)

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


# --- places of keys ------------------------------------------------------------------------------


class _Places(Protocol):
    count: int
    """The number of places; also the place of a key that is not there."""
    rows: Array
    """The places of the rows of the right side."""
    size: int
    """Bytes in memory."""

    def of(self, key: Vector, length: int) -> Array: ...


class _Numbers:
    """Places of integers: value - least in a narrow range, else from a hash table."""

    def __init__(self, values: Array) -> None:
        values = values.astype(np.int64, copy=False)
        self._low, self._high = int(values.min()), int(values.max())
        self._hashed: _Hashed | None = None
        self.count = self._high - self._low + 1
        if self.count <= 8 * len(values) + 2**16:
            self.rows: Array = values - self._low
        else:
            distinct, self.rows = np.unique(values, return_inverse=True)
            self.count = len(distinct)
            self._hashed = _Hashed(distinct)
        self.size: int = self.rows.nbytes + (0 if self._hashed is None else self._hashed.size)

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


class _Hashed:
    """A hash table with open addressing, in which all look-ups proceed together."""

    def __init__(self, distinct: Array) -> None:
        self._count = len(distinct)
        self._distinct = np.append(distinct, 0)
        bits = (SLOTS_OF_KEY * self._count).bit_length()
        self._shift, self._mask = np.uint64(64 - bits), (1 << bits) - 1
        self._table: Array = np.full(1 << bits, self._count, np.int32)
        self.size = self._table.nbytes + self._distinct.nbytes
        waiting = np.arange(self._count)
        slots = self._slots(distinct)
        while len(waiting):
            free = self._table[slots] == self._count
            self._table[slots[free]] = waiting[free]
            left = self._table[slots] != waiting
            waiting, slots = waiting[left], (slots[left] + 1) & self._mask

    def _slots(self, values: Array) -> Array:
        found: Array = (values.view(np.uint64) * _SPREAD) >> self._shift
        return found.astype(np.int64)

    def places(self, values: Array) -> Array:
        """Return the place of each value among the distinct ones; their number if it is missing."""
        slots = self._slots(values)
        places = self._table[slots]
        others = np.flatnonzero((self._distinct[places] != values) & (places < self._count))
        slots = slots[others]
        while len(others):
            slots = (slots + 1) & self._mask
            found = self._table[slots]
            places[others] = found
            left = (self._distinct[found] != values[others]) & (found < self._count)
            others, slots = others[left], slots[left]
        return places.astype(np.int64)


_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)
"""Fibonacci hashing: the upper bits of a product with it depend on all bits of a value."""


class _Words:
    """Places of texts."""

    def __init__(self, words: list[str], rows: Array) -> None:
        self.count = len(words)
        self.rows = rows.astype(np.int64)
        self.size: int = self.rows.nbytes  # the words are those of the column
        self._place = dict(zip(words, range(len(words)), strict=True))

    def of(self, key: Vector, length: int) -> Array:
        assert key.words is not None
        places = [self._place.get(word, self.count) for word in key.words]
        found: Array = np.array(places, np.int64)[key.values]
        return found


class _Table:
    """The rows of the right side by the places of their keys."""

    def __init__(self, keys: list[Vector], length: int) -> None:
        self.length = length
        """Also the number of the row of NULLs, behind all others."""
        self.count = 0
        rows = _rows_without_null(keys, length)
        self._keys: list[_Places] = []
        self._both: list[_Numbers] = []
        places = rows
        if len(rows):
            self._keys = [_places(key, rows) for key in keys]
            self.count, places = self._keys[0].count, self._keys[0].rows
            for other in self._keys[1:]:
                if self.count * other.count >= 2**62:
                    raise Refused
                both = _Numbers(places * other.count + other.rows)
                self._both.append(both)
                self.count, places = both.count, both.rows
        self.counts: Array = np.bincount(places, minlength=self.count + 1)
        self.row_of: Array | None = None
        if self.counts.max(initial=0) <= 1:
            self.row_of = np.full(self.count + 1, length)
            self.row_of[places] = rows
        else:
            self.order: Array = np.append(rows[stable_order(places, self.count)], length)
            starts = np.cumsum(self.counts) - self.counts
            self.starts: Array = np.where(self.counts == 0, len(rows), starts)

    @property
    def size(self) -> int:
        """Bytes in memory."""
        arrays = [self.counts]
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


def stable_order(places: Array, count: int) -> Array:
    """Return the order of numbers below `count`: numpy sorts 16 bits by counting them."""
    order: Array = np.argsort((places & 0xFFFF).astype(np.uint16), kind="stable")
    shift = 16
    while count > 1 << shift:
        upper = ((places[order] >> shift) & 0xFFFF).astype(np.uint16)
        order = order[np.argsort(upper, kind="stable")]
        shift += 16
    return order


def _places(key: Vector, rows: Array) -> _Places:
    values = key.values if len(rows) == len(key.values) else key.values[rows]
    return _Numbers(values) if key.words is None else _Words(key.words, values)


def _rows_without_null(keys: list[Vector], length: int) -> Array:
    """Return the rows without a NULL key; a row of NULLs has one."""
    present = np.ones(length, np.bool_)
    for key in keys:
        if key.nulls is not None:
            present &= ~key.nulls[:length]
    return np.flatnonzero(present)


class _Matches:
    """The rows of the right side that match some rows."""

    def __init__(self, table: _Table, places: Array) -> None:
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
    try:
        lookup = Lookup(whole, [whole[key] for key in plan.right_keys], length)
    except Refused:
        return None
    context.hold_bytes(lookup.size)
    context.work += length
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
