"""Hypothetical-set aggregates: `rank(5) WITHIN GROUP (ORDER BY x)`, the rank of 5 among x.

    rank           1 + rows before              percent_rank   rows before / all rows
    dense_rank     1 + different rows before    cume_dist      (rows up to it + 1) / (all rows + 1)

Each is arithmetic on counts of the rows that sort before the given value, or equal to it.
"""

from __future__ import annotations

from typing import Final

from qserver.errors import UndefinedFunction
from qserver.functions.resolve import resolve_aggregate
from qserver.sql import ast
from qserver.sql.binder.expressions.calling import operator
from qserver.sql.binder.expressions.coercion import alike, settled
from qserver.sql.binder.expressions.copies import again
from qserver.sql.binder.expressions.operands import Operand, RowValue
from qserver.sql.binder.expressions.rows import compare, conjunction, disjunction
from qserver.sql.binder.names.scope import Scope, leftmost
from qserver.sql.binder.queries.aggregates import (
    bind_filter,
    direct_argument,
    place_aggregate,
    sort_key,
)
from qserver.sql.expressions import AggregateCall, Case, Constant, Expression, IsNull, SortKey
from qserver.values.types import BIGINT, BOOLEAN, DOUBLE

HYPOTHETICAL: Final = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})


def bind_hypothetical(scope: Scope, node: ast.Call, name: str) -> Expression:
    given, keys = node.arguments, node.within_group
    if len(given) != len(keys):
        raise UndefinedFunction(
            f"function {name} with WITHIN GROUP does not exist for these arguments",
            hint=f"To use the hypothetical-set aggregate {name}, the number of hypothetical direct"
            f" arguments (here {len(given)}) must match the number of ordering columns"
            f" (here {len(keys)}).",
            position=node.position + 1,
        )
    pairs: list[tuple[SortKey, Expression]] = []
    for argument, item in zip(given, keys, strict=True):
        places = [leftmost(item.expression), leftmost(argument)]
        operands: list[Operand] = [scope.bind(item.expression), scope.bind(argument)]
        (key, value), _ = alike(scope.binding, operands, "WITHIN GROUP", places)
        pairs.append((sort_key(item, key), direct_argument(scope, value)))
    return _Counts(scope, node, pairs).value(name)


class _Counts:
    """Counts rows with aggregates of the query, and combines the counts."""

    def __init__(
        self, scope: Scope, node: ast.Call, pairs: list[tuple[SortKey, Expression]]
    ) -> None:
        self.scope = scope
        self.node = node
        self.pairs = pairs

    def value(self, name: str) -> Expression:
        one = Constant(1, BIGINT)
        if name == "rank":
            return self._sum(self._count(self._before()), one)
        if name == "dense_rank":
            rows = RowValue(tuple([self._again(key) for key, _ in self.pairs]), self.node.position)
            different = settled(self.scope.binding, rows)
            return self._sum(self._count(self._before(), different), one)
        if name == "percent_rank":
            every = self._count(None)
            share = self._share(self._count(self._before()), every)
            nobody = compare(self.scope.binding, "=", every, Constant(0, BIGINT), -1)
            return Case(((nobody, Constant(0.0, DOUBLE)),), share, DOUBLE)
        reached = self._count(disjunction([self._before(), self._equal(len(self.pairs))]))
        return self._share(self._sum(reached, one), self._sum(self._count(None), one))

    # --- arithmetic ---

    def _sum(self, left: Expression, right: Expression) -> Expression:
        return operator(self.scope.binding, "+", left, right, -1)

    def _share(self, part: Expression, whole: Expression) -> Expression:
        exact = operator(self.scope.binding, "*", part, Constant(1.0, DOUBLE), -1)
        return operator(self.scope.binding, "/", exact, whole, -1)

    def _count(self, chosen: Expression | None, different: Expression | None = None) -> Expression:
        arguments = () if different is None else (different,)
        resolved = resolve_aggregate("count", [each.type for each in arguments])
        if chosen is None:  # all rows, but of the query that the keys belong to
            key = self.pairs[0][0]
            chosen = disjunction([IsNull(self._again(key)), IsNull(self._again(key), negated=True)])
        filters = [each for each in (bind_filter(self.scope, self.node), chosen) if each]
        call = AggregateCall(
            resolved.aggregate,
            arguments,
            resolved.returns,
            False,
            different is not None,
            conjunction(filters) if filters else None,
        )
        return place_aggregate(self.scope, self.node, call, self.node.name[-1])

    # --- comparison of rows with the given values ---

    def _again(self, key: SortKey) -> Expression:
        return settled(self.scope.binding, again(self.scope.binding, key.expression))

    def _before(self) -> Expression:
        """Return the condition that a row sorts before the values; the first difference decides."""
        steps = []
        for number, (key, value) in enumerate(self.pairs):
            before = self._key_before(key, value)
            steps.append(conjunction([self._equal(number), before]) if number else before)
        return disjunction(steps)

    def _key_before(self, key: SortKey, value: Expression) -> Expression:
        binding = self.scope.binding
        symbol = ">" if key.descending else "<"
        compared = compare(binding, symbol, self._again(key), again(binding, value), -1)
        first, last = Constant(key.nulls_first, BOOLEAN), Constant(not key.nulls_first, BOOLEAN)
        both = conjunction([IsNull(self._again(key)), IsNull(self._value(value))])
        return Case(
            (
                (both, Constant(False, BOOLEAN)),
                (IsNull(self._again(key)), first),
                (IsNull(self._value(value)), last),
            ),
            compared,
            BOOLEAN,
        )

    def _equal(self, count: int) -> Expression:
        """Return the condition that the first `count` keys are equal."""
        binding = self.scope.binding
        parts = []
        for key, value in self.pairs[:count]:
            same = compare(binding, "=", self._again(key), self._value(value), -1)
            key_null, value_null = IsNull(self._again(key)), IsNull(self._value(value))
            parts.append(disjunction([same, conjunction([key_null, value_null])]))
        return conjunction(parts)

    def _value(self, value: Expression) -> Expression:
        return settled(self.scope.binding, again(self.scope.binding, value))
