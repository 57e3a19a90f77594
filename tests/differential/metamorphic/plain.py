"""The random queries of the differential tests, with plainer expressions in their conditions.

What rules and access paths look at are comparisons of columns with columns and constants, IN,
BETWEEN, IS NULL, prefixes, and subqueries that are tied to the query around them. The generator
draws these among hundreds of functions; here they are most of what is drawn, and cheap to plan.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from tests.differential.expressions import Expressions, Scope, Subquery, Visible
from tests.differential.kinds import COMMON, NUMBERS, cast_name
from tests.differential.literals import literal
from tests.differential.queries import Queries
from tests.differential.schema import Schema
from tests.differential.sources import Source, named_table

COMPARISONS: Final = ("=", "=", "=", "<", "<=", ">", ">=", "<>")
SMALL: Final = (".id", ".a", ".n")
"""Columns that hold small numbers, so that many rows agree in them."""
TIES: Final = ("=", "=", "=", "=", "<", ">=")
MEMBERSHIPS: Final = ("IN", "NOT IN", "= ANY", "<> ALL", "< ANY", ">= ALL", "<> ANY", "<= ALL")
EXTREMES: Final = (*NUMBERS, "text", "date", "timestamp", "timestamptz", "time")
ARRAYS: Final = ("int2", "int4", "int8", "numeric", "float8", "text", "date", "timestamp", "bool")
ELEMENT: Final = re.compile(r"[(A-Z ]*'?([^'\"\\{}(),]*?)'?\)?(?:::\w+)?")
"""A literal whose text can be an element of an array."""
PATTERNS: Final = ("'a%'", "'ab%'", "'%b'", "''", "'x_%'")
ANY_EXPRESSION: Final = 0.12
"""How often an expression may be anything that the generator knows."""

PART: Final = "/*part*/ true"
"""Stands in a text where a condition may be put instead."""

MEMBER: Final = re.compile(
    r"/\*member\*/ \((?P<left>[^()]*)\) (?P<word>\S+|NOT IN|\S+ A\w\w)"
    r" \(SELECT (?P<right>[^()]*) FROM (?P<rest>[^()]*)\)"
)
"""A condition that compares values with the rows of a subquery, both plain columns."""

LEFT_JOIN: Final = re.compile(
    r"SELECT (?P<left>(?P<first>\w+)\.\w+) AS v0, (?P<right>\w+)\.\w+ AS v1"
    r" FROM (?P<one>[^()]* (?P=first)) LEFT JOIN (?P<other>[^()]* (?P=right))"
    r" ON (?P<on>(?:(?!ORDER BY|LIMIT|OFFSET|FETCH)[^()])*)"
)
"""A join of two tables that shows a column of each."""

AGAIN: Final = "/*again*/ true"
"""Stands in a subquery, where a condition may be put that makes it run again for each row."""


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
        small = [each for each in columns if each.text.endswith(SMALL)]
        return self.random.choice(small if small and self.random.random() < 0.5 else columns)

    def _combined(self, scope: Scope, depth: int) -> str:
        one, other = (self.condition(scope, depth - 1) for _ in range(2))
        if self.random.random() < 0.15:
            common = self.condition(scope, depth - 1)
            return f"(({common} AND {one}) OR ({other} AND {common}))"
        return self.random.choice(
            (f"({one} AND {other})", f"({one} OR {other})", f"(NOT {one})", f"({one} AND {other})")
        )

    def _comparison(self, column: Visible, scope: Scope) -> str:
        random, x, kind = self.random, column.text, column.kind
        if kind in ARRAYS and random.random() < 0.12:
            return self._membership(column)
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

    def _membership(self, column: Visible) -> str:
        """A comparison with an array, as it can be bound."""
        random, kind = self.random, column.kind
        drawn = [ELEMENT.fullmatch(literal(random, kind)) for _ in range(random.choice((0, 2, 5)))]
        items = [f'"{found[1]}"' for found in drawn if found]
        if random.random() < 0.15:
            items.append("NULL")
        word = random.choice(("= ANY", "= ANY", "<> ALL", "< ANY", ">= ALL"))
        return f"({column.text} {word} ('{{{','.join(items)}}}'::{kind}[]))"

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
        """One of a few forms at which rules look closely, or whatever the generator draws."""
        forms = (
            (0.25, self._divided),
            (0.4, self._tied),
            (0.5, self._first_by_key),
            (0.58, self._extreme),
            (0.64, self._for_each_row),
            (0.68, self._first_by_index),
            (0.73, self._member),
            (0.77, self._by_prefix),
            (0.8, self._crowded_join),
            (0.85, self._common_condition),
            (0.9, self._scanned),
        )
        lot = self.random.random()
        for below, draw in forms:
            if lot < below:
                return draw()
        query = self.select(self.random.choice((1, 2, 2, 3)))
        kinds = tuple(column.kind for column in query.columns)
        return PlainQuery(query.sql, kinds, ordered_by=query.ordered_by)

    def _tied(self) -> PlainQuery:
        """Rows for which a subquery that depends on them has rows, or has not."""
        source, scope = self._source(None, self.random.choice((0, 1)))
        where = self._predicate(scope, 1)
        if self.random.random() < 0.3:
            where += f" AND {self.expressions.condition(scope, 1)}"
        items = self.random.sample(scope.columns, min(3, len(scope.columns)))
        names = ", ".join(f"{each.text} AS v{at}" for at, each in enumerate(items))
        text = f"SELECT {names} FROM {source.sql} WHERE {where}"
        return PlainQuery(text, tuple(each.kind for each in items))

    def _for_each_row(self) -> PlainQuery:
        """A value for each row, by a subquery that depends on several columns of it.

        The rows are those of two tables side by side, so that most of them agree in the columns of
        one and differ in those of the other.
        """
        one, other = (self._table()[0] for _ in range(2))
        scope = Scope((*one.columns, *other.columns))
        inner = self.sources._named(named_table(self.random.choice(self.schema.tables)))
        ties = [
            f"{mine.text} {self.random.choice(COMPARISONS)} {theirs.text}"
            for columns in (one.columns, other.columns)
            for mine, theirs in self._ties(Scope(inner.columns), Scope(columns), 1)
        ]
        column = self.random.choice(inner.columns)
        made = self.random.choice(("count(*)", f"count({column.text})", "count(*)"))
        where = " OR ".join(ties) if self.random.random() < 0.4 else " AND ".join(ties)
        where = f"({where or 'true'}) AND {AGAIN}"
        items = self.random.sample(scope.columns, min(2, len(scope.columns)))
        names = ", ".join(f"{each.text} AS v{at}" for at, each in enumerate(items))
        subquery = f"(SELECT {made} FROM {inner.sql} WHERE {where})"
        if self.random.random() < 0.3:
            subquery = f"(EXISTS (SELECT 1 FROM {inner.sql} WHERE {where}))"
        kind = "bool" if subquery.startswith("(EXISTS") else "int8"
        text = f"SELECT {names}, {subquery} AS found FROM {one.sql}, {other.sql}"
        return PlainQuery(text, (*(each.kind for each in items), kind))

    def _member(self) -> PlainQuery:
        """Whether values of a row are among the rows of a subquery, as IN, ANY or ALL tell."""
        outer, inner = (self._table()[0] for _ in range(2))
        ties = self._ties(Scope(inner.columns), Scope(outer.columns), 1)
        if self.random.random() < 0.4:  # among its own rows, where some columns are NULL in both
            table = named_table(self.random.choice(self.schema.tables))
            outer, inner = self.sources._named(table), self.sources._named(table)
            same = list(zip(inner.columns, outer.columns, strict=True))
            ties = self.random.sample([tie for tie in same if tie[0].kind != "json"], 2)
        words = MEMBERSHIPS[:2] if len(ties) > 1 else MEMBERSHIPS
        left = ", ".join(theirs.text for _, theirs in ties)
        right = ", ".join(mine.text for mine, _ in ties)
        item = self.random.choice(outer.columns)
        rest = f"{inner.sql} WHERE true"
        if self.random.random() < 0.4:
            ((mine, theirs),) = self._ties(Scope(inner.columns), Scope(outer.columns), 1)
            rest += f" AND {mine.text} {self.random.choice(COMPARISONS)} {theirs.text}"
        condition = f"/*member*/ ({left}) {self.random.choice(words)} (SELECT {right} FROM {rest})"
        text = f"SELECT {item.text} AS v0, ({condition}) AS member FROM {outer.sql}"
        return PlainQuery(text, (item.kind, "bool"))

    def _ties(self, inner: Scope, outer: Scope, count: int) -> list[tuple[Visible, Visible]]:
        """Pairs of columns of one kind; rather of small numbers."""
        ties = [
            (mine, theirs)
            for mine in inner.columns
            for theirs in outer.columns
            if mine.kind == theirs.kind != "json"
        ]
        small = [tie for tie in ties if all(each.text.endswith(SMALL) for each in tie)]
        return self.random.sample(small or ties, min(count, len(small or ties)))

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

    def likely(self, scope: Scope, depth: int) -> str:
        """Mostly the condition as it is: what stands within OR or coalesce, no rule looks at."""
        if self.random.random() < 0.7:
            return self.expressions.condition(scope, depth)
        return super().likely(scope, depth)

    def _predicate(self, scope: Scope, depth: int) -> str:
        """Mostly a subquery that is tied to the query around it: that is what gets unnested."""
        source, inner = self._source(scope, 0)
        ties = [
            (mine.text, theirs.text)
            for mine in inner.columns
            for theirs in scope.columns
            if mine.kind == theirs.kind != "json"
        ]
        if not ties or self.random.random() < 0.3:
            return super()._predicate(scope, depth)
        small = [tie for tie in ties if tie[0].endswith(SMALL) and tie[1].endswith(SMALL)]
        mine, theirs = self.random.choice(small if small and self.random.random() < 0.6 else ties)
        where = f" WHERE {mine} {self.random.choice(TIES)} {theirs}"
        if self.random.random() < 0.4:
            where += f" AND {self.expressions.condition(inner, 0)}"
        no = self.random.choice(("", "NOT "))
        item, value = self.random.choice(ties)
        query = self._tied_query(item, source, inner, where)
        return (
            f"({no}EXISTS ({query}))"
            if self.random.random() < 0.4
            else (f"({value} {no}IN ({query}))")
        )

    def _tied_query(self, item: str, source: Source, inner: Scope, where: str) -> str:
        """The subquery, with what decides how many rows it has, or which."""
        lot, rest = self.random.random(), f"FROM {source.sql}{where}"
        other = self.random.choice([each.text for each in inner.columns if each.kind != "json"])
        if lot < 0.1:
            return f"SELECT DISTINCT {item} {rest}"
        if lot < 0.2 and source.key is not None:
            order = ", ".join((other, *source.key))
            return f"SELECT DISTINCT ON ({other}) {item} {rest} ORDER BY {order}"
        if lot < 0.28 and source.key is not None:
            return f"SELECT {item} {rest} ORDER BY {', '.join(source.key)} LIMIT 1"
        if lot < 0.36:
            return f"SELECT {item} {rest} GROUP BY {item} HAVING count(*) > 0"
        return f"SELECT {item} {rest}"

    def _table(self) -> tuple[Source, str]:
        """A table, and perhaps a condition on its rows."""
        source = self.sources._named(named_table(self.random.choice(self.schema.tables)))
        return source, self._where(Scope(source.columns), 2)

    def _first_by_key(self) -> PlainQuery:
        """Rows in the order of a key, and perhaps only the first: an index may have that order."""
        source, where = self._table()
        columns = [each for each in source.columns if each.kind != "json"]
        by_key = [each for each in columns if each.text in (source.key or ())]
        rest = self.random.sample(columns, min(2, len(columns)))
        items = [*by_key, *rest]
        ordered_by = tuple(range(len(by_key) or len(items)))
        way = self.random.choice(("", " DESC", " DESC NULLS LAST"))
        order = ", ".join(f"{at + 1}{way}" for at in ordered_by)
        cut = self.random.choice(("", " LIMIT 1", " LIMIT 3", " LIMIT 4 OFFSET 2", " OFFSET 1"))
        names = ", ".join(f"{each.text} AS v{at}" for at, each in enumerate(items))
        text = f"SELECT {names} FROM {source.sql}{where} ORDER BY {order}{cut}"
        return PlainQuery(text, tuple(each.kind for each in items), ordered_by=ordered_by)

    def _by_prefix(self) -> PlainQuery:
        """Rows by one column of an index of two, in a range of the other that may be NULL."""
        table = self.random.choice(self.schema.tables)
        pairs = [re.search(r"_by_two ON \w+ \((\w+), (\w+)\)", each) for each in table.indexes]
        found = next((pair for pair in pairs if pair), None)
        if found is None or not table.rows:
            return self._first_by_key()
        one, other = found[1], found[2]
        row = self.random.choice(table.rows)
        names = [column.name for column in table.writable]
        values = [row[names.index(each)] for each in (one, other)]
        where = f"{one} = {values[0]}"
        if values[1] == "NULL" or self.random.random() < 0.3:
            values[1] = literal(self.random, self._kind_of(table.name, other))
        sign = self.random.choice(("<", "<=", ">", ">="))
        if self.random.random() < 0.8:
            where += f" AND {other} {sign} {values[1]}"
        order = f" ORDER BY {other}{self.random.choice(('', ' DESC', ' DESC NULLS LAST'))}"
        order += self.random.choice(("", " LIMIT 1", " LIMIT 2 OFFSET 1"))
        text = f"SELECT {other} AS v0 FROM {table.name} WHERE {where}{order}"
        return PlainQuery(text, (self._kind_of(table.name, other),), ordered_by=(0,))

    def _common_condition(self) -> PlainQuery:
        """A join whose condition stands in each branch of an OR, beside others."""
        one, other = (self._table()[0] for _ in range(2))
        ((mine, theirs),) = self._ties(Scope(other.columns), Scope(one.columns), 1)
        tie = f"{theirs.text} = {mine.text}"
        branches = []
        for _ in range(self.random.choice((2, 2, 3))):
            side = self.random.choice((one, other))
            parts = [tie, self.expressions.condition(Scope(side.columns), 0)]
            self.random.shuffle(parts)
            branches.append(f"({' AND '.join(parts)})")
        columns = [self.random.choice(each.columns) for each in (one, other)]
        names = ", ".join(f"{each.text} AS v{at}" for at, each in enumerate(columns))
        source = self.random.choice(
            (f"{one.sql}, {other.sql} WHERE", f"{one.sql} JOIN {other.sql} ON")
        )
        text = f"SELECT {names} FROM {source} {' OR '.join(branches)}"
        return PlainQuery(text, tuple(each.kind for each in columns))

    def _scanned(self) -> PlainQuery:
        """Aggregates of a whole table by a plain condition: over vectors, if it has the rows."""
        source, _ = self._table()
        scope = Scope(source.columns)
        column = self.random.choice([each for each in source.columns if each.kind in EXTREMES])
        same = [each.text for each in scope.of_kind(column.kind) if each != column]
        where = self.expressions.condition(scope, 0)
        if same and self.random.random() < 0.5:
            where = f"{column.text} {self.random.choice(COMPARISONS)} {self.random.choice(same)}"
        made = f"count(*) AS v0, count({column.text}) AS v1, min({column.text}) AS v2"
        text = f"SELECT {made} FROM {source.sql} WHERE {where}"
        return PlainQuery(text, ("int8", "int8", column.kind))

    def _crowded_join(self) -> PlainQuery:
        """A join in which one key has many rows, and another condition chooses among them."""
        one, other = (self._table()[0] for _ in range(2))
        ((mine, theirs),) = self._ties(Scope(other.columns), Scope(one.columns), 1)
        keys = [
            next(c.text for c in each.columns if c.text.endswith(".a")) for each in (one, other)
        ]
        word = self.random.choice(("LEFT JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN"))
        on = f"{keys[0]} % 2 = {keys[1]} % 2"
        on += f" AND {theirs.text} {self.random.choice(COMPARISONS)} {mine.text}"
        columns = [self.random.choice(each.columns) for each in (one, other)]
        names = ", ".join(f"{each.text} AS v{at}" for at, each in enumerate(columns))
        text = f"SELECT {names} FROM {one.sql} {word} {other.sql} ON {on}"
        return PlainQuery(text, tuple(each.kind for each in columns))

    def _first_by_index(self) -> PlainQuery:
        """A column in the order of its index, from either end, perhaps only the first."""
        indexed = self._indexed()
        if not indexed:
            return self._first_by_key()
        table, column = self.random.choice(indexed)
        way = self.random.choice(("", " DESC", " DESC NULLS LAST", " NULLS FIRST"))
        cut = self.random.choice(("", " LIMIT 1", " LIMIT 2", " LIMIT 3 OFFSET 1"))
        where = ""
        if self.random.random() < 0.3:
            kind = self._kind_of(table, column)
            sign = self.random.choice(COMPARISONS)
            where = f" WHERE {column} {sign} {literal(self.random, kind)}"
        text = f"SELECT {column} AS v0 FROM {table}{where} ORDER BY {column}{way}{cut}"
        return PlainQuery(text, (self._kind_of(table, column),), ordered_by=(0,))

    def _extreme(self) -> PlainQuery:
        """The least or the greatest of a column: an index may have it at its end."""
        source, where = self._table()
        columns = [each.text for each in source.columns if each.kind in EXTREMES]
        column, table = self.random.choice(columns), source.sql
        indexed = self._indexed()
        if indexed and self.random.random() < 0.7:
            table, column = self.random.choice(indexed)
            where = ""
        kind = self._kind_of(table.split()[0], column.split(".")[-1])
        word = self.random.choice(("min", "max"))
        return PlainQuery(f"SELECT {word}({column}) FROM {table}{where}", (kind,))

    def _indexed(self) -> list[tuple[str, str]]:
        """Tables, and columns in whose order an index has them."""
        found = []
        for table in self.schema.tables:
            for index in table.indexes:
                plain = re.search(r"\((\w+)(?:, \w+)?\)$", index)
                if plain and self._kind_of(table.name, plain[1]) in EXTREMES:
                    found.append((table.name, plain[1]))
        return found

    def _kind_of(self, table: str, column: str) -> str:
        named = next(each for each in self.schema.tables if each.name == table)
        return named.column(column).kind

    def _some_kinds(self, scope: Scope) -> tuple[str, ...]:
        kinds = scope.kinds() or list(COMMON)
        return tuple(self.random.choices(kinds, k=self.random.randint(1, 3)))
