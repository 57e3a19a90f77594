"""Splits the condition of a hash join into its keys and the residual condition.

`Join.condition` holds every condition of a join, whatever its method. A hash join has no second
list that a rule could forget to update: its keys are the equalities that compare the left side with
the right side, and the residual is the rest.
"""

from __future__ import annotations

from collections.abc import Iterable

from qserver.sql.expressions import Apply, Expression
from qserver.sql.plan import Join, Scan
from qserver.sql.walk import (
    conjunction,
    conjuncts,
    free_sources,
    has_subquery,
    is_volatile,
    output_sources,
    sources_named,
)

KeyPair = tuple[Expression, Expression]


def hash_keys(node: Join) -> tuple[KeyPair, ...]:
    """Return the pairs of a left and a right expression that must be equal."""
    return divided(node)[0]


def residual(node: Join) -> Expression | None:
    """Return the condition that is checked for each pair of rows that the join method finds."""
    if node.method != "hash":
        return node.condition
    return divided(node)[1]


def divided(node: Join) -> tuple[tuple[KeyPair, ...], Expression | None]:
    """Return the keys and the residual of a hash join."""
    left, right = frozenset(output_sources(node.left)), frozenset(output_sources(node.right))
    return divided_between(conjuncts(node.condition), left, right)


def scan_keys(node: Scan) -> tuple[KeyPair, ...]:
    """Return the pairs of an expression of a correlated scan's row and one of other rows that must
    be equal."""
    conditions = conjuncts(node.condition)
    own = frozenset({node.source})
    others = frozenset().union(*map(free_sources, conditions)) - own
    return divided_between(conditions, own, others)[0]


def divided_between(
    conditions: Iterable[Expression], left: frozenset[int], right: frozenset[int]
) -> tuple[tuple[KeyPair, ...], Expression | None]:
    """Return the keys and the residual of a hash join of these sources."""
    keys, rest = [], []
    for condition in conditions:
        pair = _pair(condition, left, right)
        if pair is None:
            rest.append(condition)
        else:
            keys.append(pair)
    return tuple(keys), conjunction(rest)


def is_equality(condition: Expression) -> bool:
    return isinstance(condition, Apply) and condition.function.comparison == "="


def _pair(condition: Expression, left: frozenset[int], right: frozenset[int]) -> KeyPair | None:
    if not is_equality(condition) or has_subquery(condition) or is_volatile(condition):
        return None
    assert isinstance(condition, Apply)
    one, other = condition.arguments
    one_named, other_named = sources_named(one), sources_named(other)
    if one_named & left and other_named & right and not (one_named & right or other_named & left):
        return one, other
    if one_named & right and other_named & left and not (one_named & left or other_named & right):
        return other, one
    return None
