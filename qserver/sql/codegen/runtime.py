"""Functions that generated code calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any, NoReturn, TypeAlias

from qserver.errors import (
    CardinalityViolation,
    InvalidRowCountInLimit,
    InvalidRowCountInOffset,
    NotNullViolation,
    ProgramLimitExceeded,
    QserverError,
)
from qserver.functions.context import STEPS_BETWEEN_PAUSES, Context
from qserver.functions.costs import BYTES_SMALL
from qserver.functions.datetime.moments import MomentReader
from qserver.sql.codegen.sorted_rows import yield_check
from qserver.sql.expressions import Slot, Slots
from qserver.values.keys import canonical
from qserver.values.schema import Table
from qserver.values.sizes import size_of
from qserver.values.steps import Steps

_NO_LIMIT = 1 << 62

ROWS_COMPARED_AT_ONCE = 32
"""Whole rows, of any length, that are hashed between two yield checks."""

ROWS_OF_PAGE = 1024

READ_AGAIN_BYTES_MAX = 64 * 1024
"""Bytes of a row of literals that are read again, to find the bad one."""


def row_limit(value: int | None) -> int:
    """Return the number of LIMIT; NULL is no limit."""
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
    """Return the rows of FETCH FIRST … WITH TIES."""
    stop = offset + limit
    if limit == 0 or stop >= len(rows):
        return rows[offset:stop]
    last = _as_tied(key(rows[stop - 1]))
    while stop < len(rows) and _as_tied(key(rows[stop])) == last:
        stop += 1
    return rows[offset:stop]


def _as_tied(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return sort values under which tied rows are equal: NaN equals NaN here."""
    return tuple([None if value is None else canonical(value) for value in values])


def intersect_rows(
    context: Context, left: Iterable[Any], right: Iterable[Any], is_all: bool
) -> Iterator[Any]:
    """Yield the rows that both sides have, and None at yield checks."""
    counts = yield from _counted(context, right)
    for page in pages_of(left, ROWS_COMPARED_AT_ONCE):
        yield from _between_pages(context, page, size_of(page))
        for row in page:
            if counts[row] > 0:
                counts[row] = counts[row] - 1 if is_all else 0
                yield row


def _counted(context: Context, rows: Iterable[Any]) -> Generator[None, None, Counter[Any]]:
    """Return how often each row is there."""
    counts: Counter[Any] = Counter()
    for page in pages_of(rows, ROWS_COMPARED_AT_ONCE):
        counts.update(page)
        yield from _between_pages(context, page, size_of(page))
    return counts


def except_rows(
    context: Context, left: Iterable[Any], right: Iterable[Any], is_all: bool
) -> Iterator[Any]:
    """Yield the rows of the left side that the right side lacks, and None at yield checks."""
    counts = yield from _counted(context, right)
    seen: set[Any] = set()
    for page in pages_of(left, ROWS_COMPARED_AT_ONCE):
        yield from _between_pages(context, page, size_of(page))
        for row in page:
            if counts[row] > 0:
                counts[row] -= is_all
            elif is_all:
                yield row
            elif row not in seen:
                seen.add(row)
                yield row


def _between_pages(
    context: Context, page: Sequence[Any], size: int = 0
) -> Generator[None, None, None]:
    context.work += len(page) + size // BYTES_SMALL
    if context.work > STEPS_BETWEEN_PAUSES:
        yield from yield_check(context)


def single(rows: list[tuple[Any, ...]]) -> Any:
    """Return the value of a scalar subquery."""
    if len(rows) > 1:
        raise CardinalityViolation("more than one row returned by a subquery used as an expression")
    return rows[0][0] if rows else None


def is_in(value: Any, found: tuple[set[Any], bool, bool]) -> bool | None:
    """`value IN (query)`: `found` is the values, whether one is NULL, whether there are rows."""
    values, has_null, has_rows = found
    if not has_rows:
        return False
    if value is None:
        return None
    if value in values:
        return True
    return None if has_null else False


FoundRows: TypeAlias = tuple[set[tuple[Any, ...]], list[tuple[Any, ...]], list[tuple[Any, ...]]]


def rows_found(rows: list[tuple[Any, ...]]) -> FoundRows:
    """Prepare a subquery's rows for look-ups: those without NULL, those with NULL, all of them."""
    return {row for row in rows if None not in row}, [row for row in rows if None in row], rows


def row_is_in(context: Context, row: tuple[Any, ...], found: FoundRows) -> Steps[Any]:
    """`row IN (query)`: a NULL leaves a row undecided unless another column differs."""
    known, unknown, everything = found
    if None not in row:
        if row in known:
            return True
        candidates = unknown
    else:
        candidates = everything
    for page in pages_of(candidates):
        yield from _between_pages(context, page)
        if any(_may_be_equal(row, other) for other in page):
            return None
    return False


def _may_be_equal(row: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    pairs = zip(row, other, strict=True)
    return all(
        mine is None or theirs is None or mine is theirs or mine == theirs  # there is one NaN
        for mine, theirs in pairs
    )


def quantified(
    context: Context,
    compare: Callable[[Any, Any], Any],
    value: Any,
    rows: Iterable[tuple[Any, ...]],
    is_all: bool,
) -> Steps[Any]:
    """`value compare ANY (query)`, or ALL if `is_all`."""
    unknown = False
    for page in pages_of(rows):
        yield from _between_pages(context, page)
        for (other,) in page:
            if value is None or other is None:
                unknown = True
            elif (not compare(value, other)) is is_all:
                return not is_all
            if context.work > STEPS_BETWEEN_PAUSES:
                yield from yield_check(context)
    return None if unknown else is_all


def made_slots(
    slots: tuple[Slot | Slots, ...],
) -> Callable[[Mapping[int | str, Any] | Sequence[Any], Any], list[Any]]:
    """Return the function that converts many slots of an execution at once."""

    def make(given: Any, context: Any) -> list[Any]:
        values: list[Any] = []
        name: int | str = ""
        try:
            for slot in slots:
                names = slot.names if type(slot) is Slots else (slot.name,)
                convert = slot.convert
                if convert is None:
                    values += [given[name] for name in names]
                    continue
                if isinstance(convert, MomentReader):
                    convert = partial(_at, convert, context)
                for name in names:
                    value = given[name]
                    values.append(None if value is None else convert(value))
        except QserverError as error:
            error.literal = name if isinstance(name, int) else None
            raise
        return values

    return make


def _at(reader: MomentReader, context: Any, value: Any) -> Any:
    return reader.at(value, context)


def rows_of_parameters(
    slots: Mapping[int | str, Any], numbers: range, width: int
) -> list[tuple[Any, ...]]:
    """Return the rows of a VALUES list whose items are consecutive parameters."""
    values = iter([slots[f"${number}"] for number in numbers])
    return list(zip(*[values] * width, strict=True))


def unreadable(
    rows: Sequence[Sequence[Any]],
    row: Sequence[Any],
    readers: Mapping[int, Callable[[Any], Any]],
    error: QserverError,
) -> int:
    """Return the number, counted through all rows, of the value of this row that cannot be read.

    Values are read again, except long ones: nobody else runs meanwhile.
    """
    before = next(at for at, each in enumerate(rows) if each is row) * len(row)
    sizes = {column: size_of(row[column]) for column in readers}
    if isinstance(error, ProgramLimitExceeded):
        return before + max(sizes, key=sizes.__getitem__, default=0)
    left = READ_AGAIN_BYTES_MAX
    for column, read in readers.items():
        left -= sizes[column]
        if left < 0:
            break
        try:
            if row[column] is not None:
                read(row[column])
        except QserverError:
            return before + column
    return before


def elements_of(array: tuple[Any, ...] | None) -> list[Any]:
    """Return the elements of all dimensions; for a NULL array, one NULL."""
    if array is None:
        return [None]
    if not array or type(array[0]) is not tuple:
        return list(array)
    found: list[Any] = []
    for each in array:
        if type(each) is tuple:
            found += elements_of(each)
        else:
            found.append(each)
    return found


def refuse_null(table: Table, row: tuple[Any, ...]) -> None:
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


def leave_undecided(*_: Any) -> NoReturn:
    """Replaces costly calls in predicates that a commit evaluates to detect conflicts.

    A row that the predicate cannot judge counts as one that it selects.
    """
    raise ProgramLimitExceeded("the predicate takes too long to be looked at in a commit")


def pages_of(rows: Iterable[Any], most: int = ROWS_OF_PAGE) -> Iterable[Sequence[Any]]:
    """Split rows into pages, between which loops can yield."""
    if type(rows) is not tuple and type(rows) is not list:
        source = iter(rows)
        first = list(islice(source, most))
        if len(first) < most:
            return (first,) if first else ()
        return chain((first,), iter(lambda: list(islice(source, most)), []))
    if len(rows) <= most:
        return (rows,)
    return (rows[at : at + most] for at in range(0, len(rows), most))
