"""Random typed SELECTs: SQL text out, with what is known of the rows that it gives.

    schema ─► Sources (FROM) ─► Scope ─► Expressions ─► Query

Every query has one right answer: where rows are cut off (LIMIT, DISTINCT ON) or counted by their
place (row_number, lag, ROWS frames), the order is total. So two ways to run a query can be compared
row by row, as a multiset, or in the order of the columns `ordered_by`.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from tests.differential.expressions import Expressions, Scope, Visible
from tests.differential.kinds import ALL, COMMON, COMPARABLE, ELEMENTS, INTEGERS
from tests.differential.schema import Schema
from tests.differential.sources import Derived, Named, Output, Source, Sources
from tests.differential.windows import windowed

DEPTH: Final = 3
OVER: Final = re.compile(r"((?:(?! OVER \().)*) OVER \((.*)\)", re.DOTALL)
PARTED: Final = re.compile(r"(PARTITION BY (?:(?!ORDER BY).)*?) (ORDER BY .*)", re.DOTALL)
FAMILIES: Final = (
    ("int2", "int4", "int8", "numeric", "float4", "float8"),
    ("date", "timestamp", "timestamptz"),
    ("int4", "numeric"),
)
"""Kinds that convert to the later ones of their family by themselves."""


@dataclass(frozen=True, slots=True)
class Query:
    """A SELECT, and what is known of it.

    `key` are positions of columns that tell the rows apart. `ordered_by` are positions of columns
    in whose order the rows come; `total` says that this decides the order of all rows, except of
    those that are equal.
    """

    sql: str
    columns: tuple[Output, ...]
    key: tuple[int, ...] | None = None
    ordered_by: tuple[int, ...] = ()
    total: bool = False
    limited: bool = False


@dataclass(frozen=True, slots=True)
class Body:
    """SELECT … before ORDER BY, in parts."""

    source: Source
    items: tuple[tuple[str, Output], ...]
    where: str = ""
    group: str = ""
    distinct: str = ""
    key: tuple[int, ...] | None = None
    windows: str = ""

    def sql(self) -> str:
        items = ", ".join(f"{text} AS {output.name}" for text, output in self.items)
        rest = f"{self.where}{self.group}{self.windows}"
        return f"SELECT {self.distinct}{items} FROM {self.source.sql}{rest}"


class Queries:
    """Draws queries over a schema, with one source of chance.

    `reached` counts templates and kinds of statements that were used.
    """

    def __init__(self, random: Random, schema: Schema) -> None:
        self.random = random
        self.schema = schema
        self.expressions = Expressions(random, self._subquery)
        self.sources = Sources(random, schema, self.expressions, self._derive)

    @property
    def reached(self) -> Counter[str]:
        return self.expressions.reached

    def select(self, depth: int = DEPTH) -> Query:
        """A whole statement, perhaps with WITH in front."""
        if self.random.random() < 0.2:
            return self._with(depth)
        return self.query(None, depth, top=True)

    def query(
        self,
        outer: Scope | None,
        depth: int,
        kinds: tuple[str, ...] | None = None,
        *,
        top: bool = False,
    ) -> Query:
        """A query; `kinds` are those of its columns, where that is already decided."""
        lot = self.random.random()
        if depth > 0 and lot < 0.14:
            return self._ordered(self._set_operation(outer, depth, kinds), top)
        if lot < 0.17:
            return self._values(kinds or tuple(self.random.choices(COMMON, k=2)))
        if depth > 0 and lot < 0.42:
            body = self._grouped(outer, depth, kinds)
        elif depth > 0 and lot < 0.56 and kinds is None:
            body = self._windowed(outer, depth)
        else:
            body = self._plain(outer, depth, kinds)
        if body.key is None and lot > 0.9 and not body.group:
            if all(output.kind != "json" for _, output in body.items):
                self.reached["DISTINCT"] += 1
                body = replace(body, distinct="DISTINCT ")
        elif lot > 0.93 and not body.group and body.source.key is not None:
            return self._distinct_on(body)
        columns = tuple(output for _, output in body.items)
        if lot > 0.985 and not body.distinct and outer is None:
            return self._unnamed(body)
        return self._ordered(Query(body.sql(), columns, body.key), top)

    def _unnamed(self, body: Body) -> Query:
        """Without AS: the names of the columns are for the database to find."""
        self.reached["columns without names"] += 1
        items = ", ".join(text for text, _ in body.items)
        columns = tuple(
            Output(f"unnamed{at}", output.kind) for at, (_, output) in enumerate(body.items)
        )
        rest = f"{body.where}{body.group}{body.windows}"
        return Query(f"SELECT {items} FROM {body.source.sql}{rest}", columns)

    # --- the bodies of SELECT ---

    def _source(self, outer: Scope | None, depth: int) -> tuple[Source, Scope]:
        source = self.sources.from_clause(outer, depth)
        return source, Scope(source.columns, outer)

    def _where(self, scope: Scope, depth: int) -> str:
        if self.random.random() < 0.5:
            return ""
        self.reached["WHERE"] += 1
        return f" WHERE {self.likely(scope, min(depth, 2))}"

    def likely(self, scope: Scope, depth: int) -> str:
        """A condition that some rows fulfil: most random ones are false or NULL for all."""
        condition = self.expressions.condition(scope, depth)
        lot = self.random.random()
        if lot < 0.25 or not scope.columns:
            return condition
        column = self.random.choice(scope.columns).text
        if lot < 0.5:
            return f"{condition} OR {column} IS NOT NULL"
        if lot < 0.65:
            return f"({condition}) IS NOT TRUE"
        if lot < 0.8:
            return f"NOT ({condition}) OR {column} IS NULL"
        numbers = [each.text for each in scope.columns if each.kind in INTEGERS]
        if not numbers:
            return f"coalesce({condition}, true)"
        limit = self.random.randint(-1, 3)
        return f"{self.random.choice(numbers)} >= {limit} AND coalesce({condition}, true)"

    def _plain(self, outer: Scope | None, depth: int, kinds: tuple[str, ...] | None) -> Body:
        self.reached["SELECT"] += 1
        source, scope = self._source(outer, depth)
        items: list[tuple[str, Output]] = []
        key: tuple[int, ...] | None = None
        if kinds is None and source.key and self.random.random() < 0.5:
            by_name = {column.text: column for column in source.columns}
            if all(name in by_name for name in source.key):
                for name in source.key:
                    items.append((name, Output(f"k{len(items)}", by_name[name].kind)))
                key = tuple(range(len(items)))
        for kind in kinds or self._some_kinds(scope):
            text = self.expressions.of(kind, scope, self.random.randint(0, depth))
            items.append((text, Output(f"v{len(items)}", kind)))
        if kinds is None and self.random.random() < 0.05:
            self.reached["rows in the list of SELECT"] += 1
            kind = self.random.choice(ELEMENTS)
            made = self.expressions.of(f"{kind}[]", scope, 1)
            items.append((f"unnest({made})", Output(f"v{len(items)}", kind)))
            key = None
        return Body(source, tuple(items), self._where(scope, depth), key=key)

    def _some_kinds(self, scope: Scope) -> tuple[str, ...]:
        count = self.random.randint(1, 4)
        return tuple(
            self.random.choice(scope.kinds() if self.random.random() < 0.5 else ALL)
            for _ in range(count)
        )

    def _grouped(self, outer: Scope | None, depth: int, kinds: tuple[str, ...] | None) -> Body:
        source, scope = self._source(outer, depth)
        groups = self._group_expressions(scope)
        text, unique = self._group_by(groups, listed=kinds is None)
        inner = Scope(tuple(groups), outer, grouped=scope)
        items: list[tuple[str, Output]] = []
        if kinds is None:
            for group in groups:
                items.append((group.text, Output(f"g{len(items)}", group.kind)))
            if groups and self.random.random() < 0.3 and not unique:
                names = ", ".join(group.text for group in groups)
                items.append((f"grouping({names})", Output("sets", "int4")))
        key = tuple(range(len(groups))) if unique and kinds is None else None
        for kind in kinds or self.random.choices(COMMON, k=self.random.randint(1, 3)):
            made = self.expressions.of(kind, inner, self.random.randint(0, min(depth, 2)))
            items.append((made, Output(f"v{len(items)}", kind)))
        if self.random.random() < 0.25:
            self.reached["HAVING"] += 1
            text += f" HAVING {self.likely(inner, 1)}"
        return Body(source, tuple(items), self._where(scope, depth), text or " ", key=key)

    def _group_expressions(self, scope: Scope) -> list[Visible]:
        usable = [column for column in scope.columns if column.kind != "json"]
        chosen = self.random.sample(usable, min(len(usable), self.random.choice((0, 1, 1, 2, 3))))
        groups = list(chosen)
        if groups and self.random.random() < 0.2:
            kind = self.random.choice(("int4", "text", "bool"))
            column = groups[0].text
            text = {"int4": f"length(({column})::text)", "bool": f"({column} IS NULL)"}.get(
                kind, f"left(({column})::text, 2)"
            )
            groups[0] = Visible(text, kind)
        return groups

    def _group_by(self, groups: list[Visible], *, listed: bool) -> tuple[str, bool]:
        """GROUP BY over the groups, and whether they tell the rows apart."""
        texts = [group.text for group in groups]
        lot = self.random.random()
        if not groups:
            self.reached["aggregate without GROUP BY"] += 1
            return "", True
        if lot < 0.1 and listed:
            self.reached["GROUP BY position"] += 1
            return f" GROUP BY {', '.join(str(at + 1) for at in range(len(texts)))}", True
        if lot < 0.7:
            self.reached["GROUP BY"] += 1
            return f" GROUP BY {', '.join(texts)}", True
        self.reached["grouping sets"] += 1
        if lot < 0.74:
            self.reached["several grouping sets"] += 1
            word = self.random.choice(("", "", "DISTINCT ", "ALL "))
            other = self.random.choice(("ROLLUP", "CUBE"))
            return f" GROUP BY {word}{texts[0]}, {other} ({', '.join(texts)})", False
        if lot < 0.8:
            return f" GROUP BY ROLLUP ({', '.join(texts)})", False
        if lot < 0.88:
            return f" GROUP BY CUBE ({', '.join(texts)})", False
        sets = [f"({', '.join(self.random.sample(texts, self.random.randint(0, len(texts))))})"]
        sets += [f"({', '.join(texts)})", self.random.choice(("()", f"({texts[0]})"))]
        self.random.shuffle(sets)
        return f" GROUP BY GROUPING SETS ({', '.join(sets)})", False

    def _windowed(self, outer: Scope | None, depth: int) -> Body:
        source, scope = self._source(outer, depth)
        self.reached["window"] += 1
        items: list[tuple[str, Output]] = []
        for _ in range(self.random.randint(1, 2)):
            text, kind = windowed(self.random, self.expressions, source, scope)
            items.append((text, Output(f"w{len(items)}", kind)))
        for kind in self._some_kinds(scope)[:2]:
            made = self.expressions.of(kind, scope, self.random.randint(0, 1))
            items.append((made, Output(f"v{len(items)}", kind)))
        windows = ""
        if self.random.random() < 0.25:
            self.reached["named windows"] += 1
            items, windows = self._named_windows(items)
        return Body(source, tuple(items), self._where(scope, depth), windows=windows)

    def _named_windows(
        self, items: list[tuple[str, Output]]
    ) -> tuple[list[tuple[str, Output]], str]:
        """The same windows with names: whole, or with their partitions alone."""
        made: list[tuple[str, Output]] = []
        definitions: list[str] = []
        for text, output in items:
            whole = OVER.fullmatch(text)
            if whole is None:
                made.append((text, output))
                continue
            call, window = whole[1], whole[2]
            name = self.sources.alias("win")
            parted = PARTED.fullmatch(window)
            if parted is not None and self.random.random() < 0.5:
                definitions.append(f"{name} AS ({parted[1]})")
                made.append((f"{call} OVER ({name} {parted[2]})", output))
            else:
                definitions.append(f"{name} AS ({window})")
                made.append((f"{call} OVER {name}", output))
        return made, f" WINDOW {', '.join(definitions)}" if definitions else ""

    def _distinct_on(self, body: Body) -> Query:
        """The order that decides which row stays is the key of the source."""
        assert body.source.key is not None
        self.reached["DISTINCT ON"] += 1
        usable = [column.text for column in body.source.columns if column.kind != "json"]
        chosen = self.random.choice(usable)
        direction = self.random.choice(("", " DESC", " NULLS FIRST", " DESC NULLS LAST"))
        order = ", ".join((chosen + direction, *body.source.key))
        body = replace(body, distinct=f"DISTINCT ON ({chosen}) ")
        columns = tuple(output for _, output in body.items)
        return Query(f"{body.sql()} ORDER BY {order}", columns)

    # --- what goes around bodies ---

    def _set_operation(
        self, outer: Scope | None, depth: int, kinds: tuple[str, ...] | None
    ) -> Query:
        word = self.random.choices(
            ("UNION", "UNION ALL", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL"),
            (3, 3, 2, 2, 1, 1),
        )[0]
        self.reached[word] += 1
        if kinds is None:
            kinds = tuple(self.random.choices(COMPARABLE, k=self.random.randint(1, 3)))
        elif "json" in kinds:
            word = "UNION ALL"
        left, right = (self._plain(outer, depth - 1, kinds) for _ in range(2))
        if self.random.random() < 0.3:
            return self._mixed_set_operation(word, outer, depth)
        sql = f"({left.sql()}) {word} ({right.sql()})"
        if self.random.random() < 0.5:
            sql = f"{left.sql()} {word} {right.sql()}"
        columns = tuple(output for _, output in left.items)
        key = tuple(range(len(columns))) if word in ("UNION", "INTERSECT", "EXCEPT") else None
        return Query(sql, columns, key)

    def _mixed_set_operation(self, word: str, outer: Scope | None, depth: int) -> Query:
        """Three operands whose columns have types that must be brought together."""
        self.reached["set operation of several types"] += 1
        family = self.random.choice(FAMILIES)
        bodies = [
            self._plain(outer, depth - 1, (self.random.choice(family), self.random.choice(family)))
            for _ in range(3)
        ]
        second = self.random.choice(("UNION", "UNION ALL", "EXCEPT", "INTERSECT"))
        sql = f"{bodies[0].sql()} {word} {bodies[1].sql()} {second} {bodies[2].sql()}"
        kinds = [
            family[max(family.index(body.items[at][1].kind) for body in bodies)] for at in range(2)
        ]
        columns = (Output("v0", kinds[0]), Output("v1", kinds[1]))
        return Query(sql, columns)

    def _values(self, kinds: tuple[str, ...]) -> Query:
        self.reached["VALUES"] += 1
        rows = [
            f"({', '.join(self.expressions.of(kind, Scope(), 1) for kind in kinds)})"
            for _ in range(self.random.randint(1, 3))
        ]
        columns = tuple(Output(f"column{number}", kind) for number, kind in enumerate(kinds, 1))
        return Query(f"VALUES {', '.join(rows)}", columns)

    def _ordered(self, query: Query, top: bool) -> Query:
        """With ORDER BY over its columns, and LIMIT where that leaves no choice."""
        lot = self.random.random()
        usable = [at for at, column in enumerate(query.columns) if column.kind != "json"]
        if not usable or lot < 0.5:
            return query
        total = len(usable) == len(query.columns)
        order = self.random.sample(usable, len(usable))
        if not (total and lot > 0.75):
            order = order[: self.random.randint(1, len(order))]
        total = total and len(order) == len(query.columns)
        total = total or (query.key is not None and set(query.key) <= set(order))
        parts = [self._order_item(query, at) for at in order]
        sql = f"{query.sql} ORDER BY {', '.join(parts)}"
        self.reached["ORDER BY"] += 1
        if not total and self.random.random() < 0.15:
            self.reached["WITH TIES"] += 1
            count = self.random.randint(1, 4)
            sql += f" FETCH FIRST {count} ROWS WITH TIES"
            return replace(query, sql=sql, ordered_by=tuple(order))
        limited = total and self.random.random() < (0.5 if top else 0.8)
        if limited:
            self.reached["LIMIT"] += 1
            sql += self.random.choice(
                (
                    " LIMIT 3",
                    " LIMIT 5 OFFSET 1",
                    " OFFSET 2",
                    " LIMIT 20",
                    " LIMIT NULL",
                    " FETCH FIRST 2 ROWS ONLY",
                    " LIMIT 10",
                    " FETCH FIRST 3 ROWS WITH TIES",
                )
            )
        return replace(query, sql=sql, ordered_by=tuple(order), total=total, limited=limited)

    def _order_item(self, query: Query, at: int) -> str:
        name = str(at + 1) if self.random.random() < 0.4 else query.columns[at].name
        direction = self.random.choice(("", "", " ASC", " DESC"))
        return name + direction + self.random.choice(("", "", " NULLS FIRST", " NULLS LAST"))

    def _with(self, depth: int) -> Query:
        """Common tables in front of a query that may read them; their names end with it."""
        before = list(self.sources.names)
        parts: list[str] = []
        recursive = self.random.random() < 0.3
        for _ in range(self.random.choice((1, 1, 2))):
            name = self.sources.alias("w")
            if recursive and not parts:
                text, named = self._recursive(name)
            else:
                query = self.query(None, depth - 1)
                columns = tuple(
                    Output(f"c{number}", column.kind) for number, column in enumerate(query.columns)
                )
                key = None if query.key is None else tuple(f"c{at}" for at in query.key)
                names = ", ".join(column.name for column in columns)
                word = self.random.choice(("", "", "MATERIALIZED ", "NOT MATERIALIZED "))
                text, named = f"{name}({names}) AS {word}({query.sql})", Named(name, columns, key)
            parts.append(text)
            self.sources.names += [named] * 3
        self.reached["WITH RECURSIVE" if recursive else "WITH"] += 1
        query = self.query(None, depth, top=True)
        self.sources.names = before
        word = "WITH RECURSIVE" if recursive else "WITH"
        return replace(query, sql=f"{word} {', '.join(parts)} {query.sql}")

    def _recursive(self, name: str) -> tuple[str, Named]:
        """A recursion with an end: its first column counts."""
        anchor = self._plain(None, 1, ("int4", "int4"))
        scope = Scope((Visible("r.n", "int4"), Visible("r.v", "int4")))
        step = self.expressions.of("int4", scope, 1)
        word = self.random.choice(("UNION", "UNION ALL"))
        first = f"SELECT 0, v0 FROM ({anchor.sql()}) AS z(v0, v1)"
        again = f"SELECT r.n + 1, {step} FROM {name} AS r WHERE r.n < {self.random.randint(1, 4)}"
        columns: tuple[Output, ...] = (Output("n", "int4"), Output("v", "int4"))
        tail = ""
        lot = self.random.random()
        if lot < 0.15:
            self.reached["SEARCH"] += 1
            way = self.random.choice(("DEPTH", "BREADTH"))
            by = self.random.choice(("n", "v", "n, v"))
            tail = f" SEARCH {way} FIRST BY {by} SET seq"
        elif lot < 0.35:
            self.reached["CYCLE"] += 1
            again = f"SELECT (r.n + 1) % 3, {step} FROM {name} AS r WHERE r.n < 3"
            marks = self.random.choice(("", " TO 'y' DEFAULT 'n'", " TO 1 DEFAULT 0"))
            tail = f" CYCLE n SET looped{marks} USING path"
            if not marks:
                columns = (*columns, Output("looped", "bool"))
        return f"{name}(n, v) AS ({first} {word} {again}){tail}", Named(name, columns, None)

    # --- within others ---

    def _derive(self, outer: Scope | None, depth: int) -> Derived:
        query = self.query(outer, depth)
        return Derived(query.sql, query.columns, query.key)

    def _subquery(self, kind: str, scope: Scope, depth: int) -> str | None:
        """A query where a value stands: EXISTS and IN for booleans, one row for others."""
        if depth < 1 or scope.grouped is not None:
            return None
        if kind == "bool" and self.random.random() < 0.75:
            return self._predicate(scope, depth)
        self.reached["scalar subquery"] += 1
        lot = self.random.random()
        source, inner = self._source(scope, min(depth, 1))
        if lot < 0.5:
            made = self.expressions.aggregate(kind, Scope((), scope, grouped=inner), 1)
            if made is not None:
                return f"(SELECT {made} FROM {source.sql}{self._where(inner, 1)})"
        if kind.endswith("[]") and kind != "json[]" and lot < 0.9:
            element = kind.removesuffix("[]")
            made = self.expressions.of(element, inner, 1)
            return f"ARRAY(SELECT {made} FROM {source.sql}{self._where(inner, 1)} ORDER BY 1)"
        if kind == "json" or source.key is None:
            return None
        made = self.expressions.of(kind, inner, 1)
        order = ", ".join(source.key)
        where = self._where(inner, 1)
        return f"(SELECT {made} FROM {source.sql}{where} ORDER BY {order} LIMIT 1)"

    def _predicate(self, scope: Scope, depth: int) -> str:
        source, inner = self._source(scope, min(depth, 1))
        where = self._where(inner, 1)
        if self.random.random() < 0.4:
            self.reached["EXISTS"] += 1
            word = self.random.choice(("EXISTS", "NOT EXISTS"))
            return f"({word} (SELECT 1 FROM {source.sql}{where}))"
        if self.random.random() < 0.2:
            return self._row_predicate(scope, inner, source, where)
        self.reached["IN subquery"] += 1
        kind = self.random.choice(COMMON)
        value = self.expressions.of(kind, scope, 1)
        made = self.expressions.of(kind, inner, 1)
        word = self.random.choice(("IN", "NOT IN", "= ANY", "<> ALL", "< ANY", ">= ALL"))
        return f"({value} {word} (SELECT {made} FROM {source.sql}{where}))"

    def _row_predicate(self, scope: Scope, inner: Scope, source: Source, where: str) -> str:
        """A row among the rows of a query."""
        self.reached["row IN subquery"] += 1
        kinds = self.random.choices(COMMON, k=2)
        left = ", ".join(self.expressions.of(kind, scope, 1) for kind in kinds)
        right = ", ".join(self.expressions.of(kind, inner, 1) for kind in kinds)
        word = self.random.choice(("IN", "NOT IN", "= ANY", "<> ALL"))
        return f"(({left}) {word} (SELECT {right} FROM {source.sql}{where}))"
