"""Every function, operator, aggregate, cast and order of the catalogue, called with long values.

A call is one step of a statement: nothing else runs until it returns. So a call says what it costs
before it begins, and one that costs too much is refused (`functions.costs`). Here each is asked for
its cost and then called, as compiled code does it, and the processor time of both is measured. A
cost that takes long to compute, or that promises less than the call takes, stands out as a slow
step. The calls come from the catalogue itself: what is added to it is covered from that day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from random import Random
from time import thread_time
from typing import Any, Final

from qserver.errors import QserverError
from qserver.functions.all_functions import AGGREGATES, FUNCTIONS, OPERATORS, TABLE_FUNCTIONS
from qserver.functions.context import Context, CostlyCall
from qserver.functions.costs import Cost, cast_cost
from qserver.functions.resolve import (
    resolve_aggregate,
    resolve_function,
    resolve_operator,
    resolve_table_function,
)
from qserver.functions.signatures import PLACEHOLDERS
from qserver.limits import STEPS_AT_ONCE_MAX
from qserver.sql.codegen.charges import costly_call, costly_cast, costly_rows, step_cost
from qserver.sql.codegen.sorting import KEY_COSTS
from qserver.sql.codegen.window_functions import carrier
from qserver.sql.expressions import Column
from qserver.values.casts import cast_function
from qserver.values.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSON,
    JSONB,
    JSONPATH,
    NUMERIC,
    REAL,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMETZ,
    UUID_TYPE,
    Kind,
    SqlType,
    array_of,
)
from tests.hostile.long_values import SIZES, contents, value

NOW: Final = datetime(2024, 2, 29, 13, 14, 15, tzinfo=UTC)

TYPES: Final = (TEXT, INTEGER, NUMERIC, JSONB, BYTEA, DATE, array_of(INTEGER), array_of(TEXT))
"""What stands for a parameter of any type."""

ELEMENTS: Final = (INTEGER, TEXT, NUMERIC, JSONB, DOUBLE)
"""What an array of any type is of."""

_SCALARS: Final = (
    *(
        TEXT,
        BYTEA,
        JSON,
        JSONB,
        JSONPATH,
        NUMERIC,
        INTEGER,
        BIGINT,
        REAL,
        DOUBLE,
        BOOLEAN,
        UUID_TYPE,
    ),
    *(DATE, TIMESTAMP, TIMESTAMPTZ, TIME, TIMETZ, INTERVAL),
)
CAST: Final = (*_SCALARS, *map(array_of, _SCALARS))

ROWS_AT_ONCE: Final = 256
"""Rows of a table function between two yield checks."""


@dataclass(frozen=True)
class Step:
    """A call that was measured."""

    what: str
    seconds: float
    cost: int
    outcome: str
    again: Callable[[], Step] = field(repr=False)
    """Measure the same once more."""

    def __str__(self) -> str:
        promised = f"{self.cost} steps promised, {self.outcome}"
        return f"{self.seconds * 1000:.0f} ms ({promised}): {self.what}"


@dataclass(frozen=True)
class Call:
    """Something of the catalogue for exact types; `run` gets arguments and returns the cost.

    `cost` computes the cost alone.
    """

    name: str
    types: tuple[SqlType, ...]
    run: Callable[..., int]
    cost: Cost


def context() -> Context:
    return Context(NOW, Random(0), lambda: None, 2**28, lambda: 1)


def catalogue() -> Iterator[Call]:
    """All calls, with types in place of placeholders."""
    for table, way in (
        (OPERATORS, _operator),
        (FUNCTIONS, _function),
        (AGGREGATES, _aggregate),
        (TABLE_FUNCTIONS, _rows),
    ):
        for name, signatures in table.items():
            seen = set()
            for signature in signatures:
                for types in _concrete(signature.parameters):
                    call = way(name, types)
                    if call is not None and call.types not in seen:
                        seen.add(call.types)
                        yield call
    yield from _casts()
    yield from _orders()


def _concrete(parameters: Sequence[SqlType]) -> Iterator[tuple[SqlType, ...]]:
    """The parameters with types in place of placeholders, once for each type."""
    if not any(each.kind in PLACEHOLDERS for each in parameters):
        yield tuple(parameters)
        return
    has_array = any(each.kind in (Kind.ANYARRAY, Kind.ANYCOMPATIBLEARRAY) for each in parameters)
    for element in ELEMENTS if has_array else TYPES:
        yield tuple(
            array_of(element)
            if each.kind in (Kind.ANYARRAY, Kind.ANYCOMPATIBLEARRAY)
            else element
            if each.kind in PLACEHOLDERS
            else each
            for each in parameters
        )


def _operator(name: str, types: tuple[SqlType, ...]) -> Call | None:
    try:
        resolved = resolve_operator(name, types[0] if len(types) == 2 else None, types[-1])
    except QserverError:
        return None
    return _call(f"operator {name}", resolved.parameters, costly_call(resolved.function))


def _function(name: str, types: tuple[SqlType, ...]) -> Call | None:
    try:
        resolved = resolve_function(name, types)
    except QserverError:
        return None
    each = resolved.function
    if each.needs_context and (each.volatile or each.reads_catalog):
        return None  # sequences, the clock and the catalog need more than a context
    return _call(name, resolved.parameters, costly_call(resolved.function))


def _call(name: str, types: tuple[SqlType, ...], each: CostlyCall) -> Call:
    def run(*arguments: Any) -> int:
        steps = each.cost(*arguments)
        if steps <= STEPS_AT_ONCE_MAX:
            context().compute(each, *arguments)
        return steps

    return Call(name, types, run, each.cost)


def _rows(name: str, types: tuple[SqlType, ...]) -> Call | None:
    try:
        resolved = resolve_table_function(name, types)
    except QserverError:
        return None
    if resolved.function.needs_context:
        return None  # the catalog needs more than a context
    each = costly_rows(resolved.function)

    def run(*arguments: Any) -> int:
        steps = each.cost(*arguments)
        if steps <= STEPS_AT_ONCE_MAX:
            list(islice(context().compute(each, *arguments), ROWS_AT_ONCE))
        return steps

    return Call(f"rows of {name}", resolved.parameters, run, each.cost)


def _aggregate(name: str, types: tuple[SqlType, ...]) -> Call | None:
    """A step of an aggregate with two rows; what finishes it is tried by statements."""
    try:
        resolved = resolve_aggregate(name, types)
    except QserverError:
        return None
    aggregate = resolved.aggregate
    if aggregate.hypothetical or len(resolved.parameters) != len(aggregate.parameters):
        return None
    columns = [Column(1, at, each, True) for at, each in enumerate(resolved.parameters)]
    costs = [step_cost(aggregate, column) for column in columns]

    def cost_of_all(*arguments: Any) -> int:
        return sum(
            cost(each) for cost, each in zip(costs, arguments, strict=True) if cost is not None
        )

    def run(*arguments: Any) -> int:
        steps = cost_of_all(*arguments)
        if steps <= STEPS_AT_ONCE_MAX:
            list(carrier(aggregate, only_last=True)([arguments, arguments], [2]))
        return steps

    return Call(f"aggregate {name}", resolved.parameters, run, cost_of_all)


def _casts() -> Iterator[Call]:
    for source in CAST:
        for target in CAST:
            try:
                function = cast_function(source, target)
            except QserverError:
                continue
            each = costly_cast(function, cast_cost(source, target), target)
            yield _call(f"cast to {target}", (source,), each)


def _orders() -> Iterator[Call]:
    """Keys of sorts, and hashes of groups and joins."""
    for sql_type in CAST:
        each = KEY_COSTS.get(sql_type.kind)
        if each is not None:
            yield _call("key of a sort", (sql_type,), each)
        equal = (
            costly_call(resolve_operator("=", sql_type, sql_type).function)
            if (sql_type.kind not in (Kind.JSON, Kind.JSONPATH))
            else None
        )
        if equal is None:
            continue
        looked_up = CostlyCall("hash", lambda item: hash(item), equal.cost, makes_long=False)
        yield _call("hash", (sql_type,), looked_up)


def steps(random: Random, sizes: Sequence[int] = SIZES, tries: int = 12) -> Iterator[Step]:
    """Measure all calls, in an order of chance, with some arguments each.

    Each parameter comes in the largest sizes with short values beside it; then `tries` arguments of
    chance.
    """
    calls = list(catalogue())
    random.shuffle(calls)
    for call in calls:
        for given in _arguments(random, call.types, sizes, tries):
            yield measured(call, given)


Given = tuple[tuple[str, int], ...]


def _arguments(
    random: Random, types: tuple[SqlType, ...], sizes: Sequence[int], tries: int
) -> Iterator[Given]:
    if not types or not all(map(contents, types)):
        return
    for at in range(len(types)):  # each parameter alone is long
        drawn = [random.choice(contents(each)) for each in types]
        for size in sizes[-3:]:
            yield tuple(
                (content, size if at == place else sizes[0]) for place, content in enumerate(drawn)
            )
    for _ in range(tries):
        yield tuple((random.choice(contents(each)), random.choice(sizes)) for each in types)


def measured(call: Call, given: Given) -> Step:
    """Run a call and measure its processor time; again if it was slow, for what it waited for."""
    again = partial(measured, call, given)
    arguments = [value(each, *how) for each, how in zip(call.types, given, strict=True)]
    shown = ", ".join(
        f"{each} {content!r} of {size}"
        for each, (content, size) in zip(call.types, given, strict=True)
    )
    what = f"{call.name}({shown})"
    if None in arguments and len(arguments) > 0:
        return Step(what, 0.0, 0, "no such value", again)
    best, cost, outcome = float("inf"), 0, "done"
    for _ in range(3):
        began = thread_time()
        try:
            cost = call.run(*arguments)
            outcome = "refused" if cost > STEPS_AT_ONCE_MAX else "done"
        except QserverError as error:
            outcome = error.code
        except (TypeError, ArithmeticError) as error:  # records whose parts do not compare
            outcome = repr(error)
        best = min(best, thread_time() - began)
        if best < SLOW_SECONDS:
            break
    return Step(what, best, cost, outcome, again)


SLOW_SECONDS: Final = 0.05
