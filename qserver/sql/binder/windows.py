"""Window functions, and aggregates over a window.

A window is written in place, or named in the WINDOW clause and extended: OVER (w ORDER BY a).
Window functions are computed after grouping, so their arguments may contain aggregates; their
values are columns of the query's provisional window source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from qserver.errors import (
    DatatypeMismatch,
    FeatureNotSupported,
    InvalidColumnReference,
    QserverError,
    UndefinedFunction,
    UndefinedObject,
    WindowingError,
)
from qserver.sql import syntax
from qserver.sql.binder.aggregates import (
    aggregate_arguments,
    bind_filter,
    cast_arguments,
    resolve,
    sort_key,
)
from qserver.sql.binder.clauses import Clause, refuse_window
from qserver.sql.binder.coercion import assigned, implicit, settled
from qserver.sql.binder.operands import Operand, located
from qserver.sql.binder.same import same
from qserver.sql.binder.scope import Scope, leftmost
from qserver.sql.bound import Column, Expression, SortKey, WindowCall, WindowFrame
from qserver.sql.functions.registry import Aggregate
from qserver.sql.functions.resolve import common_type, is_window_function
from qserver.sql.walk import everything
from qserver.values.types import (
    BIGINT,
    DATETIME_KINDS,
    DOUBLE,
    FLOAT_KINDS,
    INTEGER,
    INTEGER_KINDS,
    INTERVAL,
    NUMERIC,
    TIME_KINDS,
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


def bind_window_call(scope: Scope, node: syntax.Call, name: str) -> Expression:
    level, binding = scope.level, scope.binding
    error = refuse_window(level.clause)
    if error is not None:
        raise located(error, node.position)
    assert node.over is not None
    if not level.window_source:
        level.window_source = binding.new_source()
    call = _call(scope, node, name)
    row_functions = {each.source for each in level.row_functions}
    for each in everything(call):
        if type(each) is not Column:
            continue
        if each.source == level.window_source:
            error = WindowingError("window function calls cannot be nested")
            raise located(error, binding.position_of(each))
        if each.source in row_functions:
            error = FeatureNotSupported(
                "window function calls cannot contain set-returning function calls",
                hint="You might be able to move the set-returning function "
                "into a LATERAL FROM item.",
            )
            raise located(error, binding.position_of(each))
    at = next((n for n, known in enumerate(level.windows) if same(call, known)), len(level.windows))
    if at == len(level.windows):
        level.windows.append(call)
    column = Column(level.window_source, at, call.type, call.nullable, name)
    binding.remember(column, node.position)
    return column


def _call(scope: Scope, node: syntax.Call, name: str) -> WindowCall:
    _refuse_what_windows_lack(node, name)
    aggregate: Aggregate | None = None
    if is_window_function(name):
        arguments, returns, nullable = _function(scope, node, name)
    else:
        operands = aggregate_arguments(scope, node, name)
        resolved = resolve(name, operands, node)
        arguments = cast_arguments(scope, resolved, operands, node.position)
        aggregate, returns = resolved.aggregate, resolved.returns
        nullable = aggregate.gives_null
    assert node.over is not None
    window = _whole(scope, node.over)
    partition_by = tuple(
        [settled(scope.binding, scope.bind_in(Clause.WINDOW, each)) for each in window.partition_by]
    )
    order_by = tuple(
        [
            sort_key(item, settled(scope.binding, scope.bind_in(Clause.WINDOW, item.expression)))
            for item in window.order_by
        ]
    )
    frame = _frame(scope, window, order_by)
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


def _refuse_what_windows_lack(node: syntax.Call, name: str) -> None:
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


# --- functions that only windows have ------------------------------------------------------------


def _function(
    scope: Scope, node: syntax.Call, name: str
) -> tuple[tuple[Expression, ...], SqlType, bool]:
    """Arguments as the function wants them, the type of its result, and whether it may be NULL."""
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


def _undefined(node: syntax.Call, name: str, operands: Sequence[Operand]) -> UndefinedFunction:
    types = ", ".join([str(each.type.bare) for each in operands])
    return UndefinedFunction(
        f"function {name}({types}) does not exist",
        hint="No function matches the given name and argument types. "
        "You might need to add explicit type casts.",
        position=node.position + 1,
    )


# --- the window ----------------------------------------------------------------------------------


def _whole(scope: Scope, window: syntax.Window) -> syntax.Window:
    """The window with what the one that it refers to says."""
    if window.name is None:
        return window
    named = scope.level.window_definitions.get(window.name)
    if named is None:
        raise UndefinedObject(
            f'window "{window.name}" does not exist', position=window.position + 1
        )
    named = _whole(scope, named)
    if not (window.partition_by or window.order_by or window.frame):
        return named
    refused = None
    if window.partition_by:
        refused = f'cannot override PARTITION BY clause of window "{window.name}"'
    elif window.order_by and named.order_by:
        refused = f'cannot override ORDER BY clause of window "{window.name}"'
    elif named.frame is not None:
        refused = f'cannot copy window "{window.name}" because it has a frame clause'
    if refused is not None:
        raise WindowingError(refused, position=window.position + 1)
    return replace(
        window,
        name=None,
        partition_by=named.partition_by,
        order_by=window.order_by or named.order_by,
    )


def _frame(scope: Scope, window: syntax.Window, order_by: Sequence[SortKey]) -> WindowFrame:
    frame = window.frame
    if frame is None:
        return WindowFrame()
    _check_frame(frame, order_by)
    start, end = [
        (kind, None if offset is None else _offset(scope, frame, offset, order_by))
        for kind, offset in (frame.start, frame.end)
    ]
    return WindowFrame(frame.mode, start, end, frame.exclude)


def _check_frame(frame: syntax.Frame, order_by: Sequence[SortKey]) -> None:
    start, end = frame.start[0], frame.end[0]
    wrong = None
    if start == "unbounded following":
        wrong = "frame start cannot be UNBOUNDED FOLLOWING"
    elif end == "unbounded preceding":
        wrong = "frame end cannot be UNBOUNDED PRECEDING"
    elif start == "current row" and end == "preceding":
        wrong = "frame starting from current row cannot have preceding rows"
    elif start == "following" and end in ("preceding", "current row"):
        wrong = "frame starting from following row cannot have preceding rows"
    elif frame.mode == "groups" and not order_by:
        wrong = "GROUPS mode requires an ORDER BY clause"
    elif (
        frame.mode == "range"
        and len(order_by) != 1
        and (frame.start[1] is not None or frame.end[1] is not None)
    ):
        wrong = "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column"
    if wrong is not None:
        raise WindowingError(wrong, position=frame.position + 1)


def _offset(
    scope: Scope, frame: syntax.Frame, node: syntax.Expression, order_by: Sequence[SortKey]
) -> Expression:
    """How far the frame reaches: in rows or groups, or in units of what the order goes by."""
    operand = scope.bind_in(Clause.WINDOW, node)
    word, position = frame.mode.upper(), leftmost(node)
    if frame.mode == "range":
        wanted = _distance(order_by[0].expression.type, operand.type, position)
        offset = implicit(scope.binding, operand, wanted, position)
    else:
        try:
            offset = assigned(scope.binding, operand, BIGINT, "", position)
        except DatatypeMismatch:
            raise DatatypeMismatch(
                f"argument of {word} must be type bigint, not type {operand.type.bare}",
                position=position + 1,
            ) from None
    if any(type(each) is Column for each in everything(offset)):
        raise InvalidColumnReference(
            f"argument of {word} must not contain variables", position=leftmost(node) + 1
        )
    return offset


def _distance(key: SqlType, offset: SqlType, position: int) -> SqlType:
    """The type of the difference between two values of the key."""
    given = offset.kind
    if key.kind in INTEGER_KINDS:
        wanted, fits = BIGINT, given in (*INTEGER_KINDS, Kind.UNKNOWN)
    elif key.kind is Kind.NUMERIC:
        wanted, fits = NUMERIC, given in (*INTEGER_KINDS, Kind.NUMERIC, Kind.UNKNOWN)
    elif key.kind in FLOAT_KINDS:
        numbers = (*INTEGER_KINDS, Kind.NUMERIC, *FLOAT_KINDS, Kind.UNKNOWN)
        wanted, fits = DOUBLE, given in numbers
    elif key.kind in (*DATETIME_KINDS, *TIME_KINDS, Kind.INTERVAL):
        wanted, fits = INTERVAL, given in (Kind.INTERVAL, Kind.UNKNOWN)
    else:
        raise FeatureNotSupported(
            f"RANGE with offset PRECEDING/FOLLOWING is not supported for column type {key.bare}",
            position=position + 1,
        )
    if not fits:
        raise FeatureNotSupported(
            "RANGE with offset PRECEDING/FOLLOWING is not supported for column type "
            f"{key.bare} and offset type {offset.bare}",
            hint="Cast the offset value to an appropriate type.",
            position=position + 1,
        )
    return wanted
