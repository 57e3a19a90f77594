"""Binds windows: references of OVER, and frames.

A frame's offset counts rows or groups of equal rows, or, with RANGE, it is a distance in the unit
of the sort key: a number for numbers, an interval for times.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

from qserver.errors import (
    DatatypeMismatch,
    FeatureNotSupported,
    InvalidColumnReference,
    UndefinedObject,
    WindowingError,
)
from qserver.sql import ast
from qserver.sql.binder.clauses import Clause
from qserver.sql.binder.expressions.coercion import assigned, implicit
from qserver.sql.binder.names.scope import Level, Scope, leftmost
from qserver.sql.expressions import Column, Expression, SortKey, WindowFrame
from qserver.sql.walk import everything
from qserver.values.types import (
    BIGINT,
    DATETIME_KINDS,
    DOUBLE,
    FLOAT_KINDS,
    INTEGER_KINDS,
    INTERVAL,
    NUMERIC,
    TIME_KINDS,
    Kind,
    SqlType,
)


def define_windows(level: Level, windows: Sequence[tuple[str, ast.Window]]) -> None:
    """Make the names of WINDOW known. `check_definition` tells later which are wrong."""
    known = level.window_definitions
    for name, window in windows:
        refers = window.name is not None and window.name in known
        known.setdefault(name, window if refers else replace(window, name=None))


def check_definition(name: str, window: ast.Window, earlier: Container[str]) -> None:
    if name in earlier:
        raise WindowingError(f'window "{name}" is already defined', position=window.position + 1)
    if window.name is not None and window.name not in earlier:
        raise undefined_window(window)


def undefined_window(window: ast.Window) -> UndefinedObject:
    return UndefinedObject(f'window "{window.name}" does not exist', position=window.position + 1)


def whole_window(scope: Scope, window: ast.Window) -> ast.Window:
    """Merge the window with the named one that it refers to."""
    if window.name is None:
        return window
    named = scope.level.window_definitions.get(window.name)
    if named is None:
        raise undefined_window(window)
    scope.level.used_windows.add(window.name)
    named = whole_window(scope, named)
    if not window.copied:
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


def bind_frame(scope: Scope, window: ast.Window, order_by: Sequence[SortKey]) -> WindowFrame:
    frame = window.frame
    if frame is None:
        return WindowFrame()
    _check_frame(frame, order_by)
    start, end = [
        (kind, None if offset is None else _offset(scope, frame, offset, order_by))
        for kind, offset in (frame.start, frame.end)
    ]
    return WindowFrame(frame.mode, start, end, frame.exclude)


def _check_frame(frame: ast.Frame, order_by: Sequence[SortKey]) -> None:
    """Check what the parser did not: whether the order fits."""
    wrong = None
    if frame.mode == "groups" and not order_by:
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
    scope: Scope, frame: ast.Frame, node: ast.Expression, order_by: Sequence[SortKey]
) -> Expression:
    """Bind the offset of a frame: in rows or groups, or in the unit of the sort key."""
    operand = scope.bind_in(Clause.FRAME, node)
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
    """Return the type of the difference between two values of the key."""
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
