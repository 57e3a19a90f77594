"""Orders the joins of a vector tree: the relation with the most rows is read in batches, and looks
its rows up in all others.

    lineitem ── orders ── customer ── nation      the tree that equalities make from there, each
        └────── supplier                          relation by the shortest way

A relation with those behind it is a right side, itself a tree: orders with customer with nation.
The one that keeps the smallest part of the rows comes first. An equality that the tree does without
is a condition as soon as both its sides are there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from qserver.sql.expressions import Expression
from qserver.sql.join_conditions import divided_between, is_equality
from qserver.sql.plan import Plan
from qserver.sql.vectors.program import NotVectorized
from qserver.sql.vectors.trees import Part
from qserver.sql.walk import sources_named


@dataclass(frozen=True, slots=True)
class Relation:
    part: Part
    sources: tuple[int, ...]
    owned: frozenset[int]
    rows: float
    all_rows: float
    """Those without its own conditions."""

    @property
    def share(self) -> float:
        return self.rows / max(1.0, self.all_rows)


Joiner = Callable[[Relation, Relation, list[Expression]], Part]
RowsOf = Callable[[Plan], float]
"""Estimates the rows of a plan."""


def ordered(
    relations: list[Relation], conditions: list[Expression], join: Joiner
) -> tuple[Part, list[Expression]]:
    """Return the part that joins all relations, and the conditions that it leaves over."""
    first = max(range(len(relations)), key=lambda at: (relations[at].rows, -at))
    parents = _parents(relations, conditions, first)
    if len(parents) < len(relations):
        raise NotVectorized  # nothing but a product ties them
    left_over = list(conditions)

    def joined(at: int) -> Relation:
        """Return a relation joined with all behind it."""
        found = relations[at]
        behind = [joined(other) for other, parent in parents.items() if parent == at]
        for right in sorted(behind, key=lambda each: each.share):
            there = found.owned | right.owned
            ties = [
                each
                for each in left_over
                if sources_named(each) <= there
                and sources_named(each) & found.owned
                and sources_named(each) & right.owned
            ]
            for each in ties:
                left_over.remove(each)
            found = replace(
                found,
                part=join(found, right, ties),
                sources=found.sources + right.sources,
                owned=there,
                rows=found.rows * right.share,
            )
        return found

    return joined(first).part, left_over


def _parents(relations: list[Relation], conditions: list[Expression], first: int) -> dict[int, int]:
    """Return for each relation the one that it is joined to, nearest first."""
    parents = {first: -1}
    waiting = [first]
    while waiting:
        at = waiting.pop(0)
        for other, relation in enumerate(relations):
            if other in parents:
                continue
            keys, _ = divided_between(
                filter(is_equality, conditions), relations[at].owned, relation.owned
            )
            if _among(keys, relations[at].owned | relation.owned):
                parents[other] = at
                waiting.append(other)
    return parents


def _among(keys: tuple[tuple[Expression, Expression], ...], both: frozenset[int]) -> bool:
    """Whether one of the pairs names no third relation."""
    return any(sources_named(one) | sources_named(other) <= both for one, other in keys)
