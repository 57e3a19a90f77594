"""Random queries over large tables: what reads many rows and answers with few.

Filters, aggregates, GROUP BY, DISTINCT, the first rows of an order, joins that are grouped, and
changes of many rows in between. Conditions and arguments are mostly plain (a column beside a
value), since those have ways of their own to run; the rest comes from the templates.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import Final

from tests.differential.comparison import Step
from tests.differential.expressions import Expressions, Scope, Visible
from tests.differential.kinds import INTEGERS, MOMENTS, NUMBERS, TEXTS
from tests.differential.large.tables import LargeColumn, LargeTable

COMPARISONS: Final = ("=", "<>", "<", "<=", ">", ">=")
DIRECTIONS: Final = ("", " DESC", " NULLS FIRST", " DESC NULLS LAST")
PATTERNS: Final = ("a%", "%b", "%a%", "_b%", "w1%", "", "%", "foo")
TOUCHING: Final = ("p", "q")
"""Columns whose bounds touch: see `tables`."""
PLAIN: Final = re.compile(r"'?([^'\"\\{},()]*)'?(?:::\w+)?")
"""A literal that can be an element of an array as it stands."""
TYPED: Final = {
    "int2": ("0", "7", "-32768"),
    "int4": ("0", "7", "2147483647"),
    "int8": ("0", "7", "-9223372036854775808"),
    "numeric": ("0", "1.00", "0.125", "-3"),
    "float8": ("0", "0.25", "-0", "1e10"),
    "text": ("a", "w1", ""),
    "bool": ("true", "false"),
    "date": ("2020-02-29", "1999-12-31"),
    "timestamp": ("2024-02-27 00:00:00", "2024-02-29 12:00:00"),
    "timestamptz": ("2024-02-27 00:00:00+00", "2024-02-29 12:00:00+01"),
}
"""Kinds whose literals are bound, with some that may be in no pool."""
STATISTICS: Final = ("stddev", "variance", "var_pop", "stddev_pop")


class LargeQueries:
    """Draws statements over tables; the first is the largest, the last one small."""

    def __init__(
        self, random: Random, tables: tuple[LargeTable, ...], expressions: Expressions
    ) -> None:
        self.random = random
        self.tables = tables
        self.expressions = expressions
        self.reached = expressions.reached

    def query(self) -> Step:
        make: Callable[[], Step] = self.random.choices(
            (self.aggregated, self.grouped, self.first_rows, self.joined, self.distinct, self.rows),
            (6, 7, 4, 5, 2, 3),
        )[0]
        self.reached[f"large: {make.__name__}"] += 1
        return make()

    # --- queries ---

    def aggregated(self) -> Step:
        table = self.random.choice(self.tables)
        items = self._items(table, "x", self.random.randint(1, 4))
        return Step(f"SELECT {items} FROM {table.name} AS x{self.where(table, 'x')}")

    def grouped(self) -> Step:
        table = self.random.choice(self.tables)
        keys = self._keys(table, "x")
        items = self._items(table, "x", self.random.randint(1, 3))
        sql = f"SELECT {', '.join(keys)}, {items} FROM {table.name} AS x{self.where(table, 'x')}"
        return self._finished(sql, keys, self._having("x"))

    def first_rows(self) -> Step:
        """The order ends with what tells rows apart, or shows nothing else."""
        table = self.random.choice(self.tables)
        chosen = self.random.sample(table.columns, self.random.randint(1, 3))
        order = [f"x.{each.name}{self.random.choice(DIRECTIONS)}" for each in chosen]
        shown = [f"x.{each.name}" for each in chosen]
        if table.keyed:
            order.append("x.id" + self.random.choice(DIRECTIONS))
            shown += ["x.id", f"x.{self.random.choice(table.columns).name} AS v"]
        limit = self.random.choice((" LIMIT 5", " LIMIT 20 OFFSET 3", " FETCH FIRST 7 ROWS ONLY"))
        sql = f"SELECT {', '.join(shown)} FROM {table.name} AS x{self.where(table, 'x')}"
        return Step(f"{sql} ORDER BY {', '.join(order)}{limit}", tuple(range(len(chosen))))

    def joined(self) -> Step:
        """Rows of one table with those of another, counted and added up."""
        one, other = self.random.sample(self.tables, 2) if len(self.tables) > 1 else (None, None)
        if one is None or other is None or "r" not in [each.name for each in one.columns]:
            one, other = self.tables[0], self.tables[-1]
        word = self.random.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
        if self.random.random() < 0.25:
            test = self.random.choice(("EXISTS", "NOT EXISTS"))
            inner = self.condition(other, "y", 1)
            condition = f"{test} (SELECT 1 FROM {other.name} AS y WHERE y.id = x.r AND {inner})"
            items = self._items(one, "x", 2)
            return Step(f"SELECT {items} FROM {one.name} AS x WHERE {condition}")
        source = f"{one.name} AS x {word} {other.name} AS y ON x.r = y.id"
        where = self.where(one, "x") if self.random.random() < 0.6 else self.where(other, "y")
        items = f"{self._items(one, 'x', 2)}, {self._items(other, 'y', 1, first=2)}"
        if self.random.random() < 0.3:
            return Step(f"SELECT {items} FROM {source}{where}")
        keys = self._keys(other, "y") if self.random.random() < 0.7 else self._keys(one, "x")
        return self._finished(f"SELECT {', '.join(keys)}, {items} FROM {source}{where}", keys, "")

    def distinct(self) -> Step:
        table = self.random.choice(self.tables)
        keys = self._keys(table, "x")
        sql = f"SELECT DISTINCT {', '.join(keys)} FROM {table.name} AS x{self.where(table, 'x')}"
        if self.random.random() < 0.5:
            return Step(f"SELECT count(*) FROM ({sql}) AS z")
        return Step(sql)

    def rows(self) -> Step:
        """Rows themselves, as far as a condition leaves few of them."""
        table = self.random.choice(self.tables)
        shown = [f"x.{each.name}" for each in self.random.sample(table.columns, 2)]
        if self.random.random() < 0.4:
            shown.append(f"{self._made(table, 'x')} AS v")
        bound = self.random.choice(("x.id < 40", f"x.id > {table.rows - 30}", "x.id % 97 = 3"))
        condition = f"{bound} AND ({self.condition(table, 'x', 2)})"
        return Step(f"SELECT {', '.join(shown)} FROM {table.name} AS x WHERE {condition}")

    # --- changes ---

    def change(self) -> Step:
        table = self.random.choice(self.tables)
        lot = self.random.random()
        self.reached["large: change"] += 1
        if lot < 0.3:
            first = table.rows + self.random.randint(1, 100_000)
            return Step(table.insert(first, first + self.random.choice((0, 3, 300))))
        where = f" WHERE {self.condition(table, table.name, 2)}"
        if self.random.random() < 0.5:
            low = self.random.randint(1, table.rows)
            where += f" AND id BETWEEN {low} AND {low + self.random.choice((0, 10, 900))}"
        if lot < 0.45:
            return Step(f"DELETE FROM {table.name}{where} AND id % 5 = 0")
        column = self.random.choice(table.columns[1:])
        value = self._literal(column) if self.random.random() < 0.7 else "NULL"
        if self.random.random() < 0.3:
            other = self.random.choice([e for e in table.columns if e.kind == column.kind])
            value = other.name
        return Step(f"UPDATE {table.name} SET {column.name} = {value}{where}")

    # --- parts ---

    def where(self, table: LargeTable, alias: str) -> str:
        if self.random.random() < 0.25:
            return ""
        return f" WHERE {self.condition(table, alias, self.random.choice((1, 1, 2)))}"

    def condition(self, table: LargeTable, alias: str, depth: int) -> str:
        lot = self.random.random()
        if depth > 1:
            parts = [self.condition(table, alias, depth - 1) for _ in range(2)]
            if lot < 0.45:
                return " AND ".join(f"({part})" for part in parts)
            if lot < 0.8:
                return "(" + " OR ".join(f"({part})" for part in parts) + ")"
            return f"NOT ({parts[0]})"
        if lot < 0.12:
            return self.expressions.condition(self._scope(table, alias), 1)
        column = self.random.choice(table.columns)
        return self._plain(table, alias, column)

    def _plain(self, table: LargeTable, alias: str, column: LargeColumn) -> str:
        name = f"{alias}.{column.name}"
        if column.kind in TYPED and self.random.random() < 0.15:
            return self._typed(name, column)
        if column.name in TOUCHING and self.random.random() < 0.5:
            p, q = (f"{alias}.{each}" for each in TOUCHING)
            word = self.random.choice((*COMPARISONS, "IS NOT DISTINCT FROM"))
            return self.random.choice((f"{p} {word} {q}", f"{q} {word} {p}"))
        lot = self.random.random()
        if column.kind == "bool" and lot < 0.4:
            return self.random.choice((name, f"NOT {name}", f"{name} IS NOT TRUE"))
        if lot < 0.1:
            return f"{name} IS {self.random.choice(('', 'NOT '))}NULL"
        if lot < 0.2:
            values = ", ".join(self._literal(column) for _ in range(self.random.choice((1, 3, 9))))
            null = ", NULL" if self.random.random() < 0.1 else ""
            return f"{name} {self.random.choice(('IN', 'IN', 'NOT IN'))} ({values}{null})"
        if lot < 0.3:
            word = self.random.choice(("BETWEEN", "NOT BETWEEN"))
            return f"{name} {word} {self._literal(column)} AND {self._literal(column)}"
        if lot < 0.38 and column.kind in TEXTS:
            word = self.random.choice(("LIKE", "NOT LIKE", "ILIKE"))
            return f"{name} {word} '{self.random.choice(PATTERNS)}'"
        if lot < 0.5:
            made = self._computed(table, alias, column)
            if made is not None:
                return f"{made} {self.random.choice(COMPARISONS)} {self._literal(column)}"
        if lot < 0.6:
            alike = [each for each in table.columns if each.kind == column.kind]
            other = f"{alias}.{self.random.choice(alike).name}"
            word = self.random.choice((*COMPARISONS, "IS DISTINCT FROM"))
            return f"{name} {word} {other}"
        return f"{name} {self.random.choice(COMPARISONS)} {self._literal(column)}"

    def _typed(self, name: str, column: LargeColumn) -> str:
        """A comparison with literals that have a type, so that they can be bound as well."""
        kind, choice = column.kind, self.random.choice
        texts = [found[1] for each in column.pool if (found := PLAIN.fullmatch(each))]
        if not texts or self.random.random() < 0.2:
            texts += TYPED[kind]
        if self.random.random() < 0.3:
            return f"{name} {choice(COMPARISONS)} '{choice(texts)}'::{kind}"
        items = [f'"{choice(texts)}"' for _ in range(choice((0, 1, 3, 3, 70)))]
        items += ["NULL"] * (self.random.random() < 0.15)
        self.random.shuffle(items)
        word = choice(("= ANY", "= ANY", "= ANY", "<> ALL", "<> ALL", "< ANY", ">= ALL"))
        return f"{name} {word} ('{{{','.join(items)}}}'::{kind}[])"

    def _computed(self, table: LargeTable, alias: str, column: LargeColumn) -> str | None:
        """Arithmetic of one or two columns of the kind; may overflow, or divide by zero."""
        name = f"{alias}.{column.name}"
        alike = [each for each in table.columns if each.kind == column.kind]
        other = f"{alias}.{self.random.choice(alike).name}"
        if column.kind in NUMBERS:
            templates = ["({a} + {b})", "({a} - {b})", "({a} * 2)", "(- {a})", "abs({a})"]
            templates += ["({a} * {b})", "({a} / nullif({b}, 0))", "coalesce({a}, {b}, 1)"]
            if column.kind in INTEGERS:
                templates += ["({a} % 7)", "({a} / 3)", "({a} & 6)"]
            if self.random.random() < 0.03:
                templates = ["({a} / {b})"]
        elif column.kind in TEXTS:
            templates = ["upper({a})", "({a} || {b})", "left({a}, 2)", "coalesce({a}, {b})"]
        elif column.kind in MOMENTS:
            templates = ["greatest({a}, {b})", "coalesce({a}, {b})"]
        else:
            return None
        return self.random.choice(templates).format(a=name, b=other)

    def _items(self, table: LargeTable, alias: str, count: int, first: int = 0) -> str:
        return ", ".join(
            f"{self._aggregate(table, alias)} AS v{first + number}" for number in range(count)
        )

    def _aggregate(self, table: LargeTable, alias: str) -> str:
        column = self.random.choice(table.columns)
        argument = f"{alias}.{column.name}"
        if self.random.random() < 0.25:
            argument = self._computed(table, alias, column) or argument
        call = self._call(column, argument)
        if self.random.random() < 0.12:
            call += f" FILTER (WHERE {self.condition(table, alias, 1)})"
        return call

    def _call(self, column: LargeColumn, argument: str) -> str:
        lot = self.random.random()
        if lot < 0.15:
            return "count(*)"
        if lot < 0.28:
            return f"count({argument})"
        if lot < 0.36 and column.kind != "jsonb":
            return f"count(DISTINCT {argument})"
        if column.kind == "bool":
            return f"{self.random.choice(('bool_and', 'bool_or', 'every'))}({argument})"
        if column.kind in NUMBERS or column.kind == "interval":
            if lot < 0.6:
                return f"{self.random.choice(('sum', 'sum', 'avg'))}({argument})"
            if lot < 0.66 and column.kind in (*INTEGERS, "numeric"):
                return f"{self.random.choice(STATISTICS)}({argument})"
            if lot < 0.7 and column.kind in INTEGERS:
                return f"{self.random.choice(('bit_and', 'bit_or', 'bit_xor'))}({argument})"
            if lot < 0.73 and column.kind in INTEGERS:
                return f"sum(DISTINCT {argument})"
        if column.kind in ("uuid", "jsonb"):
            return f"count({argument})"
        return f"{self.random.choice(('min', 'max'))}({argument})"

    def _keys(self, table: LargeTable, alias: str) -> list[str]:
        few = [each for each in table.columns if each.few] or list(table.columns[:1])
        chosen = self.random.sample(few, min(len(few), self.random.choice((1, 1, 2))))
        keys = [f"{alias}.{each.name}" for each in chosen]
        if self.random.random() < 0.25:
            column = chosen[0]
            made = {"text": f"left({keys[0]}, 2)", "date": f"extract(year FROM {keys[0]})"}
            if column.kind in INTEGERS:
                keys[0] = f"({keys[0]} % 10)"
            elif column.kind in made:
                keys[0] = made[column.kind]
            else:
                keys[0] = f"({keys[0]} IS NULL)"
        return keys

    def _having(self, alias: str) -> str:
        if self.random.random() < 0.75:
            return ""
        return (
            f" HAVING {self.random.choice(('count(*) > 50', 'count(*) < 200', 'min(x.id) < 99'))}"
        )

    def _finished(self, sql: str, keys: list[str], having: str) -> Step:
        """With GROUP BY, and perhaps an order by the groups, which are all different."""
        sql += f" GROUP BY {', '.join(keys)}{having}"
        if self.random.random() < 0.5:
            return Step(sql)
        places = range(len(keys))
        order = ", ".join(f"{at + 1}{self.random.choice(DIRECTIONS)}" for at in places)
        limit = self.random.choice(("", " LIMIT 4", " LIMIT 10 OFFSET 2"))
        return Step(f"{sql} ORDER BY {order}{limit}", tuple(places))

    def _made(self, table: LargeTable, alias: str) -> str:
        column = self.random.choice(table.columns)
        if self.random.random() < 0.4:
            return self.expressions.of(column.kind, self._scope(table, alias), 1)
        return self._computed(table, alias, column) or f"{alias}.{column.name}"

    def _literal(self, column: LargeColumn) -> str:
        return self.random.choice(column.pool)

    def _scope(self, table: LargeTable, alias: str) -> Scope:
        return Scope(tuple(Visible(f"{alias}.{each.name}", each.kind) for each in table.columns))
