"""Rewrites expressions after GROUP BY in terms of keys and aggregates.

    SELECT a + 1, sum(b) FROM t GROUP BY a + 1      →  g.0, g.1
    SELECT a FROM t GROUP BY a + 1                  →  column "t.a" must appear in …

The select list, HAVING, ORDER BY and windows are bound as if there were no grouping; here each
expression equal to a key becomes that key's column, each aggregate its column, and a remaining
column of FROM is an error.

A primary key determines its row: if the keys include one, the other columns of its table may be
named; they become keys, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from qserver.errors import GroupingError
from qserver.sql import expressions
from qserver.sql.binder.expressions.operands import located
from qserver.sql.binder.expressions.same import Alike, constant_in
from qserver.sql.binder.names.relations import Relation
from qserver.sql.binder.names.scope import Scope
from qserver.sql.binder.queries.aggregates import grouping_bits
from qserver.sql.expressions import (
    AggregateCall,
    Case,
    Column,
    Constant,
    Direct,
    Expression,
    GroupKey,
    Slot,
)
from qserver.sql.plan import Aggregate, Join, OneRow, OutputColumn, Plan, Project
from qserver.sql.walk import everything, is_volatile, rewritten, substituted, with_parts
from qserver.values.types import INTEGER

_SUBQUERIES = frozenset(
    {
        expressions.ScalarQuery,
        expressions.Exists,
        expressions.InQuery,
        expressions.Quantified,
        expressions.ArrayQuery,
    }
)


def _computed_once(
    scope: Scope, input: Plan, calls: Sequence[AggregateCall]
) -> tuple[Plan, list[AggregateCall]]:
    """Compute volatile arguments before the grouping: a row of many groups has one value."""
    if not any(is_volatile(each) for call in calls for each in call.arguments):
        return input, list(calls)
    source = scope.binding.new_source()
    values: list[Expression] = []
    found: list[AggregateCall] = []
    for call in calls:
        arguments = list(call.arguments)
        for at, argument in enumerate(arguments):
            if is_volatile(argument) and not _has_key(argument):
                arguments[at] = Column(source, len(values), argument.type, True, "")
                wanted = call.filter
                values.append(argument if wanted is None else _if(wanted, argument))
        found.append(replace(call, arguments=tuple(arguments)))
    columns = tuple([OutputColumn("", each.type, True) for each in values])
    row = Project(OneRow(), source, tuple(values), columns)
    return Join("inner", input, row, None, lateral=True), found


def _has_key(expression: Expression) -> bool:
    return any(type(each) is GroupKey for each in everything(expression))


def _if(wanted: Expression, value: Expression) -> Expression:
    return Case(((wanted, value),), Constant(None, value.type), value.type)


class Grouping:
    """The grouping of one query. `scope` is that of its expressions."""

    def __init__(
        self,
        scope: Scope,
        keys: Sequence[Expression],
        sets: tuple[tuple[int, ...], ...] | None,
        of_outputs: Mapping[int, int],
    ) -> None:
        self.scope = scope
        self.level = scope.level
        self.keys = list(keys)
        self.sets = sets
        self._of_outputs = of_outputs
        self.source = scope.binding.new_source()
        self._alike = Alike(scope.literals)
        self._subqueries = 0

    def plan(self, input: Plan) -> Aggregate:
        calls = [rewritten(call, self._of_group) for call in self.level.calls]
        if self.sets is not None and len(self.sets) > 1:
            input, calls = _computed_once(self.scope, input, calls)
        return Aggregate(input, self.source, tuple(self.keys), tuple(calls), self.sets)

    def _of_group(self, node: Any) -> Any:
        """Return what stands before WITHIN GROUP over the keys of each grouping set."""
        if type(node) is not Direct:
            return None
        if self.sets is None:
            return node.expression
        keys: dict[tuple[int, int], Expression] = {
            (self.source, at): GroupKey(at, key) for at, key in enumerate(self.keys)
        }
        return substituted(self.grouped(node.expression), keys)

    def check_directs(self) -> None:
        """Require that arguments before WITHIN GROUP are the same in all rows of a group."""
        for each in self.level.directs:
            self.grouped(each)

    def add_dependent(self, expressions: Iterable[Any]) -> None:
        """Add the columns that a primary key among the keys determines as keys."""
        decided = set() if self.sets is not None else set(self._decided_sources())
        if not decided:
            return
        named = {(key.source, key.position) for key in self.keys if isinstance(key, Column)}
        for expression in expressions:
            for each in everything(expression):
                if type(each) is not Column or each.source not in decided:
                    continue
                if (each.source, each.position) not in named:
                    named.add((each.source, each.position))
                    self.keys.append(each)

    def _decided_sources(self) -> Iterable[int]:
        named = {(key.source, key.position) for key in self.keys if isinstance(key, Column)}
        for relation in self.level.entries:
            if isinstance(relation, Relation) and relation.table is not None:
                table = relation.table
                if not table.has_row_id and all(
                    (relation.source, at) in named for at in table.primary_key
                ):
                    yield relation.source

    def grouped(self, expression: Any) -> Any:
        """Rewrite the expression over keys and aggregates."""
        return rewritten(expression, self._change)

    def output(self, at: int | None, expression: Expression) -> Expression:
        """Rewrite an item of the select list, or what refers to it, which may be a key itself."""
        key = None if at is None else self._of_outputs.get(at)
        if key is not None and self.keys[key].type == expression.type:
            return self._key(key)
        found: Expression = self.grouped(expression)
        return found

    def _change(self, node: Any) -> Any:
        kind = type(node)
        if kind is Column:
            return self._column(node)
        if kind is Slot or kind is Constant:
            at = None if self.sets is None else constant_in(node, self.keys)
            return node if at is None else self._key(at)
        at = self._alike.position(node, self.keys)
        if at is not None:
            return self._key(at)
        if kind in _SUBQUERIES:
            self._subqueries += 1
            result = with_parts(node, self.grouped)
            self._subqueries -= 1
            return result
        return None

    def _key(self, at: int) -> Column:
        key = self.keys[at]
        name = key.name if isinstance(key, Column) else ""
        return Column(self.source, at, key.type, key.nullable or self.sets is not None, name)

    def _column(self, column: Column) -> Expression:
        level = self.level
        if column.source == level.call_source:
            at = len(self.keys) + column.position
            return Column(self.source, at, column.type, column.nullable, column.name)
        if column.source == level.grouping_source:
            return self._grouping(column)
        if column.source not in level.sources:
            return column
        known = self._alike.position(column, self.keys)
        if known is not None:
            return self._key(known)
        raise self._ungrouped(column)

    def _grouping(self, column: Column) -> Expression:
        """Return GROUPING(…) as bits of the mask, which is the last column of the grouping."""
        positions: list[int] = []
        for argument, position in self.level.groupings[column.position]:
            at = self._alike.position(argument, self.keys)
            if at is None:
                raise located(
                    GroupingError(
                        "arguments to GROUPING must be grouping expressions of the "
                        "associated query level"
                    ),
                    position,
                )
            positions.append(at)
        if self.sets is None:
            return Constant(0, INTEGER)
        mask = Column(
            self.source, len(self.keys) + len(self.level.calls), INTEGER, False, "grouping"
        )
        return grouping_bits(self.scope, mask, positions, len(self.keys))

    def _ungrouped(self, column: Column) -> GroupingError:
        position = self.scope.binding.position_of(column)
        if self._subqueries:
            message = f'subquery uses ungrouped column "{column.name}" from outer query'
        else:
            message = (
                f'column "{column.name}" must appear in the GROUP BY clause '
                "or be used in an aggregate function"
            )
        error = GroupingError(message)
        located(error, position)
        return error
