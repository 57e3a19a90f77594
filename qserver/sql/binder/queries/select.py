"""Binds one SELECT and assembles its clauses into a plan.

    FROM → WHERE → GROUP BY → HAVING → windows → row functions → DISTINCT, ORDER BY, LIMIT

    sort after           sort before          (when a key is no item of the list)

    Limit                Project
      Sort                 Limit
        Distinct             Distinct on …
          Project              Sort
            …                    …

Clauses are bound in the order FROM, list, WHERE, HAVING, ORDER BY, GROUP BY, DISTINCT, LIMIT,
windows, because PostgreSQL reports the first error in that order. The window of a call is bound
with the call, and its errors wait.
"""

from __future__ import annotations

from collections.abc import Sequence

from qserver.sql import ast
from qserver.sql.binder.clauses import Clause
from qserver.sql.binder.expressions.coercion import condition, implicit, settled
from qserver.sql.binder.expressions.copies import copied
from qserver.sql.binder.expressions.operands import Unknown
from qserver.sql.binder.expressions.prepared import Finished, Prepared, PreparedColumn
from qserver.sql.binder.expressions.row_functions import (
    functions_named,
    functions_of_windows,
    join_row_functions,
)
from qserver.sql.binder.expressions.subqueries import retyped
from qserver.sql.binder.names.scope import Scope, leftmost
from qserver.sql.binder.queries.aggregates import sort_key
from qserver.sql.binder.queries.group_by import GroupBy
from qserver.sql.binder.queries.grouping import Grouping
from qserver.sql.binder.queries.ordering import (
    OrderKey,
    bind_bounds,
    bind_distinct_on,
    bind_order,
    check_comparable,
    check_distinct_on,
    keys_for_distinct,
    output_keys,
)
from qserver.sql.binder.queries.outputs import Output, bind_targets, typed
from qserver.sql.binder.queries.window_frames import define_windows
from qserver.sql.binder.queries.windows import bind_definitions
from qserver.sql.binder.tables.joins import bind_from
from qserver.sql.binder.tables.locking import check_locked_select, locked_sources
from qserver.sql.expressions import Column, Expression
from qserver.sql.plan import (
    Distinct,
    Filter,
    FunctionScan,
    OutputColumn,
    Plan,
    Project,
    Sort,
    Window,
)
from qserver.sql.walk import substituted
from qserver.values.types import SqlType


def prepare_select(scope: Scope, select: ast.Select, query: ast.Query) -> Prepared:
    """Bind a SELECT; `query` has its ORDER BY and LIMIT."""
    bound = _Select(scope, select, query)
    prepared_columns = [
        PreparedColumn(each.name, each.operand.type, each.position, each.operand)
        for each in bound.outputs
    ]
    return Prepared(tuple(prepared_columns), bound.complete, bound.is_plain(query))


class _Select:
    def __init__(self, scope: Scope, select: ast.Select, query: ast.Query) -> None:
        self.select = select
        self.level = scope.level
        self.input, self.scope = bind_from(scope, locked_sources(select.sources, query.locking))
        define_windows(self.level, select.windows)
        self.outputs: list[Output] = bind_targets(self.scope, select.targets, Clause.TARGETS)
        self.where = self._condition(select.where, Clause.WHERE)
        self.having = self._condition(select.having, Clause.HAVING)
        self.order = bind_order(self.scope, query.order_by, self.outputs)
        self.group_by = GroupBy(self.scope, self.outputs)
        self.group_by.bind(select.group_by, select.group_by_distinct)
        for key in self.group_by.keys:
            check_comparable(key.type, -1)
        self.on = bind_distinct_on(self.scope, select.distinct_on, self.outputs)
        if self.on:
            check_distinct_on(self.scope, self.on, self.order, select.distinct_on)
        elif select.distinct:
            for output in self.outputs:
                check_comparable(typed(self.scope, output).type, output.position)
            self.order = keys_for_distinct(self.scope, self.order, self.outputs)
        self.bounds = bind_bounds(self.scope, query)
        unused = bind_definitions(self.scope, select.windows)
        if query.locking:
            check_locked_select(self.scope, select, query.locking)
        self.level.windows += unused

    def _condition(self, node: ast.Expression | None, clause: Clause) -> Expression | None:
        if node is None:
            return None
        operand = self.scope.bind_in(clause, node)
        return condition(self.scope.binding, operand, clause.value, leftmost(node))

    # --- assembly ---

    def complete(self, wanted: Sequence[SqlType | None]) -> Finished:
        binding, level = self.scope.binding, self.level
        expressions = [
            settled(binding, output.operand)
            if target is None or not isinstance(output.operand, Unknown)
            else implicit(binding, output.operand, target)
            for output, target in zip(self.outputs, wanted, strict=True)
        ]
        plan = self.input
        if self.where is not None:
            plan = Filter(plan, self.where)
        early, late = self._row_functions()
        plan = join_row_functions(self.scope, plan, early)
        if self._is_grouped():
            level.sources.update(each.source for each in early)
            plan, expressions, late = self._grouped(plan, expressions, late)
        if level.windows:
            first, late, shared = functions_of_windows(self.scope, level.windows, late)
            plan = join_row_functions(self.scope, plan, first)
            plan = Window(plan, level.window_source, tuple(level.windows))
            expressions = [substituted(each, shared) for each in expressions]
            self.order = [
                OrderKey(key.item, key.output, substituted(key.expression, shared))
                for key in self.order
            ]
            self.on = [(at, substituted(each, shared)) for at, each in self.on]
        plan = join_row_functions(self.scope, plan, late)
        query = self._projected(plan, expressions, wanted)
        types = [
            target or column.type for target, column in zip(wanted, query.columns, strict=True)
        ]
        return retyped(self.scope, query, types)

    def _is_grouped(self) -> bool:
        level = self.level
        return bool(
            self.select.group_by or self.having is not None or level.calls or level.groupings
        )

    def is_plain(self, query: ast.Query) -> bool:
        level, bounds = self.level, self.bounds
        changed = level.windows or level.row_functions or self.select.distinct or query.locking
        bounded = bounds.limit is not None or bounds.offset is not None
        return not (self._is_grouped() or changed or self.order or bounded)

    def _row_functions(self) -> tuple[list[FunctionScan], list[FunctionScan]]:
        """Split set-returning functions: those that grouping uses come before it, others last."""
        functions = self.level.row_functions
        if not functions:
            return [], []
        return functions_named((*self.group_by.keys, *self.level.calls), functions)

    def _grouped(
        self, plan: Plan, expressions: list[Expression], late: list[FunctionScan]
    ) -> tuple[Plan, list[Expression], list[FunctionScan]]:
        """Return the plan up to HAVING, and everything later in terms of it."""
        level = self.level
        keyed = self.group_by
        grouping = Grouping(self.scope, keyed.keys, keyed.sets, keyed.of_outputs)
        grouping.add_dependent(
            [
                *expressions,
                *([] if self.having is None else [self.having]),
                *[key.expression for key in self.order],
                *[each for _, each in self.on],
                *level.windows,
                *late,
            ]
        )
        expressions = [grouping.output(at, each) for at, each in enumerate(expressions)]
        having = None if self.having is None else grouping.grouped(self.having)
        self.order = [
            OrderKey(key.item, key.output, grouping.output(key.output, key.expression))
            for key in self.order
        ]
        self.on = [(at, grouping.output(at, each)) for at, each in self.on]
        level.windows = [grouping.grouped(each) for each in level.windows]
        late = [grouping.grouped(each) for each in late]
        grouping.check_directs()
        plan = grouping.plan(plan)
        return (plan if having is None else Filter(plan, having)), expressions, late

    def _projected(
        self, plan: Plan, expressions: list[Expression], wanted: Sequence[SqlType | None]
    ) -> Finished:
        """Add the projection, and before or after it DISTINCT, ORDER BY and LIMIT."""
        if not self.select.distinct:
            expressions = [
                each if target is None else implicit(self.scope.binding, each, target)
                for each, target in zip(expressions, wanted, strict=True)
            ]
        source = self.scope.binding.new_source()
        columns = tuple(
            [
                OutputColumn(output.name, each.type, each.nullable)
                for output, each in zip(self.outputs, expressions, strict=True)
            ]
        )
        if all(key.output is not None for key in self.order) and all(
            at is not None for at, _ in self.on
        ):
            plan = Project(plan, source, tuple(expressions), columns)
            return Finished(self._sorted_after(plan, source, columns), source, columns)
        plan = self._sorted_before(plan)
        return Finished(Project(plan, source, tuple(expressions), columns), source, columns)

    def _sorted_after(self, plan: Plan, source: int, columns: Sequence[OutputColumn]) -> Plan:
        if self.select.distinct and not self.on:
            plan = Distinct(plan, source)
        keys = output_keys(self.order, source, columns)
        if keys:
            plan = Sort(plan, tuple(keys))
        if self.on:
            on = [
                Column(source, at, columns[at].type, columns[at].nullable, columns[at].name)
                for at, _ in self.on
                if at is not None
            ]
            plan = Distinct(plan, source, tuple(on))
        return self.bounds.around(self.scope.binding, plan, keys)

    def _sorted_before(self, plan: Plan) -> Plan:
        binding = self.scope.binding
        keys = [sort_key(key.item, copied(binding, key.expression)) for key in self.order]
        if keys:
            plan = Sort(plan, tuple(keys))
        if self.on:
            plan = Distinct(plan, 0, tuple([copied(binding, each) for _, each in self.on]))
        return self.bounds.around(self.scope.binding, plan, keys)
