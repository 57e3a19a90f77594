"""Tries the chunks of a scan, and hands out the rows that row code must take.

    for page in filter_0.pages(scan_chunks(…), context, constants):      a filter: rows that match
    for page in aggregate_0.pages(scan_chunks(…), context, …, groups):   an aggregate: nothing left

A page of a refused chunk is a plain list, as every page of a small table. A taken chunk leaves a
`Matched` list: the condition holds for its rows, and an aggregate has no rows left. So generated
code loops over pages as ever; it only does not check the condition of a `Matched` one.

The modules with numpy are imported when the first chunk is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from qserver.sql.execution import Chunk, Context
from qserver.sql.vectors.plans import Aggregation, Condition, Constants, Matched
from qserver.values.keys import Row

ROWS_OF_STEP = 64
"""The rows of a chunk that cost one step in each step of its program."""

VALUES_FILLED_OF_STEP = 2
"""The values that are made vectors at the cost of one step."""


@dataclass(frozen=True, slots=True, eq=False)
class VectorFilter:
    """Finds the rows of each chunk that satisfy a condition."""

    condition: Condition

    def pages(
        self, parts: Iterable[Chunk | list[Row]], context: Context, constants: Constants
    ) -> Iterator[list[Row]]:
        from qserver.sql.vectors.attempts import Attempts  # imports numpy

        attempts = Attempts(self.condition, constants)
        return _pages(parts, context, len(self.condition.program.steps), attempts.filtered)


@dataclass(frozen=True, slots=True, eq=False)
class VectorAggregate:
    """Adds each chunk to the states of its groups, in a dict that row code uses too."""

    condition: Condition
    aggregation: Aggregation

    def pages(
        self,
        parts: Iterable[Chunk | list[Row]],
        context: Context,
        constants: Constants,
        groups: dict[Any, list[Any]],
        new_group: Callable[[], list[Any]],
    ) -> Iterator[list[Row]]:
        from qserver.sql.vectors.attempts import Attempts

        attempts = Attempts(self.condition, constants)

        def take(chunk: Chunk) -> Matched | None:
            return attempts.aggregated(self.aggregation, chunk, context, groups, new_group)

        made = self.aggregation
        steps = len(self.condition.program.steps) + len(made.program.steps) + 2 * len(made.calls)
        return _pages(parts, context, steps, take)


def _pages(
    parts: Iterable[Chunk | list[Row]],
    context: Context,
    steps: int,
    take: Callable[[Chunk], Matched | None],
) -> Iterator[list[Row]]:
    """Yield the pages that are left for row code, and charge the context for the others."""
    for part in parts:
        if isinstance(part, list):
            yield part
            continue
        matched = take(part)
        context.work += part.length * (steps + 1) // ROWS_OF_STEP
        context.work += part.filled // VALUES_FILLED_OF_STEP
        if matched is None:
            yield from part.runs()
        else:
            yield matched
