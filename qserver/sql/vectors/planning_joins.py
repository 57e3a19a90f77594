"""Decides which joins are vectorized: a chain of hash joins whose first left side is a scan.

    Join ── Join ── Scan orders        the scan is read by chunks, and each join adds columns
      │       └──── Scan customers     a right side: any plan
      └──────────── Scan regions

Right keys are plain columns, so that nothing raises whether or not row code computes them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from qserver.sql import plan
from qserver.sql.expressions import Cast, Column, Expression
from qserver.sql.join_conditions import hash_keys, residual
from qserver.sql.vectors.plans import Check, JoinPlan
from qserver.sql.vectors.program import (
    JoinedColumn,
    NotVectorized,
    Program,
    joined_column,
    joined_columns,
)
from qserver.sql.walk import everything, output_sources
from qserver.values import vector_families as families
from qserver.values.types import INTEGER_KINDS, Kind

JOINS_MAX: Final = 3
"""Joins of one chain: their loops fit into one nest (`codegen.materialize`)."""

_KINDS: Final = frozenset({"inner", "left", "semi", "anti"})
_NUMBERS: Final = frozenset({families.INTEGER, families.NUMERIC})


class Link(NamedTuple):
    """A join of a chain, and the conditions of its rows."""

    join: plan.Join
    conditions: tuple[Expression, ...]


def chain_of(node: plan.Plan) -> tuple[plan.Scan, list[Link]]:
    """Return the scan at the end of a chain, and the joins from there on."""
    conditions: tuple[Expression, ...] = ()
    while isinstance(node, plan.Filter):
        conditions = (node.condition, *conditions)
        node = node.input
    if isinstance(node, plan.Scan) and not conditions:
        return node, []
    if not isinstance(node, plan.Join) or node.method != "hash" or node.lateral:
        raise NotVectorized
    rest = residual(node)
    if node.kind not in _KINDS or (rest is not None and node.kind != "inner"):
        raise NotVectorized
    scan, links = chain_of(node.left)
    if len(links) == JOINS_MAX:
        raise NotVectorized
    links.append(Link(node, conditions if rest is None else (rest, *conditions)))
    return scan, links


class Chain:
    """The programs of a chain of joins. `joined` are the sources that it adds to its scan."""

    def __init__(self, scan: plan.Scan, links: list[Link], constants: list[Expression]) -> None:
        self._scan = scan
        self._constants = constants
        self._joins: list[JoinPlan] = []
        self.joined: dict[int, bool] = {}
        for link in links:
            self._joins.append(self._planned(link))

    def _planned(self, link: Link) -> JoinPlan:
        join, right = link.join, link.join.right
        program = self.program()
        tables = {each.source for each in everything(right) if isinstance(each, plan.Scan)}
        sources = {source: source in tables for source in output_sources(right)}
        keys, right_keys = [], []
        for left, other in hash_keys(join):
            keys.append(program.value(left))
            right_keys.append(_right_key(other, sources))
            kinds = {program.families[keys[-1]], right_keys[-1].vector.family}
            if families.FLOAT in kinds or (len(kinds) > 1 and not kinds <= _NUMBERS):
                raise NotVectorized
        if join.kind in ("inner", "left"):
            self.joined = {**self.joined, **sources}
        checks = []
        for condition in link.conditions:
            checked = self.program()
            checks.append(Check(checked, checked.truth(condition)))
        return JoinPlan(
            join.kind, program, tuple(keys), tuple(right_keys), tuple(sources), tuple(checks)
        )

    def program(self) -> Program:
        """Return a new program over all that is joined so far."""
        return Program(self._scan.source, self._constants, self.joined)

    def joins(self, last: Program) -> tuple[JoinPlan, ...]:
        """Return the joins, each with the columns that it and later programs read."""
        programs = [last]
        for each in self._joins:
            programs += each.programs
        read = joined_columns(*programs)
        return tuple([replace(each, columns=_columns(each, read)) for each in self._joins])


def _columns(join: JoinPlan, read: frozenset[JoinedColumn]) -> tuple[JoinedColumn, ...]:
    own = [each for each in read if each.source in join.sources]
    return tuple(dict.fromkeys([*join.right_keys, *sorted(own)]))


def _right_key(key: Expression, sources: dict[int, bool]) -> JoinedColumn:
    """Return the column of a key; an integer as a numeric is itself."""
    if (
        isinstance(key, Cast)
        and key.operand.type.kind in INTEGER_KINDS
        and key.type.kind is Kind.NUMERIC
        and key.type.precision is None
    ):
        key = key.operand
    if not isinstance(key, Column) or key.source not in sources:
        raise NotVectorized
    return joined_column(key, sources)
