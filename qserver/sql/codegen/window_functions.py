"""Window functions at run time: computes one column of values for all materialized rows.

Rows are sorted by partition and order; within a partition each row has its peers (rows with an
equal order) and its frame (a slice of the partition, minus exclusions). Aggregates from the start
of the partition to the current row are running aggregates; over any other frame they are recomputed
for each distinct frame, unless they are differences of subtotals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

from qserver.errors import (
    InvalidArgumentForNthValue,
    InvalidArgumentForNtile,
    InvalidFrameOffset,
    NullValueNotAllowed,
)
from qserver.functions.context import STEPS_BETWEEN_PAUSES, Context
from qserver.functions.registry import Aggregate
from qserver.sql.codegen.charges import multiplied_cost, multiplies_long
from qserver.sql.codegen.sorted_rows import (
    bytes_of_keys,
    picked,
    sorted_numbers,
    yield_check,
)
from qserver.sql.codegen.window_frames import range_ends
from qserver.sql.codegen.window_subtotals import Finish, Subtotals, finish_of, subtotals_of
from qserver.sql.expressions import Expression, SortKey, WindowCall
from qserver.values.sizes import is_sized, size_of
from qserver.values.steps import Steps

Item = Any
OfItem = Callable[[Item], Any]

KEPT_BYTES_BETWEEN_CHECKS = 64 * 1024
"""Bytes of new values held between two charges."""

BYTES_OF_STEP = 1024
"""Bytes of keys that compare in about one step."""

ROWS_AT_ONCE = 1024
"""Rows that an aggregate takes between two yield checks."""


def window_values(
    context: Context,
    call: WindowCall,
    rows: list[Item],
    partition: OfItem,
    order: OfItem,
    arguments: OfItem,
    chosen: OfItem | None,
    start_offset: Any,
    end_offset: Any,
    raw: OfItem | None,
    steps: Any,
    made: tuple[bool, bool, bool],
) -> Steps[Any]:
    """Return the value of a window call for each row, in the order of the rows.

    `made`: whether partitions, orders and arguments are new values that may be long. Arguments are
    held to the end, because they may be the values of the call.
    """
    if rows:
        _check_offset(call, "starting", call.frame.start, start_offset)
        _check_offset(call, "ending", call.frame.end, end_offset)
    context.charge_memory(len(rows), 2 + len(call.order_by) + len(call.arguments))
    result: list[Any] = [None] * len(rows)
    of_partitions, of_orders, of_arguments = made
    held = context.held
    keys = yield from mapped(context, partition, rows, is_made=of_partitions)
    held = context.held - held
    for numbers in (yield from _partitioned(context, keys)):
        members = yield from picked(context, rows, numbers)
        ordered_from = context.held
        orders = yield from mapped(context, order, members, is_made=of_orders)
        may_be_long = any(is_sized(key.expression.type) for key in call.order_by)
        key_bytes = (yield from bytes_of_keys(context, orders)) if may_be_long else 0
        reverse = is_reversed(call.order_by)
        in_order = yield from sorted_numbers(context, orders, reverse, key_bytes)
        members = yield from picked(context, members, in_order)
        values_of_order = []
        if raw is not None:
            values_of_order = yield from mapped(context, raw, members, is_made=of_orders)
        order_bytes = context.held - ordered_from
        part = _Partition(
            context,
            call,
            members,
            (yield from picked(context, orders, in_order)),
            (yield from mapped(context, arguments, members, is_made=of_arguments)),
            None if chosen is None else (yield from mapped(context, chosen, members)),
            (start_offset, end_offset),
            values_of_order,
            (yield from mapped(context, lambda each: steps.comparable(each), values_of_order)),
            steps,
        )
        values = yield from part.values()
        yield from _put(context, result, (numbers[at] for at in in_order), values)
        for used in (orders, part.arguments, part.raw, part.keys):
            context.let_go(used)
        context.free_bytes(order_bytes)
    context.free_bytes(held)
    return result


def is_reversed(order_by: Sequence[SortKey]) -> bool:
    """Whether rows are sorted by their plain keys backward, which compare faster than others."""
    return bool(order_by) and all(key.descending for key in order_by)


def _partitioned(context: Context, keys: Sequence[Any]) -> Steps[Any]:
    """Return the numbers of the rows of each partition."""
    partitions: dict[Any, list[int]] = {}
    for number, part_of in enumerate(keys):
        partitions.setdefault(part_of, []).append(number)
        context.work += 1 + size_of(part_of) // BYTES_OF_STEP
        if context.work > STEPS_BETWEEN_PAUSES:
            yield from yield_check(context)
    return partitions.values()


def _put(
    context: Context, result: list[Any], places: Iterable[int], values: Sequence[Any]
) -> Steps[Any]:
    """Put each value into its place of the result."""
    for place, value in zip(places, values, strict=True):
        result[place] = value
        context.work += 1
        if context.work > 4 * STEPS_BETWEEN_PAUSES:
            yield from yield_check(context)


def mapped(
    context: Context, function: OfItem, rows: Sequence[Item], *, is_made: bool = False
) -> Steps[Any]:
    """Apply a function to each row, with yield checks.

    `is_made`: it makes new values that may be long. They are held, and charged, until the caller
    frees them.
    """
    result, size = [], 0
    for row in rows:
        value = function(row)
        result.append(value)
        context.work += 1
        if is_made:
            size += size_of(value)
            if size > KEPT_BYTES_BETWEEN_CHECKS:
                context.hold_bytes(size)
                size = context.made = 0
        if context.work > STEPS_BETWEEN_PAUSES:
            yield from yield_check(context)
    context.hold_bytes(size)
    return result


def _check_offset(
    call: WindowCall, what: str, bound: tuple[str, Expression | None], offset: Any
) -> None:
    """Refuse NULL offsets and negative counts of rows or groups, even if the frame is ignored."""
    if bound[1] is None:
        return
    if offset is None:
        raise NullValueNotAllowed(f"frame {what} offset must not be null")
    if call.frame.mode != "range" and offset < 0:
        raise InvalidFrameOffset(f"frame {what} offset must not be negative")


class _Partition:
    """The rows of one partition in order, and the bounds of each row's peers."""

    def __init__(
        self,
        context: Context,
        call: WindowCall,
        rows: list[Item],
        orders: list[Any],
        arguments: list[Any],
        chosen: list[Any] | None,
        offsets: tuple[Any, Any],
        raw: list[Any],
        keys: list[Any],
        steps: Any,
    ) -> None:
        self.context = context
        self.call = call
        self.rows = rows
        self.arguments = arguments
        self.chosen = chosen
        self.offsets = offsets
        self.raw = raw
        self.steps = steps
        self.keys = keys
        self.orders = orders
        self.peer_start: list[int] = []
        self.peer_end: list[int] = []
        self.group: dict[int, int] = {}
        self.group_starts: list[int] = []
        self.starts: Sequence[int] = ()
        self.ends: Sequence[int] = ()
        """Where the frame of each row begins and ends; before and behind all rows, too."""
        self.heavy = 0
        """Steps that a row adds to the aggregate, at most, if they are many."""
        self.rows_at_once = ROWS_AT_ONCE

    def _depends_on_peers(self) -> bool:
        if self.call.aggregate is None and self.call.name not in _OF_FRAME:
            return self.call.name in _OF_PEERS
        frame = self.call.frame
        return frame.mode != "rows" or frame.exclude in ("group", "ties")

    def _find_peers(self) -> Steps[Any]:
        """Find the runs of rows that are equal in the order."""
        orders, starts = self.orders, self.group_starts
        heavy = 1 + size_of(orders[0]) // BYTES_OF_STEP if orders else 1
        for number, order in enumerate(orders):
            if number == 0 or order != orders[number - 1]:
                starts.append(number)
            self.context.work += heavy
            if self.context.work > STEPS_BETWEEN_PAUSES:
                yield from yield_check(self.context)
        starts.append(len(orders))
        for position, (start, end) in enumerate(pairwise(starts)):
            self.group[start] = position
            self.peer_start += [start] * (end - start)
            self.peer_end += [end] * (end - start)
            self.context.work += 1
            if self.context.work > STEPS_BETWEEN_PAUSES:
                yield from yield_check(self.context)

    def values(self) -> Steps[Any]:
        if self._depends_on_peers():
            yield from self._find_peers()
        if self.call.aggregate is not None:
            return (yield from self._aggregate())
        if self.call.name in _OF_FRAME:
            yield from self._find_frames()
        compute = _OF_ROW.get(self.call.name)
        if compute is None:
            return _FUNCTIONS[self.call.name](self)  # `_put` computes and charges each
        return (
            yield from mapped(self.context, lambda at: compute(self, at), range(len(self.rows)))
        )

    # --- ranks ---

    def row_number(self) -> Iterable[Any]:
        return range(1, len(self.rows) + 1)

    def rank(self) -> Iterable[Any]:
        return (start + 1 for start in self.peer_start)

    def dense_rank(self) -> Iterable[Any]:
        return (self.group[start] + 1 for start in self.peer_start)

    def percent_rank(self) -> Iterable[Any]:
        others = len(self.rows) - 1
        return (start / others if others else 0.0 for start in self.peer_start)

    def cume_dist(self) -> Iterable[Any]:
        return (end / len(self.rows) for end in self.peer_end)

    def ntile(self) -> Iterable[Any]:
        buckets = self.arguments[0][0] if self.arguments else None
        if buckets is None:
            return [None] * len(self.rows)
        if buckets <= 0:
            raise InvalidArgumentForNtile("argument of ntile must be greater than zero")
        size, larger = divmod(len(self.rows), buckets)
        among_larger = larger * (size + 1)
        return (
            number // (size + 1) + 1
            if number < among_larger
            else larger + (number - among_larger) // size + 1
            for number in range(len(self.rows))
        )

    # --- other rows ---

    def lag(self, number: int) -> Any:
        return self._shifted(number, -1)

    def lead(self, number: int) -> Any:
        return self._shifted(number, 1)

    def _shifted(self, number: int, direction: int) -> Any:
        given = self.arguments[number]
        offset = given[1] if len(given) > 1 else 1
        if offset is None:
            return None
        at = number + direction * offset
        if 0 <= at < len(self.rows):
            return self.arguments[at][0]
        return given[2] if len(given) > 2 else None

    def first_value(self, number: int) -> Any:
        return self._nth(number, 0)

    def last_value(self, number: int) -> Any:
        return self._nth(number, -1)

    def nth_value(self, number: int) -> Any:
        nth = self.arguments[number][1]
        if nth is not None and nth <= 0:
            raise InvalidArgumentForNthValue("argument of nth_value must be greater than zero")
        return None if nth is None else self._nth(number, nth - 1)

    def _nth(self, number: int, nth: int) -> Any:
        frame = self._frame(number)
        if not -len(frame) <= nth < len(frame):
            return None
        return self.arguments[frame[nth]][0]

    # --- aggregates ---

    def _aggregate(self) -> Steps[Any]:
        yield from self._weigh_rows()
        frame = self.call.frame
        usual = frame.start[0] == "unbounded preceding" and frame.exclude == "no others"
        if usual and frame.end[0] in ("current row", "unbounded following"):
            return (yield from self._carried())
        yield from self._find_frames()
        aggregate = self.call.aggregate
        assert aggregate is not None
        if frame.exclude == "no others":
            subtotals = subtotals_of(aggregate, self._chosen_arguments())
            if subtotals is not None:
                return (yield from self._moving(finish_of(aggregate), subtotals))
        known: dict[Any, Any] = {}
        values = []
        for number in range(len(self.rows)):
            members = self._frame(number)
            key = members if type(members) is range else tuple(members)
            if key not in known:
                known[key] = yield from self._reduced(members)
                self._keep(known[key], members)
            values.append(known[key])
            self.context.work += 1
            if self.context.work > STEPS_BETWEEN_PAUSES:
                yield from yield_check(self.context)
        return values

    def _chosen_arguments(self) -> list[Any]:
        """Return the arguments of each row, None for those that FILTER leaves out."""
        if self.chosen is None:
            return self.arguments
        pairs = zip(self.arguments, self.chosen, strict=True)
        return [given if chosen else None for given, chosen in pairs]

    def _moving(self, finish: Finish, subtotals: Subtotals) -> Steps[Any]:
        """Return the aggregate of each frame, as the difference of two subtotals."""
        sums, counts, subtract = subtotals
        most = len(self.rows)
        values = []
        for start, end in zip(self.starts, self.ends, strict=True):
            first = start if start > 0 else 0
            last = end if end < most else most
            if last <= first:
                first = last = 0
            values.append(finish(subtract(sums[last], sums[first]), counts[last] - counts[first]))
            self.context.work += 1
            if self.context.work > STEPS_BETWEEN_PAUSES:
                yield from yield_check(self.context)
        return values

    def _weigh_rows(self) -> Steps[Any]:
        """Find out what a row adds to the work: long numbers are multiplied."""
        assert self.call.aggregate is not None
        if not multiplies_long(self.call.aggregate, self.call.arguments):
            return
        sizes = yield from mapped(self.context, size_of, self.arguments)
        self.heavy = multiplied_cost(max(sizes, default=0))
        self.rows_at_once = max(1, min(ROWS_AT_ONCE, STEPS_BETWEEN_PAUSES // (1 + self.heavy)))

    def _reduced(self, members: Sequence[int]) -> Steps[Any]:
        """Aggregate some rows, one page at a time."""
        assert self.call.aggregate is not None
        chosen = self.chosen
        feed = self.arguments
        if type(members) is not range or chosen is not None:
            members = [at for at in members if chosen is None or chosen[at]]
            feed = [self.arguments[at] for at in members]
        else:
            feed = self.arguments[members.start : members.stop]
        ends = [*range(self.rows_at_once, len(feed), self.rows_at_once), len(feed)]
        last = None
        for value in carrier(self.call.aggregate, only_last=True)(feed, ends):
            last = value
            self.context.work += min(len(feed), self.rows_at_once) * (1 + self.heavy) + 1
            if self.context.work > STEPS_BETWEEN_PAUSES:
                yield from yield_check(self.context)
        return last

    def _keep(self, value: Any, members: Sequence[int]) -> None:
        """Charge the cached value of a frame."""
        size = size_of(value) if is_sized(self.call.type) else 0
        exact = 0 if type(members) is range else 8 * len(members)
        self.context.hold_bytes(size + exact + 64)
        self.context.weigh(value)
        self.context.work += (size if self.heavy else size // 64) + exact // 64
        self.context.made = 0

    def _carried(self) -> Steps[Any]:
        assert self.call.aggregate is not None
        ends = yield from self._ends(self.call.frame.end[0], 1)
        feed = self._chosen_arguments()
        found: dict[int, Any] = {}
        for value, end in self._values_up_to(feed, list(dict.fromkeys(ends))):
            if end is not None:
                found[end] = value
                if is_sized(self.call.type):
                    self._keep(value, range(0))
            self.context.work += (self.rows_at_once if end is None else 1) * (1 + self.heavy)
            if self.context.work > STEPS_BETWEEN_PAUSES:
                yield from yield_check(self.context)
        return (found[end] for end in ends)

    def _values_up_to(self, feed: list[Any], ends: list[int]) -> Iterator[tuple[Any, int | None]]:
        """Yield the aggregate up to each end; results with end None allow yield checks."""
        assert self.call.aggregate is not None
        stops, again = _stops(ends, self.rows_at_once), _stops(ends, self.rows_at_once)
        running = carrier(self.call.aggregate)(feed, (at for at, _ in stops))
        return zip(running, (end for _, end in again), strict=True)

    # --- frames ---

    def _frame(self, number: int) -> Sequence[int]:
        start, end = max(self.starts[number], 0), min(self.ends[number], len(self.rows))
        members = range(start, max(start, end))
        exclude = self.call.frame.exclude
        if exclude == "no others":
            return members
        peers = range(number, number + 1)
        if exclude in ("group", "ties"):
            peers = range(self.peer_start[number], self.peer_end[number])
        before = range(start, max(start, min(end, peers.start)))
        after = range(max(start, peers.stop), max(start, end, peers.stop))
        self.context.work += len(members) // 16
        itself = [number] if exclude == "ties" and number in members else []
        return [*before, *itself, *after]

    def _find_frames(self) -> Steps[Any]:
        """Find where the frame of each row begins and ends."""
        self.starts = yield from self._ends(self.call.frame.start[0], 0)
        self.ends = yield from self._ends(self.call.frame.end[0], 1)

    def _ends(self, kind: str, side: int) -> Steps[Sequence[int]]:
        """Return the starts of frames (side 0), or their ends (side 1)."""
        count, mode = len(self.rows), self.call.frame.mode
        peers = (self.peer_start, self.peer_end)[side]
        if kind.startswith("unbounded"):
            return [0 if kind == "unbounded preceding" else count] * count
        if kind == "current row":
            return range(side, count + side) if mode == "rows" else peers
        offset = self.offsets[side]
        if mode == "range":
            descending = self.call.order_by[0].descending
            back = (kind == "preceding") != descending
            about = self.raw, self.keys, self.steps, offset, back, descending, peers, side == 0
            return (yield from range_ends(self.context, *about))
        moved = int(-offset if kind == "preceding" else offset)
        if mode == "rows":
            return range(moved + side, moved + side + count)
        group = partial(self._group, moved + side)
        ends: list[int] = yield from mapped(self.context, group, range(count))
        return ends

    def _group(self, moved: int, number: int) -> int:
        """Return where the group begins that is so many behind that of a row."""
        group = self.group[self.peer_start[number]] + moved
        return self.group_starts[max(0, min(group, len(self.group_starts) - 1))]


def _stops(ends: list[int], rows_at_once: int) -> Iterator[tuple[int, int | None]]:
    """Yield each end, with stops on the way to it."""
    done = 0
    for end in ends:
        for at in range(done + rows_at_once, end, rows_at_once):
            yield at, None
        yield end, end
        done = end


_FUNCTIONS: dict[str, Callable[[_Partition], Iterable[Any]]] = {
    "row_number": _Partition.row_number,
    "rank": _Partition.rank,
    "dense_rank": _Partition.dense_rank,
    "percent_rank": _Partition.percent_rank,
    "cume_dist": _Partition.cume_dist,
    "ntile": _Partition.ntile,
}
_OF_ROW: dict[str, Callable[[_Partition, int], Any]] = {
    "lag": _Partition.lag,
    "lead": _Partition.lead,
    "first_value": _Partition.first_value,
    "last_value": _Partition.last_value,
    "nth_value": _Partition.nth_value,
}
_OF_FRAME = frozenset({"first_value", "last_value", "nth_value"})
_OF_PEERS = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})


@lru_cache(maxsize=512)
def carrier(
    aggregate: Aggregate, only_last: bool = False
) -> Callable[[list[Any], Iterable[int]], Iterator[Any]]:
    """Return a running aggregate: a function from the rows' arguments (None: skipped) and ascending
    ends to the result at each end. `only_last`: None for all ends but the last."""
    count = len(aggregate.parameters)
    states = {f"s{number}": f"s{number}" for number in range(len(aggregate.initial))}
    names = {str(number): f"v{number}" for number in range(count)}
    fresh = {letter: f"fresh_{letter}" for letter in "vwxyz"}
    arguments = "".join(f"v{number}, " for number in range(count))
    checks = " and ".join(f"v{number} is not None" for number in range(count))
    step = aggregate.step.format(*names.values(), **states, **fresh)
    finish = aggregate.finish.format(**states, **fresh)
    lines = [
        "def running(rows, ends):",
        *(f"    s{n} = {initial}" for n, initial in enumerate(aggregate.initial)),
        "    at = 0",
        "    for end in ends:",
        "        while at < end:",
        "            given = rows[at]",
        "            at += 1",
        "            if given is not None:",
        f"                {arguments}= given" if count else "                pass",
        f"                if {checks if aggregate.strict and checks else 'True'}:",
        *(f"                    {line}" for line in step.split("\n")),
        f"        yield None if at < len(rows) else {finish}"
        if only_last
        else f"        yield {finish}",
    ]
    namespace: dict[str, Any] = dict(aggregate.names)
    exec("\n".join(lines), namespace)
    result: Callable[[list[Any], Iterable[int]], Iterator[Any]] = namespace["running"]
    return result
