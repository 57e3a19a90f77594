"""Random typed expressions over the columns that are in scope.

An expression is asked for by kind and depth. Its parts come from the templates; its leaves are
columns, literals and NULL; subqueries come from whoever makes queries, through a hook.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from tests.differential.kinds import COMMON, GROUPS, NUMBERS, cast_name
from tests.differential.literals import literal, special
from tests.differential.templates import HOLE, Template, draw, making, templates

BEFORE_WINDOW: Final = re.compile(r"DISTINCT|ORDER BY|WITHIN GROUP")
"""What an aggregate cannot have if OVER follows it."""


WILD_SHARE: Final = 0.08
"""Of the literals, how many are wild ones."""


@dataclass(frozen=True, slots=True)
class Visible:
    """A column, or a grouped expression, as an expression may name it."""

    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class Scope:
    """What an expression may refer to.

    `grouped` is what arguments of aggregates see; where it is None, there are no aggregates.
    """

    columns: tuple[Visible, ...] = ()
    outer: Scope | None = None
    grouped: Scope | None = None

    def of_kind(self, kind: str) -> list[Visible]:
        return [column for column in self.columns if column.kind == kind]

    def kinds(self) -> list[str]:
        return [column.kind for column in self.columns]

    def without_aggregates(self) -> Scope:
        return Scope(self.columns, self.outer)


NOTHING: Final = Scope()
Subquery = Callable[[str, Scope, int], str | None]
"""Makes a scalar subquery, EXISTS or IN of a kind, within a scope; None if it does not want to."""


class Expressions:
    """Draws expressions; counts in `reached` which templates were used."""

    def __init__(self, random: Random, subquery: Subquery | None = None) -> None:
        self.random = random
        self.reached: Counter[str] = Counter()
        self.subquery = subquery
        self._wild = WILD_SHARE

    def of(self, kind: str, scope: Scope, depth: int) -> str:
        lot = self.random.random()
        if depth <= 0 or lot < 0.12:
            return self.leaf(kind, scope, depth)
        if lot < 0.18 and self.subquery is not None:
            made = self.subquery(kind, scope, depth - 1)
            if made is not None:
                return made
        template = draw(self.random, "scalar", kind)
        if template is None:
            return self.leaf(kind, scope, depth)
        return self.fill(template, kind, scope, depth)

    def fill_simple(self, kind: str, scope: Scope) -> str:
        """An expression without subqueries, for places that do not take them; of one column."""
        subquery, self.subquery = self.subquery, None
        try:
            return self.of(kind, scope, 1)
        finally:
            self.subquery = subquery

    def probe(self, table: str = "scalar") -> str:
        """One template with literals alone, wild ones often."""
        template = self.random.choice(templates(table))
        kind = template.result
        letter = kind.removesuffix("[]")
        if letter in GROUPS:
            kind = self.random.choice(GROUPS[letter]) + ("[]" if kind.endswith("[]") else "")
        self._wild = self.random.choice((0.1, 0.5, 1.0))
        try:
            return self.fill(template, kind, NOTHING, 0)
        finally:
            self._wild = WILD_SHARE

    def condition(self, scope: Scope, depth: int) -> str:
        return self.of("bool", scope, max(depth, 1))

    def leaf(self, kind: str, scope: Scope, depth: int = 0) -> str:
        lot = self.random.random()
        if scope.grouped is not None and lot < 0.6:
            made = self.aggregate(kind, scope, depth)
            if made is not None:
                return made
        columns = scope.of_kind(kind)
        if columns and lot < 0.9:
            return self.random.choice(columns).text
        if scope.outer is not None and lot < 0.95:
            outer = scope.outer.of_kind(kind)
            if outer:
                return self.random.choice(outer).text
        if lot < 0.5 and (made := self._converted(kind, scope)) is not None:
            return made
        if lot > 0.97:
            return f"NULL::{cast_name(kind)}"
        return literal(self.random, kind, wild=self.random.random() < self._wild)

    def aggregate(
        self, kind: str, scope: Scope, depth: int = 0, *, windowed: bool = False
    ) -> str | None:
        """An aggregate of the kind, over what the scope groups."""
        assert scope.grouped is not None
        found, weights = making("aggregate", kind)
        if windowed:
            kept = [
                (each, weight)
                for each, weight in zip(found, weights, strict=True)
                if not BEFORE_WINDOW.search(each.text)
            ]
            found, weights = tuple(each for each, _ in kept), tuple(weight for _, weight in kept)
        if not found:
            return None
        template = self.random.choices(found, weights)[0]
        inside = scope.grouped.without_aggregates()
        text = self.fill(template, kind, inside, min(depth, 1))
        if self.random.random() < 0.12:
            text += f" FILTER (WHERE {self.condition(inside, 1)})"
        return text

    def fill(self, template: Template, kind: str, scope: Scope, depth: int) -> str:
        """The template with something random in each of its holes."""
        self.reached[template.name] += 1
        binding = template.binding(kind)
        assert binding is not None
        parts: list[str] = []

        def hole(match: re.Match[str]) -> str:
            name = match[1]
            if name.startswith("="):
                return parts[int(name[1:])]
            text = self._part(name, binding, scope, depth)
            if text is None:
                return match[0]
            parts.append(text)
            return text

        return HOLE.sub(hole, template.text)

    def _part(self, name: str, binding: dict[str, str], scope: Scope, depth: int) -> str | None:
        made = special(self.random, name)
        if made is not None:
            return made
        name, plain = name.removesuffix("."), name.endswith(".")
        letter = name.removesuffix("!").removesuffix("[]")
        if letter in GROUPS:
            if letter not in binding:
                binding[letter] = self._bound(letter, scope)
            wanted = binding[letter] + ("[]" if "[]" in name else "")
        else:
            wanted = name
        if name.endswith("!"):
            return cast_name(wanted)
        if wanted not in GROUPS["T"]:
            return None
        if plain:
            return self.leaf(wanted, scope.without_aggregates())
        return self.of(wanted, scope, depth - 1)

    def _bound(self, letter: str, scope: Scope) -> str:
        """A kind for a letter: rather one of which there is a column."""
        group = GROUPS[letter]
        here = [kind for kind in scope.kinds() if kind in group]
        if here and self.random.random() < 0.7:
            return self.random.choice(here)
        usual = [kind for kind in COMMON if kind in group]
        return self.random.choice(usual if usual and self.random.random() < 0.5 else group)

    def _converted(self, kind: str, scope: Scope) -> str | None:
        """A column of another kind, cast, where the cast cannot fail."""
        if kind == "text" and scope.columns:
            return f"({self.random.choice(scope.columns).text})::text"
        if kind in ("numeric", "float8"):
            numbers = [each for each in scope.columns if each.kind in NUMBERS[:3]]
            if numbers:
                return f"({self.random.choice(numbers).text})::{kind}"
        return None
