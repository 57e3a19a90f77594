"""The random queries of the differential tests, with plainer expressions in their conditions.

What rules and access paths look at are comparisons of columns with columns and constants, IN,
BETWEEN, IS NULL, prefixes, and subqueries that are tied to the query around them. The generator
draws these among hundreds of functions; here they are most of what is drawn, and cheap to plan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Final

from tests.differential.expressions import Expressions, Scope, Subquery, Visible
from tests.differential.kinds import COMMON, cast_name
from tests.differential.literals import literal
from tests.differential.queries import Queries
from tests.differential.schema import Schema

COMPARISONS: Final = ("=", "=", "=", "<", "<=", ">", ">=", "<>")
PATTERNS: Final = ("'a%'", "'ab%'", "'%b'", "''", "'x_%'")
ANY_EXPRESSION: Final = 0.12
"""How often an expression may be anything that the generator knows."""

PART: Final = "/*part*/ true"
"""Stands in a text where a condition may be put instead."""


class PlainExpressions(Expressions):
    """Mostly columns, literals, and comparisons between them."""

    def __init__(self, random: Random, subquery: Subquery | None = None) -> None:
        super().__init__(random, subquery)
        self._any = super().of

    def of(self, kind: str, scope: Scope, depth: int) -> str:
        if self.random.random() < ANY_EXPRESSION:
            return self._any(kind, scope, depth)
        if kind == "bool" and depth > 0 and scope.grouped is None:
            return self.condition(scope, depth)
        return self.leaf(kind, scope)

    def condition(self, scope: Scope, depth: int) -> str:
        lot = self.random.random()
        columns = [each for each in scope.columns if each.kind != "json"]
        if lot < ANY_EXPRESSION or not columns or scope.grouped is not None:
            return self._any("bool", scope, max(depth, 1))
        if lot < 0.3 and depth > 0:
            return self._combined(scope, depth)
        if lot < 0.5 and depth > 0 and self.subquery is not None:
            made = self.subquery("bool", scope, depth)
            if made is not None:
                return made
        return self._comparison(self._column(columns), scope)

    def _column(self, columns: list[Visible]) -> Visible:
        """A column; rather one of those that tables share and have keys on."""
        small = [each for each in columns if each.text.endswith((".id", ".a", ".n"))]
        return self.random.choice(small if small and self.random.random() < 0.5 else columns)

    def _combined(self, scope: Scope, depth: int) -> str:
        one, other = (self.condition(scope, depth - 1) for _ in range(2))
        return self.random.choice(
            (f"({one} AND {other})", f"({one} OR {other})", f"(NOT {one})", f"({one} AND {other})")
        )

    def _comparison(self, column: Visible, scope: Scope) -> str:
        random, x, kind = self.random, column.text, column.kind
        lot, no = random.random(), random.choice(("", "NOT "))
        if lot < 0.55:
            return f"({x} {random.choice(COMPARISONS)} {self._other(column, scope)})"
        if lot < 0.7:
            items = [literal(random, kind) for _ in range(random.randint(1, 4))]
            if random.random() < 0.15:
                items.append(f"NULL::{cast_name(kind)}")
            return f"({x} {no}IN ({', '.join(items)}))"
        if lot < 0.8:
            return f"({x} {no}BETWEEN {literal(random, kind)} AND {literal(random, kind)})"
        if lot < 0.9 or kind not in ("text", "varchar"):
            return f"({x} IS {no}NULL)"
        return f"({x} {no}LIKE {random.choice(PATTERNS)})"

    def _other(self, column: Visible, scope: Scope) -> str:
        """What a column is compared with: the query around, another column, a constant."""
        random = self.random
        if scope.outer is not None and random.random() < 0.6:
            outer = scope.outer.of_kind(column.kind)
            if outer:
                return random.choice(outer).text
        same = [each.text for each in scope.of_kind(column.kind) if each != column]
        if same and random.random() < 0.35:
            return random.choice(same)
        return literal(random, column.kind)


@dataclass(frozen=True, slots=True)
class PlainQuery:
    """A query whose rows come in the order of the columns `ordered_by`.

    With `inside`, its WHERE has a PART, and its last column tells of each row whether the condition
    `inside` holds.
    """

    text: str
    kinds: tuple[str, ...]
    inside: str = ""
    ordered_by: tuple[int, ...] = ()


class PlainQueries(Queries):
    """Queries of the generator whose expressions are plain."""

    def __init__(self, random: Random, schema: Schema) -> None:
        super().__init__(random, schema)
        self.expressions = PlainExpressions(random, self._subquery)
        self.sources.expressions = self.expressions

    def draw(self) -> PlainQuery:
        if self.random.random() < 0.35:
            return self._divided()
        query = self.select(self.random.choice((1, 2, 2, 3)))
        kinds = tuple(column.kind for column in query.columns)
        return PlainQuery(query.sql, kinds, ordered_by=query.ordered_by)

    def _divided(self) -> PlainQuery:
        """A query that is divided by a condition on its sources, inside."""
        body = self._plain(None, self.random.choice((1, 2)), None)
        scope = Scope(body.source.columns)
        inside = self.expressions.condition(scope, 2)
        where = body.where.removeprefix(" WHERE ")
        body = replace(body, where=f" WHERE {f'({where}) AND ' if where else ''}{PART}")
        kinds = tuple(output.kind for _, output in body.items)
        items = ", ".join(f"{made} AS {output.name}" for made, output in body.items)
        text = f"SELECT {items}, ({inside}) AS inside FROM {body.source.sql}{body.where}"
        return PlainQuery(text, (*kinds, "bool"), inside)

    def _some_kinds(self, scope: Scope) -> tuple[str, ...]:
        kinds = scope.kinds() or list(COMMON)
        return tuple(self.random.choices(kinds, k=self.random.randint(1, 3)))
