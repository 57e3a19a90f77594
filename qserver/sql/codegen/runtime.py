"""What generated code calls: small functions that need no printing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from qserver.errors import (
    CardinalityViolation,
    InvalidRowCountInLimit,
    InvalidRowCountInOffset,
    NotNullViolation,
)
from qserver.sql.bound import Slot
from qserver.sql.functions.moments import MomentReader
from qserver.values.schema import Table

_NO_LIMIT = 1 << 62

ROWS_OF_PAGE = 1024


def row_limit(value: int | None) -> int:
    """The number of LIMIT; NULL is no limit."""
    if value is None:
        return _NO_LIMIT
    if value < 0:
        raise InvalidRowCountInLimit("LIMIT must not be negative")
    return int(value)


def row_offset(value: int | None) -> int:
    if value is None:
        return 0
    if value < 0:
        raise InvalidRowCountInOffset("OFFSET must not be negative")
    return int(value)


def with_ties(rows: list[Any], key: Callable[[Any], Any], limit: int, offset: int) -> list[Any]:
    """The rows of FETCH FIRST … WITH TIES."""
    stop = offset + limit
    if limit == 0 or stop >= len(rows):
        return rows[offset:stop]
    last = key(rows[stop - 1])
    while stop < len(rows) and key(rows[stop]) == last:
        stop += 1
    return rows[offset:stop]


def intersection(left: list[Any], right: list[Any], every: bool) -> Iterator[Any]:
    counts = Counter(right)
    for row in left if every else dict.fromkeys(left):
        if counts[row] > 0:
            if every:
                counts[row] -= 1
            yield row


def exception(left: list[Any], right: list[Any], every: bool) -> Iterator[Any]:
    counts = Counter(right)
    for row in left if every else dict.fromkeys(left):
        if counts[row] > 0:
            if every:
                counts[row] -= 1
        else:
            yield row


def single(rows: list[tuple[Any, ...]]) -> Any:
    """The value of a scalar subquery."""
    if len(rows) > 1:
        raise CardinalityViolation("more than one row returned by a subquery used as an expression")
    return rows[0][0] if rows else None


def is_in(value: Any, found: tuple[set[Any], bool, bool]) -> bool | None:
    """`value IN (query)`: `found` is the values, whether one is NULL, whether there are any."""
    values, has_null, has_rows = found
    if not has_rows:
        return False
    if value is None:
        return None
    if value in values:
        return True
    return None if has_null else False


def row_is_in(row: tuple[Any, ...], rows: list[tuple[Any, ...]]) -> bool | None:
    """The same for several columns, where a NULL leaves a row undecided unless another differs."""
    unknown = False
    for other in rows:
        undecided = False
        for mine, theirs in zip(row, other, strict=True):
            if mine is None or theirs is None:
                undecided = True
            elif mine != theirs:
                break
        else:
            if not undecided:
                return True
            unknown = True
    return None if unknown else False


def any_of(compare: Callable[[Any, Any], Any], value: Any, rows: Iterable[tuple[Any, ...]]) -> Any:
    """`value compare ANY (query)`"""
    unknown = False
    for (other,) in rows:
        if value is None or other is None:
            unknown = True
        elif compare(value, other):
            return True
    return None if unknown else False


def all_of(compare: Callable[[Any, Any], Any], value: Any, rows: Iterable[tuple[Any, ...]]) -> Any:
    unknown = False
    for (other,) in rows:
        if value is None or other is None:
            unknown = True
        elif not compare(value, other):
            return False
    return None if unknown else True


def made_slots(
    slots: tuple[Slot, ...],
) -> Callable[[Mapping[int | str, Any] | Sequence[Any], Any], list[Any]]:
    """What makes the values of many slots of an execution at once."""
    known = [(slot.name, slot.convert) for slot in slots]

    def make(given: Any, context: Any) -> list[Any]:
        values = []
        for name, convert in known:
            value = given[name]
            if value is None or convert is None:
                values.append(value)
            elif isinstance(convert, MomentReader):
                values.append(convert.at(value, context))
            else:
                values.append(convert(value))
        return values

    return make


def elements_of(array: tuple[Any, ...] | None) -> list[Any]:
    """The elements of all dimensions; for no array at all, one that is NULL."""
    if array is None:
        return [None]
    found: list[Any] = []
    for each in array:
        if type(each) is tuple:
            found += elements_of(each)
        else:
            found.append(each)
    return found


def refuse_null(table: Table, row: tuple[Any, ...]) -> None:
    """Raise for the first column that must not be NULL and is."""
    for column, value in zip(table.columns, row, strict=True):
        if value is None and not column.nullable:
            raise NotNullViolation(
                f'null value in column "{column.name}" of relation "{table.name}"'
                " violates not-null constraint",
                detail=f"Failing row contains ({table.describe(row)}).",
                table=table.name,
                column=column.name,
            )
    raise AssertionError("a row without a misplaced NULL was refused")


def pages_of(rows: Iterable[Any]) -> Iterable[Sequence[Any]]:
    """Rows in pieces, so that whoever loops over them can give way in between."""
    if type(rows) is not tuple and type(rows) is not list:
        source = iter(rows)
        return iter(lambda: list(islice(source, ROWS_OF_PAGE)), [])
    if len(rows) <= ROWS_OF_PAGE:
        return (rows,)
    return (rows[at : at + ROWS_OF_PAGE] for at in range(0, len(rows), ROWS_OF_PAGE))
