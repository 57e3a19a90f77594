"""Expands row values: (a, b) = (c, d) is a = c AND b = d.

    (a, b) < (c, d)             a < c OR (a = c AND b < d)
    (a, b) IS NULL              each of them is; IS NOT NULL: none of them is. A row among them is
                                a value, which is not NULL whatever is in it
    (a, b) = (SELECT x, y …)    the query's columns, one scalar query each

The row of a table is a value: its NULLs equal each other and come last. Only of two rows that are
written out, (a, b) = (c, d), is the answer NULL where an item is.

(a, b) IN ((1, 2), …) is one comparison of rows for each item, joined by OR.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from qserver.errors import FeatureNotSupported, QserverError, SqlSyntaxError
from qserver.functions.registry import Function
from qserver.functions.resolve import resolve_operator
from qserver.sql.binder.binding import Binding
from qserver.sql.binder.expressions.calling import operator, whole
from qserver.sql.binder.expressions.coercion import implicit, settled
from qserver.sql.binder.expressions.copies import again
from qserver.sql.binder.expressions.operands import Operand, RowValue, Unknown, located
from qserver.sql.expressions import And, Apply, Constant, Expression, IsDistinct, IsNull, Or
from qserver.values.types import BOOLEAN, RECORD, Kind

ORDERINGS = frozenset({"<", "<=", ">", ">="})
COMPARISONS = ORDERINGS | {"=", "<>", "!="}


def compare(
    binding: Binding, symbol: str, left: Operand, right: Operand, position: int
) -> Expression:
    if not (isinstance(left, RowValue) and isinstance(right, RowValue)):
        return operator(binding, symbol, left, right, position)
    if left.names or right.names:
        return operator(binding, symbol, left, right, position)
    _check_lengths(left, right, position)
    pairs = list(zip(left.items, right.items, strict=True))
    if symbol in ("=", "<>", "!="):
        parts = [operator(binding, symbol, one, other, position) for one, other in pairs]
        return conjunction(parts) if symbol == "=" else disjunction(parts)
    return _ordering(binding, symbol, pairs, position)


def _ordering(
    binding: Binding, symbol: str, pairs: Sequence[tuple[Operand, Operand]], position: int
) -> Expression:
    """Compare rows from the last pair to the first: an earlier pair decides unless it is equal."""
    result = operator(binding, symbol, *pairs[-1], position)
    for one, other in reversed(pairs[:-1]):
        strict = operator(binding, symbol[0], one, other, position)
        equal = operator(binding, "=", again(binding, one), again(binding, other), position)
        result = disjunction([strict, conjunction([equal, result])])
    return result


def distinct(
    binding: Binding, left: Operand, right: Operand, negated: bool, position: int
) -> Expression:
    """IS [NOT] DISTINCT FROM"""
    if isinstance(left, RowValue) and isinstance(right, RowValue):
        if left.names or right.names:
            return distinct(binding, whole(binding, left), whole(binding, right), negated, position)
        if not left.items and not right.items:
            return Constant(negated, BOOLEAN)
        _check_lengths(left, right, position)
        parts = [
            distinct(binding, whole(binding, one), whole(binding, other), negated, position)
            for one, other in zip(left.items, right.items, strict=True)
        ]
        return conjunction(parts) if negated else disjunction(parts)
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Unknown) and one.name is None:
            return IsNull(settled(binding, other), not negated)
    left, right = whole(binding, left), whole(binding, right)
    try:
        resolved = resolve_operator("=", left.type, right.type)
    except QserverError as error:
        raise located(error, position) from None
    one_type, other_type = resolved.parameters
    return IsDistinct(
        implicit(binding, left, one_type, position),
        implicit(binding, right, other_type, position),
        resolved.function,
        negated,
    )


def is_null(binding: Binding, operand: Operand, negated: bool) -> Expression:
    """For a row: all items are NULL, or (not the opposite!) no item is."""
    if isinstance(operand, RowValue):
        if not operand.items:
            return Constant(True, BOOLEAN)
        return conjunction([IsNull(settled(binding, item), negated) for item in operand.items])
    value = settled(binding, operand)
    if value.type.kind is Kind.RECORD:
        return Apply(_NOT_NULL if negated else _NULL, (value,), BOOLEAN, nullable=False)
    return IsNull(value, negated)


_NULL: Final = Function(
    "row_is_null",
    (RECORD,),
    BOOLEAN,
    lambda row: row is None or all(field is None for field in row),
    strict=False,
)
_NOT_NULL: Final = Function(
    "row_is_not_null",
    (RECORD,),
    BOOLEAN,
    lambda row: row is not None and None not in row,
    strict=False,
)


def conjunction(parts: Sequence[Expression]) -> Expression:
    """Join one or more conditions with AND, flat."""
    flat: list[Expression] = []
    for part in parts:
        flat.extend(part.operands if isinstance(part, And) else (part,))
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def disjunction(parts: Sequence[Expression]) -> Expression:
    flat: list[Expression] = []
    for part in parts:
        flat.extend(part.operands if isinstance(part, Or) else (part,))
    return flat[0] if len(flat) == 1 else Or(tuple(flat))


def _check_lengths(left: RowValue, right: RowValue, position: int) -> None:
    if len(left.items) != len(right.items):
        raise SqlSyntaxError("unequal number of entries in row expressions", position=position + 1)
    if not left.items:
        raise FeatureNotSupported("cannot compare rows of zero length", position=position + 1)
