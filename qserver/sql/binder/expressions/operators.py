"""Binds operators, alone and in chains.

A chain such as a AND b AND c … is a tree that leans to the left, as deep as the chain is long.
Recursion would end at a few hundred links, so loops walk the chains: AND and OR become one flat
node, other operators are applied from the innermost outwards.
"""

from __future__ import annotations

from dataclasses import replace

from qserver.functions.text.prefixes import marked
from qserver.sql import ast
from qserver.sql.binder.expressions.calling import function, has_rows, operator
from qserver.sql.binder.expressions.coercion import condition
from qserver.sql.binder.expressions.copies import again
from qserver.sql.binder.expressions.membership import in_list
from qserver.sql.binder.expressions.negatives import negative_literal
from qserver.sql.binder.expressions.operands import Operand, RowValue, Unknown
from qserver.sql.binder.expressions.rows import (
    COMPARISONS,
    compare,
    conjunction,
    disjunction,
    distinct,
)
from qserver.sql.binder.expressions.scalars import bind_item
from qserver.sql.binder.expressions.subqueries import row_query
from qserver.sql.binder.names.scope import Scope, leftmost
from qserver.sql.expressions import Apply, Constant, Expression, Not, Slot

_LIKE_OPERATORS = {
    "like": ("like", False),
    "not like": ("like", True),
    "ilike": ("ilike", False),
    "not ilike": ("ilike", True),
    "similar to": ("similar", False),
    "not similar to": ("similar", True),
}


def bind_operator(scope: Scope, node: ast.Operator) -> Operand:
    if node.symbol in ("and", "or"):
        return _logic(scope, node)
    if node.symbol == "not":
        operand = scope.bind(node.right)
        return Not(condition(scope.binding, operand, "NOT", leftmost(node.right)))
    if node.left is None:
        if node.symbol == "-" and isinstance(node.right, ast.Literal):
            negative = negative_literal(scope, node.right)
            if negative is not None:
                return negative
        return operator(scope.binding, node.symbol, None, scope.bind(node.right), node.position)
    chain = [node]
    first: ast.Expression = node.left
    while (
        isinstance(first, ast.Operator)
        and first.left is not None
        and first.symbol not in ("and", "or")
    ):
        chain.append(first)
        first = first.left
    operand = scope.bind(first)
    for link in reversed(chain):
        operand = _binary(scope, link, operand)
    return operand


def _logic(scope: Scope, node: ast.Operator) -> Expression:
    """Bind all operands of a chain of AND or of OR, in order."""
    symbol = node.symbol
    nodes: list[ast.Expression] = []
    waiting: list[ast.Expression] = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, ast.Operator) and each.symbol == symbol:
            assert each.left is not None
            waiting += [each.right, each.left]
        else:
            nodes.append(each)
    word = symbol.upper()
    parts = [condition(scope.binding, scope.bind(each), word, leftmost(each)) for each in nodes]
    return conjunction(parts) if symbol == "and" else disjunction(parts)


def _binary(scope: Scope, node: ast.Operator, left: Operand) -> Operand:
    binding, symbol = scope.binding, node.symbol
    right = _right(scope, left, node.right) if symbol in COMPARISONS else scope.bind(node.right)
    if symbol in COMPARISONS and has_rows(left, right):
        return compare(binding, symbol, left, right, node.position)
    if symbol in ("is distinct from", "is not distinct from"):
        negated = symbol == "is not distinct from"
        return distinct(binding, left, right, negated, node.position)
    if symbol in _LIKE_OPERATORS:
        kind, negated = _LIKE_OPERATORS[symbol]
        return _like(scope, kind, left, right, None, negated, node.position)
    made = operator(binding, symbol, left, right, node.position)
    return _matched(scope, made, right) if symbol.endswith("~") else made


def _right(scope: Scope, left: Operand, node: ast.Expression) -> Operand:
    """Bind the right operand; beside a row, a query in parentheses is a row, too."""
    if isinstance(left, RowValue) and isinstance(node, ast.ScalarQuery):
        return row_query(scope, node, len(left.items))
    return bind_item(scope, node)


def bind_like(scope: Scope, node: ast.Like) -> Operand:
    left, pattern = scope.bind(node.operand), scope.bind(node.pattern)
    escape = None if node.escape is None else scope.bind(node.escape)
    return _like(scope, node.kind, left, pattern, escape, node.negated, node.position)


def _like(
    scope: Scope,
    kind: str,
    left: Operand,
    pattern: Operand,
    escape: Operand | None,
    negated: bool,
    position: int,
) -> Expression:
    """LIKE is an operator; ESCAPE and SIMILAR TO transform the pattern first."""
    binding = scope.binding
    if kind == "similar":
        arguments = (pattern,) if escape is None else (pattern, escape)
        pattern = function(binding, "similar_to_escape", arguments, position)
        return operator(binding, "!~" if negated else "~", left, pattern, position)
    if escape is not None:
        pattern = function(binding, "like_escape", (pattern, escape), position)
    symbol = f"not {kind}" if negated else kind
    return _matched(scope, operator(binding, symbol, left, pattern, position), pattern)


def _matched(scope: Scope, matched: Expression, pattern: Operand) -> Expression:
    """Mark a match by the literal that its pattern is: other literals only guess as well."""
    if not isinstance(matched, Apply):
        return matched
    match pattern:
        case Unknown(text=str() as text) | Constant(value=text):
            return replace(matched, function=marked(matched.function, text))
        case Unknown(name=int() as index) | Slot(name=int() as index):
            likely = scope.literals.guess(index)
            return replace(matched, function=marked(matched.function, likely))
    return matched


def bind_between(scope: Scope, node: ast.Between) -> Expression:
    """Bind BETWEEN as two comparisons; the first bound is compared before the second is bound."""
    binding, at = scope.binding, node.position
    above, below = ("<", ">") if node.negated else (">=", "<=")
    together = disjunction if node.negated else conjunction

    def within(value: Operand, first: Operand, last: Operand) -> Expression:
        other = again(binding, value)
        low = compare(binding, above, value, first, at)
        return together([low, compare(binding, below, other, last, at)])

    operand, low = scope.bind(node.operand), scope.bind(node.low)
    if not node.symmetric:
        other = again(binding, operand)
        first = compare(binding, above, operand, low, at)
        return together([first, compare(binding, below, other, scope.bind(node.high), at)])
    high = scope.bind(node.high)
    copies = [again(binding, each) for each in (operand, high, low)]
    either = [within(operand, low, high), within(*copies)]
    return conjunction(either) if node.negated else disjunction(either)


def bind_in_list(scope: Scope, node: ast.InList) -> Expression:
    operand = scope.bind(node.operand)
    items = [_right(scope, operand, item) for item in node.items]
    return in_list(scope.binding, operand, items, node.negated, node.position)
