"""Binds aggregates and GROUPING(…).

    SELECT (SELECT max(t.a + u.b) FROM u) FROM t      an aggregate of the inner query
    SELECT (SELECT max(t.a) FROM u) FROM t            one of the outer query

An aggregate belongs to the innermost query whose columns its arguments name. That query must be in
a clause that allows aggregates, and computes the value: the expression gets a column of the query's
provisional source, which `grouping` replaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qserver.errors import (
    FeatureNotSupported,
    GroupingError,
    InvalidColumnReference,
    SqlSyntaxError,
    UndefinedFunction,
    WrongObjectType,
)
from qserver.functions.resolve import (
    ResolvedAggregate,
    is_ordered_set_aggregate,
    resolve_aggregate,
)
from qserver.sql import ast
from qserver.sql.binder.clauses import Clause, refuse_aggregate, refuse_grouping
from qserver.sql.binder.expressions.calling import operator, resolved_by
from qserver.sql.binder.expressions.coercion import condition, implicit, settled, with_blanks
from qserver.sql.binder.expressions.copies import again
from qserver.sql.binder.expressions.operands import Operand, RowValue, located
from qserver.sql.binder.expressions.same import same
from qserver.sql.binder.names.scope import Level, Scope, leftmost
from qserver.sql.expressions import (
    AggregateCall,
    Column,
    Constant,
    Direct,
    Expression,
    SortKey,
)
from qserver.sql.walk import everything, rewritten
from qserver.values.types import INTEGER, SqlType


def bind_aggregate(scope: Scope, node: ast.Call, name: str) -> Expression:
    return place_aggregate(scope, node, _call(scope, node, name), name)


def place_aggregate(scope: Scope, node: ast.Call, call: AggregateCall, name: str) -> Expression:
    """Return the column for the call's value, which the owning query computes."""
    level = _owner(scope, [rewritten(call, _without_direct)])
    _check_directs(scope, level, call)
    _check_contents(scope, level, call)
    error = refuse_aggregate(level.clause)
    if error is not None:
        raise located(error, node.position)
    level.call_source = level.call_source or scope.binding.new_source()
    at = level.alike_calls.position(call, level.calls)
    if at is None:
        at = len(level.calls)
        level.calls.append(call)
    column = Column(level.call_source, at, call.type, call.nullable, name)
    scope.binding.remember(column, node.position)
    return column


def _call(scope: Scope, node: ast.Call, name: str) -> AggregateCall:
    """Bind the aggregate with its arguments, filter and order, over the rows of its query."""
    binding = scope.binding
    operands = aggregate_arguments(scope, node, name)
    ordered = node.within_group or node.order_by
    keys = [scope.bind(item.expression) for item in ordered]
    if node.within_group:
        operands = [*operands, *keys]
    resolved = resolve(scope, name, operands, node)
    arguments = cast_arguments(scope, resolved, operands, node.position)
    if name.startswith("json"):  # they print their arguments
        arguments = tuple([with_blanks(each) for each in arguments])
    if node.within_group:
        direct = len(arguments) - len(keys)
        keys = [again(binding, each) for each in arguments[direct:]]
        arguments = (
            *[direct_argument(scope, each) for each in arguments[:direct]],
            *arguments[direct:],
        )
    order_by = tuple(
        [sort_key(item, settled(binding, key)) for item, key in zip(ordered, keys, strict=True)]
    )
    if node.distinct:
        _check_distinct(scope, node, operands, keys)
        if resolved.aggregate.ordered and not order_by:
            # PostgreSQL implements DISTINCT by a sort, so the values come sorted.
            copies = [settled(binding, again(binding, each)) for each in arguments]
            order_by = tuple([SortKey(copy) for copy in copies])
    return AggregateCall(
        resolved.aggregate,
        arguments,
        resolved.returns,
        resolved.aggregate.gives_null,
        node.distinct,
        bind_filter(scope, node),
        order_by,
    )


def direct_argument(scope: Scope, value: Expression) -> Expression:
    """Return an argument before WITHIN GROUP, which `grouping` finds if it names columns."""
    scope.level.directs.append(value)
    named = any(type(each) is Column for each in everything(value))
    return Direct(value) if named else value


def aggregate_arguments(scope: Scope, node: ast.Call, name: str) -> list[Operand]:
    """Bind the arguments; a star has none."""
    if is_ordered_set_aggregate(name) and not node.within_group:
        raise WrongObjectType(
            f"WITHIN GROUP is required for ordered-set aggregate {name}",
            position=node.position + 1,
        )
    if node.within_group and not is_ordered_set_aggregate(name):
        raise WrongObjectType(
            f"{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP",
            position=node.position + 1,
        )
    if name == "count" and not node.star and not node.arguments:
        raise WrongObjectType(
            "count(*) must be used to call a parameterless aggregate function",
            position=node.position + 1,
        )
    if node.star and name != "count":
        raise UndefinedFunction(
            f"function {name}() does not exist",
            hint="No function matches the given name and argument types. "
            "You might need to add explicit type casts.",
            position=node.position + 1,
        )
    operands = [scope.bind(argument) for argument in node.arguments]
    return [
        settled(scope.binding, each) if isinstance(each, RowValue) else each for each in operands
    ]


def resolve(
    scope: Scope, name: str, operands: Sequence[Operand], node: ast.Call
) -> ResolvedAggregate:
    def by_types(types: Sequence[SqlType]) -> ResolvedAggregate:
        return resolve_aggregate(name, types)

    return resolved_by(scope.binding, by_types, operands, node.position)


def cast_arguments(
    scope: Scope, resolved: ResolvedAggregate, operands: Sequence[Operand], position: int
) -> tuple[Expression, ...]:
    return tuple(
        [
            implicit(scope.binding, operand, parameter, position)
            for operand, parameter in zip(operands, resolved.parameters, strict=True)
        ]
    )


def bind_filter(scope: Scope, node: ast.Call) -> Expression | None:
    if node.filter is None:
        return None
    operand = scope.bind_in(Clause.FILTER, node.filter)
    return condition(scope.binding, operand, "FILTER", leftmost(node.filter))


def sort_key(item: ast.OrderItem, expression: Expression) -> SortKey:
    """Return the sort key of an ORDER BY item; by default NULLs are larger than all values."""
    nulls_first = item.descending if item.nulls_first is None else item.nulls_first
    return SortKey(expression, item.descending, nulls_first)


def _check_distinct(
    scope: Scope, node: ast.Call, operands: Sequence[Operand], keys: Sequence[Operand]
) -> None:
    """Require that ORDER BY expressions are arguments, compared before any cast."""
    for item, key in zip(node.order_by, keys, strict=True):
        if not any(same(key, operand, scope.literals) for operand in operands):
            raise InvalidColumnReference(
                "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list",
                position=leftmost(item.expression) + 1,
            )


# --- ownership -----------------------------------------------------------------------------------


def _owner(scope: Scope, nodes: Sequence[object]) -> Level:
    """Return the innermost query whose columns or aggregates are named; else the current one."""
    named = {each.source for node in nodes for each in everything(node) if type(each) is Column}
    level: Level | None = scope.level
    while level is not None:
        if level.call_source in named or not level.sources.isdisjoint(named):
            return level
        level = level.parent
    return scope.level


def _without_direct(node: Any) -> Any:
    """Leave out what stands before WITHIN GROUP: it does not tell whose aggregate it is."""
    return Constant(None, node.type) if type(node) is Direct else None


def _check_directs(scope: Scope, owner: Level, call: AggregateCall) -> None:
    """Refuse columns of inner queries before WITHIN GROUP of an outer query's aggregate."""
    level: Level | None = scope.level
    inner: set[int] = set()
    while level is not None and level is not owner:
        inner |= level.sources
        level = level.parent
    if not inner:
        return
    for direct in everything(call):
        if type(direct) is Direct:
            for each in everything(direct):
                if type(each) is Column and each.source in inner:
                    raise located(
                        GroupingError(
                            "outer-level aggregate cannot contain a lower-level variable"
                            " in its direct arguments"
                        ),
                        scope.binding.position_of(each),
                    )


def _check_contents(scope: Scope, level: Level, call: AggregateCall) -> None:
    """Refuse an aggregate of the same query inside, and a window function."""
    row_functions = {each.source for each in level.row_functions}
    for each in everything(call):
        if type(each) is not Column:
            continue
        if each.source in row_functions:
            raise located(
                FeatureNotSupported(
                    "aggregate function calls cannot contain set-returning function calls",
                    hint="You might be able to move the set-returning function "
                    "into a LATERAL FROM item.",
                ),
                scope.binding.position_of(each),
            )
        if each.source in (level.call_source, level.grouping_source):
            raise located(
                GroupingError("aggregate function calls cannot be nested"),
                scope.binding.position_of(each),
            )
        if each.source == level.window_source:
            raise located(
                GroupingError("aggregate function calls cannot contain window function calls"),
                scope.binding.position_of(each),
            )


# --- GROUPING ------------------------------------------------------------------------------------


def bind_grouping(scope: Scope, node: ast.Call) -> Expression:
    """Return one bit for each argument, the first is the highest: 1 if the set lacks the argument.

    The mask has one bit for each key, in order of the keys; `grouping` finds each argument's key.
    """
    if len(node.arguments) > 31:
        raise SqlSyntaxError(
            "GROUPING must have fewer than 32 arguments", position=node.position + 1
        )
    level = scope.level
    error = refuse_grouping(level.clause)
    if error is not None:
        raise located(error, node.position)
    if not level.grouping_source:
        level.grouping_source = scope.binding.new_source()
    arguments = [settled(scope.binding, scope.bind(each)) for each in node.arguments]
    positions = [leftmost(each) for each in node.arguments]
    level.groupings.append(tuple(zip(arguments, positions, strict=True)))
    column = Column(level.grouping_source, len(level.groupings) - 1, INTEGER, False, "grouping")
    scope.binding.remember(column, node.position)
    return column


def grouping_bits(scope: Scope, mask: Column, keys: Sequence[int], count: int) -> Expression:
    """Extract the bits of some keys from the mask, side by side.

    The mask has a bit for each of `count` keys; the first key's is the highest.
    """
    binding = scope.binding
    if list(keys) == list(range(count)):
        return mask
    result: Expression | None = None
    for key in keys:
        bit = operator(binding, ">>", mask, Constant(count - 1 - key, INTEGER), -1)
        bit = operator(binding, "&", bit, Constant(1, INTEGER), -1)
        if result is None:
            result = bit
        else:
            shifted = operator(binding, "<<", result, Constant(1, INTEGER), -1)
            result = operator(binding, "|", shifted, bit, -1)
    assert result is not None, "GROUPING has arguments"
    return result
