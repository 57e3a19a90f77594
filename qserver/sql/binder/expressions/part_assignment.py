"""Assignment to a part of a column: `SET a[2] = 5`, `SET j['k'] = '1'`, `INSERT INTO t (a[1])`.

    SET a[1] = 5, a[2] = 6        a becomes array_assign(array_assign(a, 5, 1), 6, 2)

The whole column is written: a function of its old value and of the part.
"""

from __future__ import annotations

from collections.abc import Sequence

from qserver.errors import DatatypeMismatch, FeatureNotSupported
from qserver.sql import ast
from qserver.sql.binder.expressions.calling import function
from qserver.sql.binder.expressions.coercion import implicit
from qserver.sql.binder.expressions.scalars import array_bound, array_bounds, subscripts
from qserver.sql.binder.names.scope import Scope, leftmost
from qserver.sql.expressions import Expression
from qserver.values.schema import Column
from qserver.values.types import TEXT, Kind, SqlType

Part = ast.Subscript | ast.Field


def part_type(column: Column, part: Part) -> SqlType:
    """Return the type that may be assigned to the part, or raise if the column has no such part."""
    place = leftmost(part)
    if isinstance(part, ast.Field):
        raise DatatypeMismatch(
            f'cannot assign to field "{part.name}" of column "{column.name}" because its type '
            f"{column.type.bare} is not a composite type",
            position=place + 1,
        )
    if column.type.kind is Kind.JSONB:
        return column.type
    if column.type.element is None:
        raise DatatypeMismatch(
            f"cannot subscript type {column.type.bare} because it does not support subscripting",
            position=place + 1,
        )
    _, chain = subscripts(part)
    return column.type if any(each.is_slice for each in chain) else column.type.element


def with_part(scope: Scope, whole: Expression, part: Part, value: Expression) -> Expression:
    """Return the column's value `whole` with another value in the part."""
    assert isinstance(part, ast.Subscript), "other parts have no type"
    _, chain = subscripts(part)
    if whole.type.kind is Kind.JSONB:
        keys = [_key(scope, each) for each in chain]
        return function(scope.binding, "jsonb_assign", [whole, value, *keys], part.position)
    if any(each.is_slice for each in chain):
        bounds = [
            function(scope.binding, "array_place", [each], part.position) if given else each
            for each, given in zip(array_bounds(scope, chain), _given(chain), strict=True)
        ]
        return function(scope.binding, "array_assign_slice", [whole, value, *bounds], part.position)
    numbers = [array_bound(scope, each.low) for each in chain]
    return function(scope.binding, "array_assign", [whole, value, *numbers], part.position)


def _given(chain: Sequence[ast.Subscript]) -> list[bool]:
    """Tell which bounds of a slice are written, even if as NULL."""
    found: list[bool] = []
    for each in chain:
        found += [each.low is not None, each.high is not None] if each.is_slice else [True, True]
    return found


def _key(scope: Scope, subscript: ast.Subscript) -> Expression:
    if subscript.is_slice or subscript.low is None:
        raise DatatypeMismatch(
            "jsonb subscript does not support slices", position=subscript.position + 1
        )
    operand = scope.bind(subscript.low)
    if operand.type.kind in (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT):
        return function(scope.binding, "concat", [operand], subscript.position)
    return implicit(scope.binding, operand, TEXT, subscript.position)


def refuse_default(position: int) -> FeatureNotSupported:
    return FeatureNotSupported("cannot set an array element to DEFAULT", position=position + 1)
