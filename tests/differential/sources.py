"""What stands in FROM: tables, derived tables, functions, VALUES, and joins of them.

Each *source* says which columns it makes visible and which of them tell its rows apart (`key`), so
that windows and DISTINCT ON can be given an order without ties. In a join the keys of both sides
together tell its rows apart, whatever the kind of the join.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from tests.differential.expressions import Expressions, Scope, Visible
from tests.differential.kinds import COMMON
from tests.differential.schema import Schema, Table
from tests.differential.templates import HOLE, templates

COLUMN_FUNCTIONS: Final = (
    (
        "jsonb_each(jsonb_build_object('a', {int4}, 'b', {text})) AS @(k, v)",
        (("k", "text"), ("v", "jsonb")),
    ),
    (
        "json_each_text(json_build_object('a', {int4}, 'b', {text})) AS @(k, v)",
        (("k", "text"), ("v", "text")),
    ),
    (
        "jsonb_to_recordset(jsonb_build_array(jsonb_build_object('a', {int4}, 'b', {text}),"
        " jsonb_build_object('b', {bool}))) AS @(a int4, b text)",
        (("a", "int4"), ("b", "text")),
    ),
    (
        "json_to_record(json_build_object('a', {int4[]}, 'd', {date})) AS @(a int4[], d date)",
        (("a", "int4[]"), ("d", "date")),
    ),
    ("unnest({int4[]}, {text[]}) AS @(a, b)", (("a", "int4"), ("b", "text"))),
)
"""Calls for FROM, with the alias as @, and the columns that they give."""


@dataclass(frozen=True, slots=True)
class Output:
    """A column of a result: its name and its kind."""

    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Source:
    """An item of FROM. `key` is None where equal rows may come more than once."""

    sql: str
    columns: tuple[Visible, ...]
    key: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Named:
    """A table, a view or a common table, to be read by its name."""

    name: str
    columns: tuple[Output, ...]
    key: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Derived:
    """A query for FROM: its text, its columns, and which of them are its key."""

    sql: str
    columns: tuple[Output, ...]
    key: tuple[int, ...] | None


DeriveQuery = Callable[[Scope | None, int], Derived]


def named_table(table: Table) -> Named:
    columns = tuple(Output(column.name, column.kind) for column in table.columns)
    return Named(table.name, columns, table.key or None)


class Sources:
    """Draws what stands in FROM. `names` grows with common tables and views."""

    def __init__(
        self, random: Random, schema: Schema, expressions: Expressions, derive: DeriveQuery
    ) -> None:
        self.random = random
        self.names: list[Named] = [named_table(table) for table in schema.tables]
        self.expressions = expressions
        self._derive = derive
        self._aliases = 0

    def alias(self, stem: str = "x") -> str:
        self._aliases += 1
        return f"{stem}{self._aliases}"

    def from_clause(self, outer: Scope | None, depth: int) -> Source:
        """Everything after the word FROM."""
        source = self.one(outer, depth)
        for _ in range(self.random.choice((0, 0, 0, 1, 1, 2)) if depth > 0 else 0):
            source = self._joined(source, outer, depth)
        return source

    def one(self, outer: Scope | None, depth: int) -> Source:
        lot = self.random.random()
        if depth > 1 and lot < 0.15:
            return self._derived(outer, depth, lateral=False)
        if lot < 0.2:
            return self._values()
        if lot < 0.24:
            return self._function(Scope((), outer))
        return self._named(self.random.choice(self.names))

    def _named(self, named: Named) -> Source:
        alias = self.alias()
        columns = tuple(Visible(f"{alias}.{column.name}", column.kind) for column in named.columns)
        key = None if named.key is None else tuple(f"{alias}.{name}" for name in named.key)
        word = self.random.choice((" AS", ""))
        return Source(f"{named.name}{word} {alias}", columns, key)

    def _derived(self, outer: Scope | None, depth: int, *, lateral: bool) -> Source:
        alias = self.alias()
        query = self._derive(outer, depth - 1)
        names = [f"c{number}" for number in range(len(query.columns))]
        columns = tuple(
            Visible(f"{alias}.{name}", column.kind)
            for name, column in zip(names, query.columns, strict=True)
        )
        key = None
        if query.key is not None:
            key = tuple(f"{alias}.{names[position]}" for position in query.key)
        word = "LATERAL " if lateral else ""
        return Source(f"{word}({query.sql}) AS {alias}({', '.join(names)})", columns, key)

    def _values(self) -> Source:
        alias = self.alias()
        kinds = self.random.choices(COMMON, k=self.random.randint(1, 3))
        rows = [
            ", ".join(self.expressions.leaf(kind, Scope()) for kind in kinds)
            for _ in range(self.random.randint(1, 4))
        ]
        names = ["n", *(f"c{number}" for number in range(len(kinds)))]
        columns = tuple(
            Visible(f"{alias}.{name}", kind)
            for name, kind in zip(names, ["int4", *kinds], strict=True)
        )
        values = ", ".join(f"({number}, {row})" for number, row in enumerate(rows))
        return Source(f"(VALUES {values}) AS {alias}({', '.join(names)})", columns, (f"{alias}.n",))

    def _function(self, scope: Scope) -> Source:
        alias = self.alias()
        if self.random.random() < 0.3:
            return self._function_of_columns(alias, scope)
        template = self.random.choice(templates("table"))
        kind = template.result if template.result != "E" else self.random.choice(("int4", "text"))
        call = self.expressions.fill(template, kind, scope, 1)
        columns = (Visible(f"{alias}.v", kind), Visible(f"{alias}.n", "int8"))
        if self.random.random() < 0.6:
            sql = f"{call} WITH ORDINALITY AS {alias}(v, n)"
            return Source(sql, columns, (f"{alias}.n",))
        return Source(f"{call} AS {alias}(v)", columns[:1], None)

    def _function_of_columns(self, alias: str, scope: Scope) -> Source:
        """A function whose rows have several columns."""
        call, columns = self.random.choice(COLUMN_FUNCTIONS)

        def part(match: re.Match[str]) -> str:
            return self.expressions.of(match[1], scope, 1)

        sql = HOLE.sub(part, call).replace("@", alias)
        return Source(sql, tuple(Visible(f"{alias}.{name}", kind) for name, kind in columns), None)

    def _joined(self, left: Source, outer: Scope | None, depth: int) -> Source:
        lot = self.random.random()
        if lot < 0.12:
            return self._lateral(left, outer, depth)
        right = self.one(outer, depth)
        columns = left.columns + right.columns
        key = None if left.key is None or right.key is None else left.key + right.key
        if lot < 0.22:
            word = self.random.choice((", ", " CROSS JOIN "))
            if word == ", " and " JOIN " in left.sql:
                word = " CROSS JOIN "
            return Source(f"{left.sql}{word}{right.sql}", columns, key)
        kind = self.random.choice(("JOIN", "INNER JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
        using = self._using(left, right, kind)
        if using is not None:
            return using
        condition = self._on(left, right, outer, depth, full=kind == "FULL JOIN")
        return Source(f"{left.sql} {kind} {right.sql} ON {condition}", columns, key)

    def _lateral(self, left: Source, outer: Scope | None, depth: int) -> Source:
        scope = Scope(left.columns, outer)
        kind = self.random.choice(("CROSS JOIN", "LEFT JOIN", "JOIN"))
        if self.random.random() < 0.35:
            right = self._function(scope)
            right = Source(f"LATERAL {right.sql}", right.columns, right.key)
        else:
            right = self._derived(scope, max(depth - 1, 1), lateral=True)
        condition = "" if kind == "CROSS JOIN" else " ON true"
        key = None if left.key is None or right.key is None else left.key + right.key
        return Source(
            f"{left.sql} {kind} {right.sql}{condition}", left.columns + right.columns, key
        )

    def _on(
        self, left: Source, right: Source, outer: Scope | None, depth: int, *, full: bool
    ) -> str:
        """Mostly an equation between both sides, perhaps with more; a FULL join needs one."""
        pairs = [
            (one.text, other.text)
            for one in left.columns
            for other in right.columns
            if one.kind == other.kind and one.kind != "json"
        ]
        equation = ""
        if pairs:
            small = [pair for pair in pairs if pair[0].endswith((".id", ".a", ".n"))]
            one, other = self.random.choice(
                small if small and self.random.random() < 0.7 else pairs
            )
            equation = f"{one} = {other}"
        if full:
            return equation or "true"
        scope = Scope(left.columns + right.columns, outer)
        lot = self.random.random()
        if equation and lot < 0.6:
            return equation
        condition = self.expressions.condition(scope, min(depth, 2))
        return f"{equation} AND {condition}" if equation and lot < 0.9 else condition

    def _using(self, left: Source, right: Source, kind: str) -> Source | None:
        """A join of two plain tables by the names that they share."""
        if " JOIN " in left.sql or "," in left.sql or "(" in right.sql or "(" in left.sql:
            return None
        if self.random.random() > 0.2:
            return None
        left_alias, right_alias = (each.columns[0].text.split(".")[0] for each in (left, right))
        shared = [
            (column, twin)
            for column in left.columns
            for twin in right.columns
            if column.text.split(".")[1] == twin.text.split(".")[1]
        ]
        usable = [pair[0] for pair in shared if pair[0].kind == pair[1].kind != "json"]
        if not usable:
            return None
        merged = self.random.sample(usable, 1)
        if len(usable) == len(shared) and self.random.random() < 0.4:
            merged = usable
            sql = f"{left.sql} NATURAL {kind} {right.sql}"
        else:
            names = ", ".join(column.text.split(".")[1] for column in merged)
            sql = f"{left.sql} {kind} {right.sql} USING ({names})"
        names_merged = {column.text.split(".")[1] for column in merged}
        columns = [Visible(column.text.split(".")[1], column.kind) for column in merged]
        columns += [
            each
            for each in left.columns + right.columns
            if each.text.split(".")[1] not in names_merged
        ]
        assert left_alias != right_alias
        key = None if left.key is None or right.key is None else left.key + right.key
        return Source(sql, tuple(columns), key)
