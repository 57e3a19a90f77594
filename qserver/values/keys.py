"""Keys: tuples that compare natively in SQL order.

A key is a plain tuple, so `bisect`, `<` and `sorted` work on it at C speed, without a comparison
function. Elements are the values themselves, except three that Python cannot order and those of
columns that sort downward:

    every ordinary value  <  NAN_KEY  <  NULL_KEY  <  TOP          (singletons of `Above`)
    Descending(NULL_KEY)  <  Descending(9)  <  Descending(1)       (DESC: NULLs come first)

No stored key holds TOP; it closes a range: keys with the prefix `p` are in
`p <= key < p + (TOP,)`.

Invariant: all elements in one position come from one column, hence are of one type (or `Above`),
and are canonical: two elements are equal exactly when they encode equally.

Text compares by code point, which is the order of its UTF-8 bytes (PostgreSQL's collation "C").

The element of an INTERVAL is its normal form. Other values that are equal without being the same,
or that Python orders differently, have elements of another type, which must not be made canonical
twice:

    TIMETZ      12:00+02                 (microseconds in UTC, seconds west of Greenwich)
    JSONB       1.0, 1.00                its order key, a tuple
    array       {1,NULL}, {{1},{2}}      (elements, (number of dimensions, their lengths))
    record      (1,NULL)                 its elements
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from functools import partial
from operator import itemgetter
from typing import Any, Final, final

from qserver.errors import DatatypeMismatch
from qserver.values.arrays import dimensions, flat
from qserver.values.interval import Interval
from qserver.values.jsonb import Jsonb
from qserver.values.records import Record
from qserver.values.zoned_time import ZonedTime

Row = tuple[Any, ...]
Key = tuple[Any, ...]
Bound = Key | None
"""An end of a range of keys: `low <= key < high`; None: it is open there."""

Predicate = Callable[[Row], Any]
KeyFunction = Callable[[Row], Key]
KeysFunction = Callable[[Iterable[Row]], Iterable[Key]]


@final
class Above:
    """An element greater than every ordinary value; among themselves they sort by rank.

    Ordinary values return `NotImplemented` for an `Above`, so Python asks the `Above` instead:
    `5 < NULL_KEY` becomes `NULL_KEY > 5`.
    """

    __slots__ = ("name", "rank")

    def __init__(self, name: str, rank: int) -> None:
        self.name = name
        self.rank = rank

    def __lt__(self, other: object) -> bool:
        return isinstance(other, Above) and self.rank < other.rank

    def __le__(self, other: object) -> bool:
        return isinstance(other, Above) and self.rank <= other.rank

    def __gt__(self, other: object) -> bool:
        return not isinstance(other, Above) or self.rank > other.rank

    def __ge__(self, other: object) -> bool:
        return not isinstance(other, Above) or self.rank >= other.rank

    # Equality is identity; the hash must not depend on the object's address.
    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return 0x5EED + self.rank

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        """Copy and unpickle as the singleton."""
        return self.name


NAN_KEY: Final = Above("NAN_KEY", 1)
NULL_KEY: Final = Above("NULL_KEY", 2)
TOP: Final = Above("TOP", 3)

ABOVE_BY_RANK: Final = {element.rank: element for element in (NAN_KEY, NULL_KEY, TOP)}


@final
class Descending:
    """An element of a DESC column: reverses the order of the element that it holds."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    # Of `Above`, only TOP can be in the same position, and it compares itself with this.
    def __lt__(self, other: object) -> Any:
        return other.value < self.value if isinstance(other, Descending) else NotImplemented

    def __le__(self, other: object) -> Any:
        return other.value <= self.value if isinstance(other, Descending) else NotImplemented

    def __gt__(self, other: object) -> Any:
        return other.value > self.value if isinstance(other, Descending) else NotImplemented

    def __ge__(self, other: object) -> Any:
        return other.value >= self.value if isinstance(other, Descending) else NotImplemented

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and self.value == other.value

    def __hash__(self) -> int:
        return ~hash(self.value)

    def __repr__(self) -> str:
        return f"Descending({self.value!r})"


@final
class RecordKey(tuple[Any, ...]):
    """The element of a record. Records of one column may have other fields in each row."""

    __slots__ = ()

    def __lt__(self, other: Any) -> Any:
        return self._ordered(tuple.__lt__, other)

    def __le__(self, other: Any) -> Any:
        return self._ordered(tuple.__le__, other)

    def __gt__(self, other: Any) -> Any:
        return self._ordered(tuple.__gt__, other)

    def __ge__(self, other: Any) -> Any:
        return self._ordered(tuple.__ge__, other)

    def _ordered(self, compare: Callable[[Any, Any], Any], other: Any) -> Any:
        if isinstance(other, RecordKey) and len(self) != len(other):
            raise DatatypeMismatch("cannot compare record types with different numbers of columns")
        try:
            return compare(self, other)
        except TypeError:
            raise DatatypeMismatch("cannot compare dissimilar column types of records") from None


# Wide enough for every NUMERIC, so that removing zeros never rounds.
_EXACT = Context(prec=200_000, Emax=MAX_EMAX, Emin=MIN_EMIN)
_remove_zeros = _EXACT.normalize


def canonical(value: Any) -> Any:
    """The one representative of all values that SQL holds equal to this one.

    1.0 and 1.00 become one Decimal, -0.0 becomes 0.0, any NaN becomes NAN_KEY, some types become
    others (see above); all else is itself.
    """
    kind = type(value)
    if kind is float:
        return value + 0.0 if value == value else NAN_KEY  # -0.0 + 0.0 is 0.0
    if kind is Decimal:
        if value.is_nan():
            return NAN_KEY
        return _remove_zeros(value) if value else _ZERO
    replace = _CANONICAL.get(kind)
    return value if replace is None else replace(value)


_ZERO = Decimal(0)


def _array_element(array: tuple[Any, ...]) -> tuple[Any, ...]:
    sizes = dimensions(array)
    return tuple(map(key_element, flat(array))), (len(sizes), *sizes)


_CANONICAL: dict[type, Callable[[Any], Any]] = {
    Interval: Interval.normal,
    Jsonb: Jsonb.order_key,
    ZonedTime: ZonedTime.moment_and_zone,
    tuple: _array_element,
    Record: lambda value: RecordKey(map(key_element, value)),
}


def key_element(value: Any, descending: bool = False) -> Any:
    """The element for a column's value in a key."""
    element = NULL_KEY if value is None else canonical(value)
    return Descending(element) if descending else element


# --- from a row to its key -----------------------------------------------------------------------

# Only values of these types differ from their key elements.
_needs_no_care = frozenset({type(None), float, Decimal, *_CANONICAL}).isdisjoint


def make_key(
    positions: Sequence[int], careful: bool = False, descending: Sequence[bool] = ()
) -> KeyFunction:
    """The fastest function from a row to its key of the columns at `positions`.

    `careful`: some columns may hold NULL or a value that is not its own key element. Even then most
    rows hold none, which one check of the types, at C speed, shows.
    """
    assert positions, "a key has at least one column"
    if any(descending):
        return _mixed_key(tuple(positions), tuple(descending))
    if len(positions) == 1:
        return _careful_single_key(positions[0]) if careful else _single_key(positions[0])
    pick: Callable[[Row], Key] = itemgetter(*positions)
    return _careful_key(pick) if careful else pick


def make_keys(positions: Sequence[int], careful: bool = False) -> KeysFunction:
    """The fastest function from many rows to their keys, in order."""
    if careful:
        return partial(map, make_key(positions, careful))
    pick = itemgetter(*positions)
    if len(positions) == 1:
        return lambda rows: zip(map(pick, rows))
    return partial(map, pick)


def _single_key(position: int) -> KeyFunction:
    return lambda row: (row[position],)


def _careful_single_key(position: int) -> KeyFunction:
    return lambda row: (key_element(row[position]),)


def _careful_key(pick: Callable[[Row], Key]) -> KeyFunction:
    def key_of(row: Row) -> Key:
        key = pick(row)
        return key if _needs_no_care(map(type, key)) else tuple(map(key_element, key))

    return key_of


def _mixed_key(positions: tuple[int, ...], descending: tuple[bool, ...]) -> KeyFunction:
    assert len(positions) == len(descending), "one direction for each column"
    directions = tuple(zip(positions, descending, strict=True))
    return lambda row: tuple([key_element(row[at], down) for at, down in directions])
