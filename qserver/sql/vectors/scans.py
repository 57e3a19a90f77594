"""Tries the chunks of a scan, and yields the rows that are left for row code.

    for page in filter_0.pages(scan_chunks(…), context, constants):      a filter: rows that match
    for page in top_0.pages(scan_chunks(…), context, constants, most):   rows that may be first
    for page in aggregate_0.pages(scan_chunks(…), context, …, groups):   an aggregate: nothing left

A page of a refused chunk is a plain list, like every page of a small table. A taken chunk leaves a
`Matched` list: the condition holds for its rows; an aggregate leaves none. So generated code loops
over pages as always, and only skips the condition for a `Matched` one.

The modules with numpy are loaded by then: see `loading`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from qserver.functions.context import Context
from qserver.sql.execution import Chunk
from qserver.sql.vectors.builds import Build, Taken, filled
from qserver.sql.vectors.costs import LOOKED_UP, SORTED_ROW, calls_cost, pays_at_once, row_cost
from qserver.sql.vectors.plans import (
    ROWS_OF_STEP,
    VALUES_FILLED_OF_STEP,
    Aggregation,
    Condition,
    Constants,
    JoinPlan,
    Matched,
    Order,
    Watch,
)
from qserver.sql.vectors.program import columns_of
from qserver.sql.vectors.row_chunks import all_chunks
from qserver.values.keys import Row
from qserver.values.vector_families import ColumnVector

if TYPE_CHECKING:
    from qserver.sql.vectors.attempts import Attempts

Take: TypeAlias = Callable[[list[Chunk]], Iterable[Matched] | None]
"""Returns the pages that are left of some chunks; None if it refuses them."""

BATCH_ROWS_MAX = 65_536
"""Chunks are computed together until they have so many rows."""

BATCH_STEPS_MAX = 16_384
"""Or until they cost so many steps: one or two milliseconds, in which nothing else runs."""


@dataclass(frozen=True, slots=True, eq=False)
class VectorFilter:
    """Finds the rows of each chunk that satisfy a condition."""

    condition: Condition

    def pages(
        self, parts: Iterable[Chunk | list[Row]], context: Context, constants: Constants
    ) -> Iterator[list[Row]]:
        from qserver.sql.vectors.attempts import Attempts  # imports numpy

        attempts = Attempts(self.condition, constants)
        program = self.condition.program
        columns = columns_of(program)
        is_eager = pays_at_once(columns, row_cost(program))
        steps, take = len(program.steps), attempts.filtered
        return _pages(parts, context, columns, is_eager, steps, take, may_end=True)


@dataclass(frozen=True, slots=True, eq=False)
class VectorAggregate:
    """Adds each chunk to the states of its groups, in a dict shared with row code.

    With joins, its rows are first joined with the right sides.
    """

    condition: Condition
    aggregation: Aggregation
    joins: tuple[JoinPlan, ...] = ()
    watch: Watch | None = None

    def pages(
        self,
        parts: Iterable[Chunk | list[Row]],
        context: Context,
        constants: Constants,
        groups: dict[Any, list[Any]],
        new_group: Callable[[], list[Any]],
        *builds: Build,
    ) -> Iterator[list[Row]]:
        from qserver.sql.vectors.attempts import Attempts

        attempts = Attempts(self.condition, constants, builds)

        def take(batch: list[Chunk]) -> Iterable[Matched] | None:
            return attempts.aggregated(self.aggregation, batch, context, groups, new_group)

        tried = take if self.watch is None else _watched(take, attempts, self.watch)

        made = self.aggregation
        programs = [self.condition.program, made.program]
        for join in self.joins:
            programs += join.programs
        steps = sum([len(each.steps) for each in programs]) + 2 * len(made.calls)
        columns = columns_of(*programs)
        by_rows = row_cost(*programs) + calls_cost(made) + LOOKED_UP * len(builds)
        is_eager = pays_at_once(columns, by_rows)
        if not builds:
            return _pages(parts, context, columns, is_eager, steps, tried)
        parts = all_chunks(parts, context, len(columns))
        pages = _pages(parts, context, columns, is_eager, steps, tried)
        return _after_builds(pages, context, builds)


@dataclass(frozen=True, slots=True, eq=False)
class VectorBuild:
    """Takes the chunks of the right side of a join: see `builds`."""

    condition: Condition
    columns: tuple[ColumnVector, ...]
    watch: Watch | None = None

    def pages(
        self,
        parts: Iterable[Chunk | list[Row]],
        context: Context,
        constants: Constants,
        rows: list[Row],
        taken: list[Taken],
    ) -> Iterator[list[Row]]:
        from qserver.sql.vectors.attempts import Attempts

        attempts = Attempts(self.condition, constants)

        def take(batch: list[Chunk]) -> Iterable[Matched] | None:
            return attempts.taken(batch, rows, taken)

        tried = take if self.watch is None else _watched(take, attempts, self.watch)

        program = self.condition.program
        columns = tuple(dict.fromkeys([*columns_of(program), *self.columns]))
        return _pages(parts, context, columns, True, len(program.steps), tried)


@dataclass(frozen=True, slots=True, eq=False)
class VectorTop:
    """Finds the rows that can be among the first `most`, in the order of one key."""

    condition: Condition
    order: Order

    def pages(
        self,
        parts: Iterable[Chunk | list[Row]],
        context: Context,
        constants: Constants,
        most: int,
    ) -> Iterator[list[Row]]:
        from qserver.sql.vectors.attempts import Attempts
        from qserver.sql.vectors.first_rows import FirstRows

        attempts = Attempts(self.condition, constants)
        first = FirstRows(self.order, most)

        def take(batch: list[Chunk]) -> Iterable[Matched] | None:
            return attempts.first(first, batch)

        columns = columns_of(self.condition.program, self.order.program)
        by_rows = row_cost(self.condition.program, self.order.program) + SORTED_ROW
        is_eager = pays_at_once(columns, by_rows)
        steps = len(self.condition.program.steps) + len(self.order.program.steps) + 2
        return _pages(parts, context, columns, is_eager, steps, take)


def _watched(take: Take, attempts: Attempts, watch: Watch) -> Take:
    def watched(batch: list[Chunk]) -> Iterable[Matched] | None:
        watch.before()
        left = take(batch)
        watch.after([] if left is None else attempts.lengths)
        return left

    return watched


def _after_builds(
    pages: Iterator[list[Row]], context: Context, builds: tuple[Build, ...]
) -> Iterator[list[Row]]:
    """Vectorize the right sides first; fill hash tables before the first row for row code."""
    from qserver.sql.vectors.joins import prepare  # imports numpy

    for build in builds:
        for _ in prepare(build, context):
            yield Matched()
    for page in pages:
        if page:
            yield from filled(builds, context)
        yield page


def _pages(
    parts: Iterable[Chunk | list[Row]],
    context: Context,
    columns: tuple[ColumnVector, ...],
    is_eager: bool,
    steps: int,
    take: Callable[[list[Chunk]], Iterable[Matched] | None],
    may_end: bool = False,
) -> Iterator[list[Row]]:
    """Yield the pages left for row code, and charge the context for the others.

    If nobody may end before all is read, vectors of a packed page are filled at once.
    """
    batch: list[Chunk] = []
    vectors = None if context.pages is None else context.pages.vectors
    rows, rows_max = 0, min(BATCH_ROWS_MAX, BATCH_STEPS_MAX * ROWS_OF_STEP // (steps + 1))
    for part in parts:
        if isinstance(part, list):
            yield from _left_of(batch, context, steps, take)
            batch, rows = [], 0
            yield part
            continue
        charged = 0
        for _ in part.prepare(columns, vectors, is_eager or not (may_end or part.is_unpacked)):
            context.work += (part.filled - charged) // VALUES_FILLED_OF_STEP
            charged = part.filled
            yield Matched()
        is_ready = part.is_ready
        if is_ready:
            batch.append(part)
            rows += part.length
        if not is_ready or part.filled or rows >= rows_max:
            yield from _left_of(batch, context, steps, take)
            batch, rows = [], 0
        if not is_ready:
            yield from part.runs()
    yield from _left_of(batch, context, steps, take)


def _left_of(
    batch: list[Chunk],
    context: Context,
    steps: int,
    take: Callable[[list[Chunk]], Iterable[Matched] | None],
) -> Iterator[list[Row]]:
    """Yield what is left of some chunks; if they are refused together, each is tried alone."""
    if not batch:
        return
    matched = take(batch)
    context.work += sum([chunk.length for chunk in batch]) * (steps + 1) // ROWS_OF_STEP
    if matched is not None:
        yield Matched()  # the loop over the pages checks after each whether it has to yield
        yield from matched
    elif len(batch) == 1:
        yield from batch[0].runs()
    else:
        for chunk in batch:
            yield from _left_of([chunk], context, steps, take)
