"""OR factoring: takes out of an OR what all its branches demand.

    (a AND b) OR (a AND c)                         →  a AND (b OR c)
    (t.x = 1 AND u.y = 2) OR (t.x = 3 AND u.y = 4)
    →  the same AND (t.x = 1 OR t.x = 3) AND (u.y = 2 OR u.y = 4)

The first makes an equality between two tables the key of their join. The second, for each table of
which all branches demand something, lets its scan drop rows before the join. Both hold with NULL:
AND and OR distribute over each other in three-valued logic too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from qserver.sql import plan
from qserver.sql.expressions import Expression, Or
from qserver.sql.optimizer.estimate import scans_below
from qserver.sql.plan import Plan
from qserver.sql.statistics import Statistics
from qserver.sql.walk import (
    conjunction,
    conjuncts,
    has_subquery,
    is_volatile,
    sources_named,
    tree_rebuilt,
)

BRANCHES_MAX: Final = 32
CONDITIONS_MAX: Final = 128
"""A larger OR stays as it is: comparing its branches would take long, and copies double it."""

Branches = list[tuple[Expression, ...]]


def or_factoring(node: Plan, statistics: Statistics) -> Plan:
    known = _demanded(node)

    def factored(each: Plan) -> Plan:
        if not isinstance(each, plan.Filter | plan.Scan | plan.Join):
            return each
        before = conjuncts(each.condition)
        if not any(isinstance(condition, Or) for condition in before):
            return each
        after: list[Expression] = []
        for condition in before:
            for found in _factored(condition):
                after += [found, *_implied(found, each, known)]
        if len(after) == len(before) and all(map(_is_same, after, before)):
            return each
        joined = conjunction(after)
        assert joined is not None, "an OR stays, or a condition that was taken out of it"
        return replace(each, condition=joined)

    return tree_rebuilt(node, factored)


def _is_same(one: Expression, other: Expression) -> bool:
    return one is other


def _demanded(node: Plan) -> list[Expression]:
    """Return all ORs that a tree demands, wherever they have been moved."""
    found: list[Expression] = []
    waiting: list[Any] = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, plan.Filter | plan.Scan | plan.Join):
            found += [one for one in conjuncts(each.condition) if isinstance(one, Or)]
        waiting += [
            below
            for name in ("left", "right", "input")
            if (below := getattr(each, name, None)) is not None
        ]
    return found


def _branches(condition: Expression) -> Branches | None:
    """Return the conditions of each branch of an OR that may be factored."""
    if not isinstance(condition, Or) or len(condition.operands) > BRANCHES_MAX:
        return None
    branches = [conjuncts(each) for each in condition.operands]
    if sum(map(len, branches)) > CONDITIONS_MAX or is_volatile(condition):
        return None
    return branches


def _factored(condition: Expression) -> list[Expression]:
    """Return conditions that together say the same."""
    branches = _branches(condition)
    if branches is None:
        return [condition]
    common = [each for each in branches[0] if all(each in branch for branch in branches[1:])]
    if not common:
        return [condition]
    rest = [[each for each in branch if each not in common] for branch in branches]
    if not all(rest):
        return common  # a branch demands nothing more, so the others matter no more
    operands = [conjunction(each) for each in rest]
    return [*common, Or(tuple([each for each in operands if each is not None]))]


def _implied(condition: Expression, node: Plan, known: list[Expression]) -> list[Expression]:
    """Return what an OR over several tables demands of each alone."""
    branches = _branches(condition)
    if branches is None:
        return []
    named = sources_named(condition)
    if len(named) < 2:
        return []
    found: list[Expression] = []
    for source in sorted(named & scans_below(node).keys()):
        own = [_of_source(branch, source) for branch in branches]
        if not all(own):
            continue
        operands = [conjunction(each) for each in own]
        made = Or(tuple([each for each in operands if each is not None]))
        if made not in known:
            found.append(made)
            known.append(made)
    return found


def _of_source(branch: tuple[Expression, ...], source: int) -> list[Expression]:
    return [each for each in branch if sources_named(each) == {source} and not has_subquery(each)]
