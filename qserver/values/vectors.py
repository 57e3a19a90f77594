"""Vectors: a column's values as a numpy array, with its NULLs and its bounds.

    values   8 8 3 5 8       the smallest integer type that holds them, or float64
    nulls    . . . x .       None if there are none; a NULL has some value within the bounds
    low 3, high 8            bounds of `values`, NULLs included

The bounds prove what row by row must be tried: that a sum does not overflow, that a divisor is not
0, that a condition holds for all rows or for none. An integer vector computes in 64 bits, so
everything that its bounds allow must fit there.

A column that does not fit (a number beyond 64 bits, NaN, an infinity, text of many values) has no
vector; then rows are read one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from qserver.values import vector_families as families
from qserver.values.encoding import restored
from qserver.values.numerics import EXACT
from qserver.values.vector_families import ColumnVector

Array: TypeAlias = npt.NDArray[Any]

WORDS_MAX: Final = 256
"""A page of text with more distinct values has no vector."""

WORD_LENGTH_MAX: Final = 256
"""Nor has one with a longer text."""

TEXTS_LENGTH_MAX: Final = 1024 * 1024
"""Nor has a page whose texts are longer together a vector of texts as they are."""

TEXT_BYTES: Final = 57
"""What a text takes beside its characters: the object, and its place in an array."""

INTEGER_MAX: Final = 2**63 - 1
_EXACT_AS_FLOAT: Final = 2.0**50
"""Below this, the nearest integer of a rounded product is the product of what was rounded."""

_EPOCH: Final = datetime(1970, 1, 1)
_EPOCH_UTC: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_INTEGER_LIMITS: Final[tuple[tuple[type[np.signedinteger[Any]], int, int], ...]] = tuple(
    (kind, -(2 ** (8 * size - 1)), 2 ** (8 * size - 1) - 1)
    for kind, size in ((np.int8, 1), (np.int16, 2), (np.int32, 4), (np.int64, 8))
)


class Vector:
    """Values of one family; `values` may be one scalar that stands for all rows.

    A boolean vector is False where it is NULL. `words` are the distinct texts in
    order, if the values are their positions.
    """

    __slots__ = ("high", "low", "nulls", "scale", "values", "words")

    def __init__(
        self,
        values: Any,
        nulls: Array | None,
        low: Any = 0,
        high: Any = 0,
        scale: int = 0,
        words: list[str] | None = None,
    ) -> None:
        self.values = values
        self.nulls = nulls
        self.low = low
        self.high = high
        self.scale = scale
        self.words = words

    @property
    def array_bytes(self) -> int:
        """Bytes of its values, without what they refer to."""
        return int(self.values.nbytes)

    @property
    def size(self) -> int:
        """Bytes in memory."""
        nulls = 0 if self.nulls is None else self.nulls.nbytes
        words = 0 if self.words is None else sum([64 + len(word) for word in self.words])
        if self.values.dtype == np.object_:
            words = TEXT_BYTES * len(self.values) + sum(map(len, self.values.tolist()))
        return int(self.values.nbytes) + nulls + words

    def cut(self, start: int, stop: int) -> Vector:
        return self.chosen(slice(start, stop))

    def chosen(self, rows: Any) -> Vector:
        """Return the values of some rows, with the bounds of all."""
        nulls = None if self.nulls is None else self.nulls[rows]
        return Vector(self.values[rows], nulls, self.low, self.high, self.scale, self.words)

    def __repr__(self) -> str:
        return f"a vector from {self.low} to {self.high}"


def vector_of(column: list[Any], wanted: ColumnVector, words_max: int = WORDS_MAX) -> Vector | None:
    """Return the vector of a page's column; None if a value does not fit."""
    if wanted.family == families.TEXTS:
        return _texts(column)
    try:
        return _filled(column, None, wanted, words_max)
    except TypeError:  # a NULL is no number
        present = [value for value in column if value is not None]
        nulls = np.fromiter([value is None for value in column], np.bool_, len(column))
        other = present[0] if present else _ANY[wanted.family]
        whole = [other if value is None else value for value in column]
        return _filled(whole, nulls, wanted, words_max)


def vector_of_stored(column: list[Any], wanted: ColumnVector) -> Vector | None:
    """Return the same of values of stored rows: digits and days are read without what has them."""
    try:
        if wanted.family == families.NUMERIC:
            rough = np.fromiter(
                map(float, [value.data for value in column]), np.float64, len(column)
            )
            numbers = _digits(rough, wanted.scale)
            if numbers is not None:
                return integers(numbers, None, wanted.scale)
        elif wanted.family == families.DATE:
            days = np.fromiter(map(int, [value.data for value in column]), np.int64, len(column))
            return integers(days, None)
    except AttributeError:  # a NULL, or a row that is not stored
        pass
    return vector_of(restored(column), wanted)


def _filled(
    column: list[Any], nulls: Array | None, wanted: ColumnVector, words_max: int
) -> Vector | None:
    if wanted.family == families.TEXT:
        return _text(column, nulls, words_max)
    if wanted.family == families.FLOAT:
        floats = np.fromiter(column, np.float64, len(column))
        if nulls is None and np.isnan(floats.min()) and None in column:
            raise TypeError  # numpy takes None for NaN
        return _floats(floats, nulls)
    if wanted.family == families.BOOLEAN:
        truths = np.fromiter(column, np.int8, len(column)).astype(np.bool_)
        return Vector(truths if nulls is None else truths & ~nulls, nulls, False, True)
    try:
        numbers = _NUMBERS[wanted.family](column, wanted.scale)
    except OverflowError:
        return None
    if numbers is None:
        return None
    return integers(numbers, nulls, wanted.scale)


def distinct_integers(values: Array) -> Array:
    """Return the different values in order. `np.unique` hashes them first: fifty times as slow."""
    found = np.sort(values)
    is_new = np.ones(len(found), np.bool_)
    np.not_equal(found[1:], found[:-1], out=is_new[1:])
    return found[is_new]


def integers(values: Array, nulls: Array | None, scale: int = 0) -> Vector:
    """Return a vector of integers, in the smallest type that holds them."""
    low, high = int(values.min()), int(values.max())
    kind = smallest_integer_type(low, high)
    return Vector(values.astype(kind, copy=False), nulls, low, high, scale)


def smallest_integer_type(low: int, high: int) -> type[np.signedinteger[Any]]:
    """Return the smallest type that holds all integers from one to another."""
    for kind, least, most in _INTEGER_LIMITS:
        if least <= low and high <= most:
            return kind
    raise OverflowError("64 bits hold all integers of 64 bits")


def _floats(values: Array, nulls: Array | None) -> Vector | None:
    low, high = float(values.min()), float(values.max())
    if not (low - low == 0.0 and high - high == 0.0):  # NaN or infinite
        return None
    return Vector(values, nulls, low, high)


def _text(column: list[str], nulls: Array | None, words_max: int) -> Vector | None:
    distinct = set(column)
    if len(distinct) > words_max:
        return None
    words = sorted(distinct)  # TypeError: a NULL is among them
    if max(map(len, words)) > WORD_LENGTH_MAX:
        return None
    place = dict(zip(words, range(len(words)), strict=True))
    kind = np.uint8 if len(words) <= 256 else np.int32
    codes = np.fromiter(map(place.__getitem__, column), kind, len(column))
    return Vector(codes, nulls, 0, len(words) - 1, 0, words)


def _texts(column: list[str | None]) -> Vector | None:
    """Return texts as they are, an empty one for NULL."""
    nulls = None
    if None in column:
        nulls = np.fromiter([value is None for value in column], np.bool_, len(column))
    present = [value or "" for value in column]
    if sum(map(len, present)) > TEXTS_LENGTH_MAX:
        return None
    values = np.empty(len(present), np.object_)
    values[:] = present
    return Vector(values, nulls)


def _whole(column: list[Any], scale: int) -> Array:
    return np.fromiter(column, np.int64, len(column))


def _numeric(column: list[Decimal], scale: int) -> Array | None:
    """Return the digits of Decimals as integers: by floats while those are exact."""
    rough = np.fromiter(map(float, column), np.float64, len(column))
    if not np.isfinite(rough).all():
        return None
    numbers = _digits(rough, scale)
    if numbers is None:
        digits = [int(value.scaleb(scale, EXACT)) for value in column]
        numbers = np.fromiter(digits, np.int64, len(column))
    return numbers


def _digits(rough: Array, scale: int) -> Array | None:
    """Return the digits of the nearest floats as integers; None if those are not exact."""
    rough *= 10.0**scale
    with np.errstate(invalid="ignore"):
        is_exact = float(np.abs(rough).max()) < _EXACT_AS_FLOAT  # NaN is not
    return np.rint(rough).astype(np.int64) if is_exact else None


def _dates(column: list[date], scale: int) -> Array:
    return np.fromiter(map(date.toordinal, column), np.int64, len(column))


def _timestamps(epoch: datetime) -> Callable[[list[datetime], int], Array]:
    def fill(column: list[datetime], scale: int) -> Array:
        return np.fromiter(
            [(value - epoch) // _MICROSECOND for value in column], np.int64, len(column)
        )

    return fill


_NUMBERS: Final[dict[str, Callable[[list[Any], int], Array | None]]] = {
    families.INTEGER: _whole,
    families.NUMERIC: _numeric,
    families.DATE: _dates,
    families.TIMESTAMP: _timestamps(_EPOCH),
    families.ZONED: _timestamps(_EPOCH_UTC),
}

_ANY: Final[dict[str, Any]] = {
    families.INTEGER: 0,
    families.NUMERIC: Decimal(0),
    families.FLOAT: 0.0,
    families.BOOLEAN: False,
    families.DATE: date(2000, 1, 1),
    families.TIMESTAMP: _EPOCH,
    families.ZONED: _EPOCH_UTC,
    families.TEXT: "",
}
"""What stands for NULL in a column of nothing else."""


# --- back to values ------------------------------------------------------------------------------


def values_of(numbers: list[Any], family: str, scale: int, words: list[str] | None) -> list[Any]:
    """Return the SQL values that elements of a vector stand for."""
    if family == families.NUMERIC:
        return [decimal_of(number, scale) for number in numbers]
    if family == families.DATE:
        return list(map(date.fromordinal, numbers))
    if family == families.TIMESTAMP:
        return [_EPOCH + timedelta(microseconds=number) for number in numbers]
    if family == families.ZONED:
        return [_EPOCH_UTC + timedelta(microseconds=number) for number in numbers]
    if family == families.TEXT:
        assert words is not None
        return [words[number] for number in numbers]
    return numbers


def decimal_of(digits: int, scale: int) -> Decimal:
    return Decimal(digits).scaleb(-scale, EXACT)


def constant(value: Any, family: str) -> Vector | None:
    """Return a value of a statement as a vector; None if it does not fit, or is text.

    Text is compared with the words of a column: see `sql.vectors`.
    """
    if family == families.NUMERIC:
        if not value.is_finite():
            return None
        exponent = value.as_tuple().exponent
        if -exponent > families.SCALE_MAX:
            return None
        return _one(int(value.scaleb(-exponent, EXACT)), -exponent)
    if family == families.FLOAT:
        return Vector(value, None, value, value) if value - value == 0.0 else None
    if family == families.BOOLEAN:
        return Vector(value, None, value, value)
    if family == families.DATE:
        return _one(value.toordinal())
    if family == families.TIMESTAMP:
        return _one((value - _EPOCH) // _MICROSECOND)
    if family == families.ZONED:
        return _one((value - _EPOCH_UTC) // _MICROSECOND)
    return _one(value)


def _one(number: int, scale: int = 0) -> Vector | None:
    if not -INTEGER_MAX <= number <= INTEGER_MAX:
        return None
    return Vector(number, None, number, number, scale)
