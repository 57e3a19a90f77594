"""Binds window functions, and aggregates over a window.

They are computed after grouping, so their arguments may contain aggregates; their values are
columns of the query's provisional window source. `window_frames` binds the windows themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from qserver.errors import (
    FeatureNotSupported,
    QserverError,
    StatementError,
    UndefinedFunction,
    WindowingError,
)
from qserver.functions.registry import Aggregate
from qserver.functions.resolve import common_type, is_window_function
from qserver.sql import ast
from qserver.sql.binder.clauses import Clause, refuse_window
from qserver.sql.binder.expressions.coercion import implicit, settled
from qserver.sql.binder.expressions.operands import Operand, located
from qserver.sql.binder.names.scope import Scope, leftmost
from qserver.sql.binder.queries.aggregates import (
    aggregate_arguments,
    bind_filter,
    cast_arguments,
    resolve,
    sort_key,
)
from qserver.sql.binder.queries.ordering import check_comparable, check_sortable
from qserver.sql.binder.queries.window_frames import (
    bind_frame,
    check_definition,
    undefined_window,
    whole_window,
)
from qserver.sql.expressions import Column, Expression, SortKey, WindowCall, WindowFrame
from qserver.sql.walk import everything
from qserver.values.types import (
    BIGINT,
    DOUBLE,
    INTEGER,
    Kind,
    SqlType,
)

_RANKS: Final = {
    "row_number": BIGINT,
    "rank": BIGINT,
    "dense_rank": BIGINT,
    "percent_rank": DOUBLE,
    "cume_dist": DOUBLE,
}
_OF_A_VALUE: Final = {
    "lag": (1, 3),
    "lead": (1, 3),
    "first_value": (1, 1),
    "last_value": (1, 1),
    "nth_value": (2, 2),
}


def bind_window_call(scope: Scope, node: ast.Call, name: str) -> Expression:
    level, binding = scope.level, scope.binding
    error = refuse_window(level.clause)
    if error is not None:
        raise located(error, node.position)
    assert node.over is not None
    if not level.window_source:
        level.window_source = binding.new_source()
    call = _call(scope, node, name)
    row_functions = {each.source for each in level.row_functions}
    given = {id(each) for part in (*call.arguments, call.filter) for each in _columns(part)}
    for each in _columns(call):
        if each.source == level.window_source:
            error = WindowingError("window function calls cannot be nested")
            raise located(error, binding.position_of(each))
        if each.source in row_functions and id(each) in given:
            error = FeatureNotSupported(
                "window function calls cannot contain set-returning function calls",
                hint="You might be able to move the set-returning function "
                "into a LATERAL FROM item.",
            )
            raise located(error, binding.position_of(each))
    at = level.alike_windows.position(call, level.windows)
    if at is None:
        at = len(level.windows)
        level.windows.append(call)
    column = Column(level.window_source, at, call.type, call.nullable, name)
    binding.remember(column, node.position)
    return column


def _columns(node: Any) -> list[Column]:
    return [] if node is None else [each for each in everything(node) if type(each) is Column]


def bind_definitions(
    scope: Scope, definitions: Sequence[tuple[str, ast.Window]]
) -> list[WindowCall]:
    """Bind the definitions that no call refers to, and raise the mistake that calls found.

    PostgreSQL looks at windows after all other clauses: those of WINDOW first, then those of OVER.
    """
    level = scope.level
    earlier: set[str] = set()
    unused: list[WindowCall] = []
    for name, window in definitions:
        check_definition(name, window, earlier)
        earlier.add(name)
        if name not in level.used_windows or level.window_error is not None:
            unused.append(_unused_call(scope, window))
    scope.binding.quoted += level.quoted_in_windows
    if level.window_error is not None:
        raise level.window_error
    return unused


def _unused_call(scope: Scope, window: ast.Window) -> WindowCall:
    """What a definition goes by is computed, even if no call refers to it.

    A call whose value nobody takes does that. Its frame is bound, but never computed.
    """
    level, binding = scope.level, scope.binding
    if not level.window_source:
        level.window_source = binding.new_source()
    partition_by, order_by, _ = _window(scope, window)
    return WindowCall(
        "row_number", None, (), partition_by, order_by, WindowFrame(), BIGINT, nullable=False
    )


def _call(scope: Scope, node: ast.Call, name: str) -> WindowCall:
    _refuse_what_windows_lack(node, name)
    aggregate: Aggregate | None = None
    if is_window_function(name):
        arguments, returns, nullable = _function(scope, node, name)
    else:
        operands = aggregate_arguments(scope, node, name)
        resolved = resolve(scope, name, operands, node)
        arguments = cast_arguments(scope, resolved, operands, node.position)
        aggregate, returns = resolved.aggregate, resolved.returns
        nullable = aggregate.gives_null
    assert node.over is not None
    partition_by, order_by, frame = _window_of_call(scope, node.over)
    return WindowCall(
        name,
        aggregate,
        arguments,
        partition_by,
        order_by,
        frame,
        returns,
        nullable,
        bind_filter(scope, node),
    )


_BoundWindow = tuple[tuple[Expression, ...], tuple[SortKey, ...], WindowFrame]


def _window_of_call(scope: Scope, window: ast.Window) -> _BoundWindow:
    """Bind a window. Its literals and its mistake wait until all other clauses are bound."""
    level, binding = scope.level, scope.binding
    if not window.copied and window.name not in (None, *level.window_definitions):
        raise undefined_window(window)
    before, depth, clause = len(binding.quoted), binding.depth, level.clause
    is_first = level.window_error is None
    try:
        bound = _window(scope, window)
    except StatementError as error:
        binding.depth, level.clause = depth, clause
        level.window_error = level.window_error or error
        bound = (), (), WindowFrame()
    if is_first:
        level.quoted_in_windows += binding.quoted[before:]
    del binding.quoted[before:]
    return bound


def _window(scope: Scope, window: ast.Window) -> _BoundWindow:
    """Bind ORDER BY, PARTITION BY and the frame: PostgreSQL finds mistakes in this order."""
    binding = scope.binding
    window = whole_window(scope, window)
    order_by = tuple(
        [
            sort_key(item, settled(binding, scope.bind_in(Clause.WINDOW, item.expression)))
            for item in window.order_by
        ]
    )
    for by, item in zip(order_by, window.order_by, strict=True):
        check_sortable(by.expression.type, leftmost(item.expression))
    partition_by = tuple(
        [settled(binding, scope.bind_in(Clause.WINDOW, each)) for each in window.partition_by]
    )
    for key, node in zip(partition_by, window.partition_by, strict=True):
        check_comparable(key.type, leftmost(node))
    return partition_by, order_by, bind_frame(scope, window, order_by)


def _refuse_what_windows_lack(node: ast.Call, name: str) -> None:
    if node.distinct:
        what = "DISTINCT is not implemented for window functions"
    elif node.order_by:
        what = "aggregate ORDER BY is not implemented for window functions"
    elif node.within_group:
        what = f"OVER is not supported for ordered-set aggregate {name}"
    elif node.filter is not None and is_window_function(name):
        what = "FILTER is not implemented for non-aggregate window functions"
    else:
        return
    raise FeatureNotSupported(what, position=node.position + 1)


# --- window-only functions -----------------------------------------------------------------------


def _function(
    scope: Scope, node: ast.Call, name: str
) -> tuple[tuple[Expression, ...], SqlType, bool]:
    """Return the cast arguments, the result's type, and whether the result may be NULL."""
    binding = scope.binding
    operands = [scope.bind(argument) for argument in node.arguments]
    if name in _RANKS:
        if operands or node.star:
            raise _undefined(node, name, operands)
        return (), _RANKS[name], False
    if name == "ntile":
        if len(operands) != 1 or not _fits(operands[0], INTEGER):
            raise _undefined(node, name, operands)
        count = implicit(binding, operands[0], INTEGER, node.position)
        return (count,), INTEGER, count.nullable
    least, most = _OF_A_VALUE[name]
    if not least <= len(operands) <= most:
        raise _undefined(node, name, operands)
    if len(operands) > 1 and not _fits(operands[1], INTEGER):
        raise _undefined(node, name, operands)
    value: Operand = operands[0]
    if len(operands) == 3:
        try:
            shared = common_type([value.type, operands[2].type], name)
        except QserverError:
            raise _undefined(node, name, operands) from None
        value = implicit(binding, value, shared, node.position)
        operands[2] = implicit(binding, operands[2], shared, node.position)
    first = settled(binding, value)
    rest = [implicit(binding, each, INTEGER, node.position) for each in operands[1:2]]
    rest += [settled(binding, each) for each in operands[2:]]
    return (first, *rest), first.type.bare, True


def _fits(operand: Operand, wanted: SqlType) -> bool:
    kinds = (Kind.SMALLINT, Kind.INTEGER, Kind.UNKNOWN)
    return operand.type == wanted or operand.type.kind in kinds


def _undefined(node: ast.Call, name: str, operands: Sequence[Operand]) -> UndefinedFunction:
    types = ", ".join([str(each.type.bare) for each in operands])
    return UndefinedFunction(
        f"function {name}({types}) does not exist",
        hint="No function matches the given name and argument types. "
        "You might need to add explicit type casts.",
        position=node.position + 1,
    )
