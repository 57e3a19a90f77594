"""Expands row values: (a, b) = (c, d) is a = c AND b = d.

    (a, b) < (c, d)             a < c OR (a = c AND b < d)
    (a, b) IS NULL              each of them is; IS NOT NULL: none of them is
    (a, b) = (SELECT x, y …)    the query's columns, one scalar query each

(a, b) IN ((1, 2), …) is one comparison of rows for each item, joined by OR.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from qserver.errors import DatatypeMismatch, FeatureNotSupported, QserverError, SqlSyntaxError
from qserver.sql.binder.binding import Binding
from qserver.sql.binder.calling import operator
from qserver.sql.binder.coercion import implicit, settled
from qserver.sql.binder.copies import again
from qserver.sql.binder.operands import Operand, RowValue, Unknown, located
from qserver.sql.expressions import And, Constant, Expression, IsDistinct, IsNull, Or
from qserver.sql.functions.resolve import resolve_operator
from qserver.values.types import BOOLEAN

ORDERINGS = frozenset({"<", "<=", ">", ">="})
COMPARISONS = ORDERINGS | {"=", "<>", "!="}


def compare(
    binding: Binding, symbol: str, left: Operand, right: Operand, position: int
) -> Expression:
    if not (isinstance(left, RowValue) and isinstance(right, RowValue)):
        return operator(binding, symbol, left, right, position)
    if left.names or right.names:
        one, other = _values(binding, left, right, position)
        return operator(binding, symbol, one, other, position)
    _check_lengths(left, right, position)
    pairs = list(zip(left.items, right.items, strict=True))
    if symbol in ("=", "<>", "!="):
        parts = [compare(binding, symbol, one, other, position) for one, other in pairs]
        return conjunction(parts) if symbol == "=" else disjunction(parts)
    return _ordering(binding, symbol, pairs, position)


def _values(
    binding: Binding, left: RowValue, right: RowValue, position: int
) -> tuple[Expression, Expression]:
    """Return both rows as values.

    The row of a table is a value: its NULLs equal each other and come last. Only of two rows that
    are written out, (a, b) = (c, d), is the answer NULL where an item is.
    """
    if len(left.items) != len(right.items):
        raise DatatypeMismatch("cannot compare record types with different numbers of columns")
    for number, (one, other) in enumerate(zip(left.items, right.items, strict=True), 1):
        if isinstance(one, Unknown | RowValue) or isinstance(other, Unknown | RowValue):
            continue
        if one.type.bare != other.type.bare:
            raise DatatypeMismatch(
                f"cannot compare dissimilar column types {one.type.bare} and {other.type.bare}"
                f" at record column {number}"
            )
        operator(binding, "=", one, other, position)
    rows = [
        replace(row, items=tuple([_like(binding, *pair, position) for pair in pairs]))
        for row, pairs in (
            (left, zip(left.items, right.items, strict=True)),
            (right, zip(right.items, left.items, strict=True)),
        )
    ]
    return settled(binding, rows[0]), settled(binding, rows[1])


def _like(binding: Binding, item: Operand, other: Operand, position: int) -> Operand:
    """Return the item; a literal is read as the type of the other."""
    if isinstance(item, Unknown) and not isinstance(other, Unknown):
        return implicit(binding, item, other.type, position)
    return item


def _ordering(
    binding: Binding, symbol: str, pairs: Sequence[tuple[Operand, Operand]], position: int
) -> Expression:
    """Compare rows from the last pair to the first: an earlier pair decides unless it is equal."""
    result = compare(binding, symbol, *pairs[-1], position)
    for one, other in reversed(pairs[:-1]):
        strict = compare(binding, symbol[0], one, other, position)
        equal = compare(binding, "=", again(binding, one), again(binding, other), position)
        result = disjunction([strict, conjunction([equal, result])])
    return result


def distinct(
    binding: Binding, left: Operand, right: Operand, negated: bool, position: int
) -> Expression:
    """IS [NOT] DISTINCT FROM"""
    if isinstance(left, RowValue) and isinstance(right, RowValue):
        _check_lengths(left, right, position)
        parts = [
            distinct(binding, one, other, negated, position)
            for one, other in zip(left.items, right.items, strict=True)
        ]
        return conjunction(parts) if negated else disjunction(parts)
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Unknown) and one.name is None:
            return is_null(binding, other, not negated)
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
        return conjunction([is_null(binding, item, negated) for item in operand.items])
    return IsNull(settled(binding, operand), negated)


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
