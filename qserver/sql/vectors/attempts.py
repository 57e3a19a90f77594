"""Attempts to compute chunks: returns the result, or None if they are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from qserver.functions.context import Context
from qserver.sql.codegen.pipeline import ROWS_BETWEEN_CHECKS
from qserver.sql.execution import Chunk
from qserver.sql.vectors.aggregates import Partial, merge, partial
from qserver.sql.vectors.batches import Buffers, VectorBatch
from qserver.sql.vectors.builds import Build, Taken
from qserver.sql.vectors.first_rows import FirstRows
from qserver.sql.vectors.frames import ConstantValue, Frame, computed
from qserver.sql.vectors.grouping import Groups
from qserver.sql.vectors.joins import joined
from qserver.sql.vectors.members import members
from qserver.sql.vectors.operations import Refused, is_one
from qserver.sql.vectors.plans import (
    ROWS_OF_STEP,
    Aggregation,
    Condition,
    ConstantKind,
    Constants,
    Matched,
)
from qserver.values.keys import Row
from qserver.values.sizes import size_of
from qserver.values.vector_families import TEXT
from qserver.values.vectors import Array, Vector, constant

if TYPE_CHECKING:
    from qserver.sql.vectors.aggregates import Sums

NONE = np.empty(0, np.int64)
"""No rows."""

NOTHING_LEFT: Final = ()
"""Pages of rows that are left for row code."""


class Attempts:
    """Computes the chunks of one scan of one execution."""

    def __init__(
        self, condition: Condition, constants: Constants, builds: tuple[Build, ...] = ()
    ) -> None:
        self._condition = condition
        self._builds = builds
        self._constants = constants
        self._made: list[ConstantValue] | None = None
        self._buffers: Buffers = {}
        self.lengths: list[int] = []
        """The rows of the last batch: those that the scan found, then those after each join."""

    def _frame(self, batch: VectorBatch, chosen: Array | None = None) -> Frame:
        if self._made is None:
            self._made = constant_vectors(self._constants, self._condition.constants)
        return Frame(batch, self._made, chosen)

    def _chosen(self, batch: VectorBatch) -> Array | None:
        """Return the rows that satisfy the condition; None if all do."""
        truth = self._condition.truth
        if truth is None:
            return None
        found: Vector = computed(self._condition.program, self._frame(batch))[truth]
        if is_one(found):
            return None if found.values else NONE
        chosen = np.flatnonzero(found.values)
        return None if len(chosen) == batch.length else chosen

    # --- filters ---

    def filtered(self, chunks: list[Chunk]) -> Iterable[Matched] | None:
        batch = VectorBatch(chunks, self._buffers)
        try:
            chosen = self._chosen(batch)
        except Refused:
            return None
        return batch.rows(chosen)

    def first(self, rows: FirstRows, chunks: list[Chunk]) -> Iterable[Matched] | None:
        """Return the rows that satisfy the condition and may be among the first."""
        batch = VectorBatch(chunks, self._buffers)
        try:
            chosen = self._chosen(batch)
            if chosen is not None and not len(chosen):
                return NOTHING_LEFT
            frame = self._frame(batch, chosen)
            places = rows.among(computed(rows.order.program, frame)[rows.order.key], frame.length)
        except Refused:
            return None
        if places is None:
            return batch.rows(chosen)
        return batch.rows(places if chosen is None else chosen[places])

    # --- joins ---

    def taken(
        self, chunks: list[Chunk], rows: list[Row], taken: list[Taken]
    ) -> Iterable[Matched] | None:
        """Keep chunks of the right side of a join, without their rows."""
        batch = VectorBatch(chunks, {})  # its columns are read later
        try:
            chosen = self._chosen(batch)
        except Refused:
            return None
        self.lengths = [batch.length if chosen is None else len(chosen)]
        if chosen is None or len(chosen):
            taken.append(Taken(len(rows), batch, chosen))
            for chunk in chunks:
                chunk.forget_rows()
        return NOTHING_LEFT

    def _joined(self, frame: Frame, context: Context) -> Frame:
        self.lengths = [frame.length]
        for build in self._builds:
            if frame.length:
                frame = joined(frame, build)
                self.lengths.append(frame.length)
                context.work += frame.length // ROWS_OF_STEP
        return frame

    # --- aggregates ---

    def aggregated(
        self,
        plan: Aggregation,
        chunks: list[Chunk],
        context: Context,
        groups: dict[Any, Sums],
        new_group: Callable[[], Sums],
    ) -> Iterable[Matched] | None:
        batch = VectorBatch(chunks, self._buffers)
        try:
            chosen = self._chosen(batch)
            if chosen is not None and not len(chosen):
                self.lengths = []
                return NOTHING_LEFT
            frame = self._joined(self._frame(batch, chosen), context)
            if not frame.length:
                return NOTHING_LEFT
            vectors = computed(plan.program, frame)
            found = None
            keys: list[Any] = [()]
            if plan.keys:
                families = [plan.program.families[at] for at in plan.keys]
                keyed = [vectors[at] for at in plan.keys]
                found = Groups(keyed, families, frame.length, batch.length)
                keys = found.keys()
            states = [groups.get(key) for key in keys]
            partials = _partials(plan, vectors, found, frame.length, states)
        except Refused:
            return None
        if None in states:
            assert found is not None, "one group without keys is there from the start"
            _add_groups(context, groups, keys, found.by_first_row(), new_group)
            states = [groups[key] for key in keys]
        for call, each in zip(plan.calls, partials, strict=True):
            merge(call, each, states)  # type: ignore[arg-type]
        return NOTHING_LEFT


def constant_vectors(constants: Constants, kinds: tuple[ConstantKind, ...]) -> list[ConstantValue]:
    """Return constants as vectors; None for each that is NULL, does not fit or raises."""
    try:
        values = constants()
    except Exception:  # row code raises the same, if a row needs it
        return [None] * len(kinds)
    return [_constant(value, kind) for value, kind in zip(values, kinds, strict=True)]


def _constant(value: Any, kind: ConstantKind) -> ConstantValue:
    if value is None:
        return None
    if kind.is_list:
        return members(value, kind.family)
    text: str = value
    return text if kind.family == TEXT else constant(value, kind.family)


def _partials(
    plan: Aggregation,
    vectors: list[Any],
    groups: Groups | None,
    length: int,
    states: list[Any],
) -> list[Partial]:
    known: dict[Any, Partial] = {}
    found = []
    for call in plan.calls:
        kept = None if call.filter is None else _kept(vectors[call.filter], length)
        argument = None if call.argument is None else vectors[call.argument]
        what = "sum" if call.name == "avg" and call.family != "float" else call.name
        key = what, call.argument, call.filter, call.state if call.family == "float" else 0
        made = known.get(key)
        if made is None:
            made = known[key] = partial(call, argument, kept, groups, length, states)
        found.append(made)
    return found


def _kept(vector: Vector, length: int) -> Array | None:
    """Return the rows that pass a FILTER; None if all do."""
    if not is_one(vector):
        values: Array = vector.values
        return values
    return None if vector.values else np.zeros(length, np.bool_)


def _add_groups(
    context: Context,
    groups: dict[Any, Sums],
    keys: list[Any],
    order: list[int],
    new_group: Callable[[], Sums],
) -> None:
    """Add new groups, in the order of their first rows, and charge their memory."""
    before = len(groups)
    for at in order:
        key = keys[at]
        if key not in groups:
            groups[key] = new_group()
            context.hold_bytes(size_of(key))
    crossed = len(groups) // ROWS_BETWEEN_CHECKS - before // ROWS_BETWEEN_CHECKS
    if crossed:
        context.charge_memory(crossed * ROWS_BETWEEN_CHECKS, 1 + len(new_group()) // 4, groups)
