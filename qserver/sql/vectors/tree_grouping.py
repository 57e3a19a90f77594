"""The groups of a part of a vector tree: adds up each batch, and makes columns of all groups.

`count(DISTINCT x)` keeps groups of its own, by the keys and x. At the end each of them counts one
for the group of its keys.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from qserver.sql.vectors.hash_tables import VALUES_AT_ONCE
from qserver.sql.vectors.operations import Mixed
from qserver.sql.vectors.program import JoinedColumn
from qserver.sql.vectors.tree_digits import OwnDigits
from qserver.sql.vectors.tree_folding import Added, Folded
from qserver.sql.vectors.tree_groups import TextKey, counts, extremes, numbered, sums
from qserver.sql.vectors.tree_rows import TreeRows
from qserver.sql.vectors.trees import Finish, GroupCall, GroupPart
from qserver.values import vector_families as families
from qserver.values.vector_families import ColumnVector
from qserver.values.vectors import Array, Vector, decimal_of, integers


class Grouping:
    def __init__(self, part: GroupPart, finishes: tuple[Finish, ...]) -> None:
        self._part = part
        self._finishes = finishes
        self._texts = {
            at: TextKey()
            for at, step in enumerate(part.keys)
            if part.program.families[step] == families.TEXT
        }
        self._distinct_texts = TextKey()
        self._groups = Folded(len(part.keys), part.calls)
        self._distinct = {
            number: Folded(len(part.keys) + 1, ())
            for number, call in enumerate(part.calls)
            if call.distinct
        }
        """By call: the keys and the value of rows that differ."""

    @property
    def size(self) -> int:
        """Bytes in memory."""
        texts = sum([each.size for each in (*self._texts.values(), self._distinct_texts)])
        return texts + sum([each.size for each in (self._groups, *self._distinct.values())])

    def add(self, rows: TreeRows) -> Generator[None, None, None]:
        """Add up a batch; others may run after each step."""
        part, program = self._part, self._part.program
        steps = [*part.keys]
        for call in part.calls:
            steps += [each for each in (call.argument, call.filter) if each is not None]
        wanted = tuple(dict.fromkeys(steps))
        vectors = dict(zip(wanted, rows.values(program, wanted), strict=True))
        keys = [self._key(at, vectors[step]) for at, step in enumerate(part.keys)]
        found = numbered(keys, rows.length)
        call_counts, results = [counts(found, None)], []
        for number, call in enumerate(part.calls):
            argument = None if call.argument is None else vectors[call.argument]
            valid = None if call.filter is None else vectors[call.filter].values
            if argument is not None and argument.nulls is not None:
                valid = ~argument.nulls if valid is None else valid & ~argument.nulls
            if call.distinct:
                assert argument is not None, "there are values to tell apart"
                yield from self._add_distinct(number, keys, argument, valid)
                valid = None
            call_counts.append(call_counts[0] if valid is None else counts(found, valid))
            results.append(_result(call, argument, found, valid))
        first = [key.chosen(found.first) for key in keys]
        self._groups.add(Added(first, call_counts, results))
        yield from self._groups.in_time()

    def _key(self, at: int, vector: Vector) -> Vector:
        known = self._texts.get(at)
        return vector if known is None else known.numbered(vector)

    def _add_distinct(
        self, number: int, keys: list[Vector], argument: Vector, valid: Array | None
    ) -> Generator[None, None, None]:
        """Keep the values that differ."""
        if argument.words is not None or argument.values.dtype == np.object_:
            argument = self._distinct_texts.numbered(argument)
        every = [*keys, argument]
        if valid is not None:
            every = [each.chosen(np.flatnonzero(valid)) for each in every]
        length = len(every[-1].values)
        if not length:
            return
        found = numbered(every, length)
        first = [each.chosen(found.first) for each in every]
        self._distinct[number].add(Added(first, [np.ones(found.number, np.int64)], []))
        yield None
        yield from self._distinct[number].in_time()

    # --- all of it ---

    def finished(self) -> Generator[None, None, tuple[dict[JoinedColumn, Vector], int]]:
        """Return the columns of the groups, and their number; others may run after each."""
        part = self._part
        if self._distinct:
            yield from self._groups.fold()
        whole = yield from self._groups.whole()
        if whole is None:
            return self._of_nothing()
        columns = {}
        for at, key in enumerate(whole.keys):
            yield None
            if at in self._texts:
                key = self._texts[at].texts(key.values, key.nulls)
            columns[self._column(at)] = key
        for number, call in enumerate(part.calls):
            yield None
            total = whole.counts[number + 1]
            if call.distinct:
                total = yield from self._distinct_counts(number, whole.length)
            if call.name == "count":
                vector = integers(total, None)
            else:
                vector = self._given(call, _with_bounds(whole.results[number]), total)
            columns[self._column(len(part.keys) + number)] = vector
        return columns, whole.length

    def _column(self, at: int) -> JoinedColumn:
        return JoinedColumn(self._part.source, ColumnVector(at, self._part.families[at]))

    def _given(self, call: GroupCall, result: Vector, total: Array) -> Vector:
        """Return the values of a call; NULL where there was none."""
        nulls = None if total.all() else total == 0
        if isinstance(result, Mixed):
            scale = result.scale

            def with_digits(value: int, digits: int) -> Any:
                return decimal_of(value // 10 ** (scale - digits), digits)

            return OwnDigits(with_digits, result.values, result.scales, nulls)
        if call.name != "avg":
            return Vector(result.values, nulls, result.low, result.high, result.scale)
        finish = self._finishes[call.finish]
        if call.family != families.NUMERIC:
            return OwnDigits(finish, result.values, total, nulls)
        scale = result.scale

        def average(value: int, count: int) -> Any:
            return finish(decimal_of(value, scale), count)

        return OwnDigits(average, result.values, total, nulls)

    def _distinct_counts(self, number: int, groups: int) -> Generator[None, None, Array]:
        """Return for each group how many values there are."""
        found = np.zeros(groups, np.int64)
        different = yield from self._distinct[number].whole()
        if different is None:
            return found
        keys = different.keys[:-1]
        for start in range(0, different.length, VALUES_AT_ONCE):
            stop = min(start + VALUES_AT_ONCE, different.length)
            some = [key.cut(start, stop) for key in keys]
            places = yield from self._groups.places(some, stop - start)
            found += np.bincount(places, minlength=groups)
            yield None
        return found

    def _of_nothing(self) -> tuple[dict[JoinedColumn, Vector], int]:
        """Return one row if there are no keys, as for no rows."""
        if self._part.keys:
            return {}, 0
        columns = {}
        for number, call in enumerate(self._part.calls):
            if call.name == "count":
                vector = Vector(np.zeros(1, np.int64), None)
            else:
                vector = Vector(np.ones(1, np.int64), np.ones(1, np.bool_), 1, 1)
            columns[self._column(number)] = vector
        return columns, 1


def _with_bounds(result: Vector) -> Vector:
    found = integers(result.values, None, result.scale)
    if not isinstance(result, Mixed):
        return found
    made = Mixed(found.values, None, found.low, found.high, found.scale)
    made.scales = result.scales
    return made


def _result(call: GroupCall, argument: Vector | None, found: Any, valid: Array | None) -> Any:
    if call.name == "count":
        return None
    assert argument is not None, "all others have an argument"
    if call.name in ("min", "max"):
        best = extremes(found, argument.values, valid, call.name == "min")
        return Vector(best, None, 0, 0, argument.scale)
    added = Vector(sums(found, argument, valid), None, 0, 0, argument.scale)
    if not call.is_mixed:
        return added
    scales = np.full(len(found.groups), argument.scale)
    if isinstance(argument, Mixed):
        scales = np.broadcast_to(argument.scales, scales.shape)
    made = Mixed(added.values, None, 0, 0, argument.scale)
    made.scales = extremes(found, scales, valid, least=False)
    return made
