"""The ends of window frames: for each row of a partition, where its frame begins or ends.

Rows are in order, so the offset of RANGE moves a bound that only goes on: all ends of a partition
are found in one walk over its keys.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from qserver.errors import InvalidFrameOffset
from qserver.functions.context import STEPS_BETWEEN_PAUSES, Context
from qserver.sql.codegen.sorted_rows import yield_check
from qserver.values.keys import canonical
from qserver.values.steps import Steps

_LEAST, _GREATEST = _INFINITIES = (float("-inf"), float("inf"))


def range_ends(
    context: Context,
    raw: Sequence[Any],
    keys: Sequence[Any],
    steps: Any,
    offset: Any,
    back: bool,
    descending: bool,
    peers: Sequence[int],
    is_start: bool,
) -> Steps[list[int]]:
    """Return the first member of each row's frame, or what follows its last member.

    `back`: the bound is a smaller value. NULLs and NaN have their `peers` as their frame.
    """
    low, high = _not_null(raw)
    beyond = _BEYOND[is_start, descending]
    is_infinite = offset in _INFINITIES
    move = steps.subtract if back else steps.add
    operand, distance = steps.operand, None
    ends: list[int] = []
    at = low
    endless: int | None = None
    """The end of the frames that go from one infinity to the other."""
    for number, value in enumerate(raw):
        if value is None or value != value:
            ends.append(peers[number])
            continue
        if distance is None:
            if steps.goes_back(offset):
                raise InvalidFrameOffset("invalid preceding or following size in window function")
            distance = steps.offset(offset)
        if is_infinite and value in _INFINITIES and (value > 0) == back:
            if endless is None:
                bound = _LEAST if is_start != descending else _GREATEST
                reached = (number for number in range(low, high) if beyond(keys[number], bound))
                endless = next(reached, high)
            ends.append(endless)
            continue
        bound = canonical(move(operand(value), distance))
        began = at
        while at < high and not beyond(keys[at], bound):
            at += 1
        ends.append(at)
        context.work += 1 + (at - began)
        if context.work > STEPS_BETWEEN_PAUSES:
            yield from yield_check(context)
    return ends


_BEYOND: dict[tuple[bool, bool], Callable[[Any, Any], Any]] = {
    (True, False): operator.ge,
    (True, True): operator.le,
    (False, False): operator.gt,
    (False, True): operator.lt,
}
"""Whether a key has reached the start of a frame, or is behind its end."""


def _not_null(values: Sequence[Any]) -> tuple[int, int]:
    """Return the slice of values that are not NULL: NULLs are together, at one end."""
    count = sum([value is not None for value in values])
    start = len(values) - count if values and values[0] is None else 0
    return start, start + count
