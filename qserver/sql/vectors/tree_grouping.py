"""The groups of a part of a vector tree: keeps what each batch adds up to, and adds it all up."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from qserver.sql.vectors.operations import Mixed, Refused
from qserver.sql.vectors.program import JoinedColumn
from qserver.sql.vectors.tree_digits import OwnDigits
from qserver.sql.vectors.tree_groups import TextKey, counts, extremes, numbered, sums
from qserver.sql.vectors.tree_rows import TreeRows, together
from qserver.sql.vectors.trees import Finish, GroupCall, GroupPart
from qserver.values import vector_families as families
from qserver.values.vector_families import ColumnVector
from qserver.values.vectors import Array, Vector, decimal_of, integers


class _Added:
    """Groups of some rows: their keys, and for each call the number of values and the result."""

    def __init__(self, keys: list[Vector], counts: list[Array], results: list[Any]) -> None:
        self.keys = keys
        self.counts = counts
        self.results = results

    @property
    def length(self) -> int:
        return len(self.counts[0])


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
        self._added: list[_Added] = []
        self._distinct: dict[int, list[list[Vector]]] = {
            number: [] for number, call in enumerate(part.calls) if call.distinct
        }
        """For each call of distinct values: keys and the value, of rows that differ."""
        self._texts_size = 0
        self.length = 0
        """The groups of each batch, and the distinct values that are kept, together."""

    def add(self, rows: TreeRows) -> int:
        """Add up a batch, and return the bytes that are kept of it."""
        part, program = self._part, self._part.program
        steps = [*part.keys]
        for call in part.calls:
            steps += [each for each in (call.argument, call.filter) if each is not None]
        wanted = tuple(dict.fromkeys(steps))
        vectors = dict(zip(wanted, rows.values(program, wanted), strict=True))
        keys = [self._key(at, vectors[step]) for at, step in enumerate(part.keys)]
        found = numbered(keys, rows.length)
        call_counts, results, different = [counts(found, None)], [], 0
        for number, call in enumerate(part.calls):
            argument = None if call.argument is None else vectors[call.argument]
            valid = None if call.filter is None else vectors[call.filter].values
            if argument is not None and argument.nulls is not None:
                valid = ~argument.nulls if valid is None else valid & ~argument.nulls
            if call.distinct:
                assert argument is not None, "there are values to tell apart"
                different += self._add_distinct(number, keys, argument, valid)
                valid = None
            call_counts.append(call_counts[0] if valid is None else counts(found, valid))
            results.append(_result(call, argument, found, valid))
        first = [key.chosen(found.first) for key in keys]
        self._added.append(_Added(first, call_counts, results))
        self.length += found.number + different
        kept = found.number * (1 + 2 * len(part.calls)) + different
        return 8 * (kept + (found.number + different) * len(keys)) + self._new_texts()

    def _new_texts(self) -> int:
        """Return the bytes of the texts that have come since it was asked last."""
        before = self._texts_size
        self._texts_size = sum(
            [each.size for each in (*self._texts.values(), self._distinct_texts)]
        )
        return self._texts_size - before

    def _key(self, at: int, vector: Vector) -> Vector:
        known = self._texts.get(at)
        return vector if known is None else known.numbered(vector)

    def _add_distinct(
        self, number: int, keys: list[Vector], argument: Vector, valid: Array | None
    ) -> int:
        """Keep the values that differ, and return their number."""
        if argument.words is not None or argument.values.dtype == np.object_:
            argument = self._distinct_texts.numbered(argument)
        every = [*keys, argument]
        if valid is not None:
            every = [each.chosen(np.flatnonzero(valid)) for each in every]
        if not len(every[-1].values):
            return 0
        first = numbered(every, len(every[-1].values)).first
        self._distinct[number].append([each.chosen(first) for each in every])
        return len(first)

    # --- all of it ---

    def finished(self) -> Generator[None, None, tuple[dict[JoinedColumn, Vector], int]]:
        """Return the columns of the groups, and their number; others may run after each."""
        part = self._part
        if not self._added:
            return self._of_nothing()
        keys = [together([each.keys[at] for each in self._added]) for at in range(len(part.keys))]
        lengths = sum([each.length for each in self._added])
        yield None
        found = numbered(keys, lengths)
        columns = {}
        for at in range(len(part.keys)):
            yield None
            key = keys[at].chosen(found.first)
            if at in self._texts:
                key = self._texts[at].texts(key.values, key.nulls)
            columns[self._column(at)] = key
        for number, call in enumerate(part.calls):
            yield None
            values = np.concatenate([each.counts[number + 1] for each in self._added])
            total = sums(found, integers(values, None), None)
            if call.distinct:
                total = yield from self._distinct_counts(number, keys, found.first, found.number)
            if call.name == "count":
                vector = integers(total, None)
            else:
                result = self._merged(number, call, found, values)
                vector = self._given(call, result, total)
            columns[self._column(len(part.keys) + number)] = vector
        return columns, found.number

    def _column(self, at: int) -> JoinedColumn:
        return JoinedColumn(self._part.source, ColumnVector(at, self._part.families[at]))

    def _merged(self, number: int, call: GroupCall, found: Any, call_counts: Array) -> Vector:
        partials: list[Vector] = [each.results[number] for each in self._added]
        if len({each.scale for each in partials}) > 1:
            raise Refused
        values = np.concatenate([each.values for each in partials])
        present = integers(values, None, partials[0].scale)
        valid = None if call_counts.all() else call_counts > 0
        if call.name in ("min", "max"):
            best = extremes(found, values, valid, call.name == "min")
            return integers(best, None, present.scale)
        total = integers(sums(found, present, valid), None, present.scale)
        if not call.is_mixed:
            return total
        made = Mixed(total.values, None, total.low, total.high, total.scale)
        scales = np.concatenate([each.scales for each in partials if isinstance(each, Mixed)])
        made.scales = extremes(found, scales, valid, least=False)
        return made

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

    def _distinct_counts(
        self, number: int, keys: list[Vector], first: Array, count: int
    ) -> Generator[None, None, Array]:
        """Return for each group how many values there are."""
        parts = self._distinct[number]
        if not parts:
            return np.zeros(count, np.int64)
        width = len(keys) + 1
        every = [together([part[at] for part in parts]) for at in range(width)]
        length = len(every[-1].values)
        yield None
        first_of = numbered(every, length).first
        yield None
        different = [each.chosen(first_of) for each in every]
        length = len(different[-1].values)
        # The groups come first, so that they have the same numbers here.
        both = [
            together([key.chosen(first), other])
            for key, other in zip(keys, different[:-1], strict=True)
        ]
        groups = numbered(both, count + length).groups[count:]
        return np.bincount(groups, minlength=count)

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
