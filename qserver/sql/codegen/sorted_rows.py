"""Sorts many rows with yield checks.

    [ … run … ][ … run … ][ … run … ][ … run … ]      each sorted
    [ piece | piece | piece | … ][ … ]                 each merged

Python's sort cannot be interrupted. So rows are sorted in runs of a few thousand, and runs are
merged pairwise, piece by piece: Python sorts a piece of one run with the matching rows of the
other, as fast as a merge, because its sort detects sorted runs.

The sort is stable, as SQL's window functions need. Descending is ascending on the reversed rows,
reversed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

from qserver.functions.context import STEPS_BETWEEN_PAUSES, Context
from qserver.values.keys import Descending, RecordKey
from qserver.values.sizes import size_of
from qserver.values.steps import Steps

RUN_ROWS = 4096
RUN_ROWS_MIN = 8
KEY_BYTES_SHORT = 512
"""Keys up to this many bytes compare about as fast as short ones."""

_PARTS = frozenset({tuple, RecordKey, Descending})


def yield_check(context: Context) -> Steps[Any]:
    context.work = context.made = 0
    context.check()
    yield None


def sort_rows(
    context: Context, rows: list[Any], keys: list[Any], reverse: bool, key_bytes: int = 0
) -> Steps[Any]:
    """Put the rows in the order of their keys; `key_bytes` is the length of all keys."""
    order = yield from sorted_numbers(context, keys, reverse, key_bytes)
    rows[:] = yield from picked(context, rows, order)


def picked(context: Context, rows: Sequence[Any], numbers: Sequence[int]) -> Steps[Any]:
    """Return the rows with these numbers."""
    if len(numbers) <= RUN_ROWS:
        return [rows[number] for number in numbers]
    found: list[Any] = []
    for at in range(0, len(numbers), RUN_ROWS):
        found += [rows[number] for number in numbers[at : at + RUN_ROWS]]
        context.work += RUN_ROWS // 4
        if context.work > STEPS_BETWEEN_PAUSES:
            yield from yield_check(context)
    return found


def sorted_pairs(context: Context, pairs: list[tuple[Any, Any]], may_be_long: bool) -> Steps[Any]:
    """Return the second parts of pairs, in the order of the first."""
    keys = [key for key, _ in pairs]
    size = (yield from bytes_of_keys(context, keys)) if may_be_long else 0
    order = yield from sorted_numbers(context, keys, key_bytes=size)
    values = [value for _, value in pairs]
    return (yield from picked(context, values, order))


def bytes_of_keys(context: Context, keys: Sequence[Any]) -> Steps[Any]:
    """Return the length of all keys together, which says how long they take to compare."""
    total = 0
    for key in keys:
        size = size_of(key)
        total += size * (nesting(key) if size > KEY_BYTES_SHORT // 4 else 1)
        context.work += 1 + size // KEY_BYTES_SHORT
        if context.work > STEPS_BETWEEN_PAUSES:
            yield from yield_check(context)
    return total


def nesting(key: Any) -> int:
    """Return how often a part of a key may be compared: again for parts of parts.

    Python looks for the first parts that differ, and then compares them from the beginning.
    """
    depth, parts = 0, [key]
    while parts := [_bare(part) for part in parts if type(part) in _PARTS]:
        depth += 1
        parts = list(chain.from_iterable(parts))
    return 1 + depth // 4


def _bare(part: Any) -> Any:
    return (part.value,) if type(part) is Descending else part


def sorted_numbers(
    context: Context, keys: Sequence[Any], reverse: bool = False, key_bytes: int = 0
) -> Steps[Any]:
    """Return the indexes of the keys in sorted order."""
    count = len(keys)
    key = keys.__getitem__
    longer = key_bytes // (KEY_BYTES_SHORT * count + 1)
    size = max(RUN_ROWS // (1 + longer), RUN_ROWS_MIN)
    if count <= size:
        context.work += count
        return sorted(range(count), key=key, reverse=reverse)
    numbers = range(count - 1, -1, -1) if reverse else range(count)
    runs: list[list[int]] = []
    for at in range(0, count, size):
        runs.append(sorted(numbers[at : at + size], key=key))
        yield from yield_check(context)
    while len(runs) > 1:
        merged: list[list[int]] = []
        for at in range(0, len(runs) - 1, 2):
            pair = runs[at], runs[at + 1]
            merged.append((yield from _merged(context, *pair, key, size, 1 + longer)))
        runs = merged + runs[2 * len(merged) :]
    (order,) = runs
    if reverse:
        order.reverse()
    return order


def _merged(
    context: Context,
    left: list[int],
    right: list[int],
    key: Callable[[int], Any],
    size: int,
    weight: int,
) -> Steps[Any]:
    """Merge two sorted runs; of equals, the left comes first. A key costs `weight` steps."""
    result: list[int] = []
    at, other = 0, 0
    while at < len(left) and other < len(right):
        left_end = min(at + size, len(left))
        right_end = bisect_left(right, key(left[left_end - 1]), other, key=key)
        if right_end - other > size:
            right_end = other + size
            left_end = bisect_right(left, key(right[right_end - 1]), at, left_end, key=key)
        piece = left[at:left_end] + right[other:right_end]
        piece.sort(key=key)
        result += piece
        at, other = left_end, right_end
        context.work += weight * len(piece)
        if context.work > STEPS_BETWEEN_PAUSES:
            yield from yield_check(context)
    result += left[at:]
    result += right[other:]
    return result
