"""Random queries answer as SQLite answers them, where the two dialects mean the same.

Columns are INTEGER or TEXT with NULLs. What differs is left out: division, mixed types, the order
of NULLs (always spelled), LIMIT without a total order.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from random import Random
from typing import Any

import pytest

from qserver.query.sql_database import SqlDatabase
from tests.sampling import sampled
from tests.sql.databases import opened_sql

SCHEMA = (
    "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, s TEXT)",
    "CREATE TABLE u (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, s TEXT)",
    "CREATE INDEX t_a ON t (a)",
    "CREATE INDEX u_s_b ON u (s, b)",
)
WORDS = ("a", "b", "bb", "c", "zz")
QUERIES_OF_A_SEED = 20


class QueryMaker:
    """Makes queries of which both sides must think alike."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance

    def number(self, names: list[str]) -> str:
        kind = self.chance.random()
        if kind < 0.6:
            return f"{self.chance.choice(names)}.{self.chance.choice(('id', 'a', 'b'))}"
        if kind < 0.85:
            return str(self.chance.randint(-2, 9))
        sign = self.chance.choice("+-*")
        return f"({self.number(names)} {sign} {self.number(names)})"

    def text(self, names: list[str]) -> str:
        if self.chance.random() < 0.6:
            return f"{self.chance.choice(names)}.s"
        return f"'{self.chance.choice(WORDS)}'"

    def condition(self, names: list[str], depth: int = 0) -> str:
        kind = self.chance.randrange(12 if depth < 2 else 8)
        number, negated = self.number(names), self.chance.choice(("", "NOT "))
        compare = self.chance.choice(("=", "<>", "<", "<=", ">", ">="))
        if kind < 3:
            return f"{number} {compare} {self.number(names)}"
        if kind == 3:
            return f"{self.text(names)} {compare} {self.text(names)}"
        if kind == 4:
            items = [self.chance.choice((str(n), str(n), "NULL")) for n in range(3)]
            return f"{number} {negated}IN ({', '.join(items)})"
        if kind == 5:
            return f"{number} {negated}BETWEEN {self.number(names)} AND {self.number(names)}"
        if kind == 6:
            return f"{self.text(names)} IS {negated}NULL"
        if kind == 7:
            return f"{self.chance.choice(names)}.id = {self.chance.randint(0, 12)}"
        if kind == 8:
            return self.subquery_condition(names, negated)
        joined = self.chance.choice((" AND ", " OR ")).join(
            self.condition(names, depth + 1) for _ in range(2)
        )
        return f"{negated}({joined})"

    def subquery_condition(self, names: list[str], negated: str) -> str:
        table, name = self.chance.choice("tu"), f"x{len(names)}"
        tie = f"{name}.{self.chance.choice('ab')} = {names[0]}.{self.chance.choice('ab')}"
        inner = self.condition([name, names[0]], 2)
        where = self.chance.choice((tie, f"{tie} AND {inner}", inner))
        kind = self.chance.randrange(3)
        if kind == 0:
            return f"{negated}EXISTS (SELECT 1 FROM {table} AS {name} WHERE {where})"
        if kind == 1:
            return (
                f"{names[0]}.a {negated}IN (SELECT {name}.b FROM {table} AS {name} WHERE {where})"
            )
        compare = self.chance.choice(("=", "<", ">="))
        maximum = f"SELECT max({name}.b) FROM {table} AS {name} WHERE {where}"
        return f"{names[0]}.b {compare} ({maximum})"

    def source(self) -> tuple[str, list[str]]:
        first = self.chance.choice("tu")
        text, names = f"{first} AS p", ["p"]
        for name in ("q", "r")[: self.chance.choice((0, 0, 1, 1, 2))]:
            kind = self.chance.choice(("JOIN", "LEFT JOIN"))
            left, one, other = (
                self.chance.choice(names),
                *self.chance.choices(("id", "a", "b"), k=2),
            )
            tie = f"{name}.{one} = {left}.{other}"
            if self.chance.random() < 0.3:
                tie += f" AND {self.condition([*names, name], 2)}"
            text += f" {kind} {self.chance.choice('tu')} AS {name} ON {tie}"
            names.append(name)
        return text, names

    def select(self, columns: int = 3) -> str:
        text, names = self.source()
        where = f" WHERE {self.condition(names)}" if self.chance.random() < 0.7 else ""
        if self.chance.random() < 0.3:
            return self.grouped(text, names, where)
        items = [self.number(names) for _ in range(columns - 1)] + [self.text(names)]
        distinct = self.chance.choice(("", "", "DISTINCT "))
        return f"SELECT {distinct}{', '.join(items)} FROM {text}{where}"

    def grouped(self, text: str, names: list[str], where: str) -> str:
        key = f"{names[0]}.{self.chance.choice('ab')}"
        number = self.number(names)
        aggregate = self.chance.choice(
            ("count(*)", f"count({number})", f"sum({names[-1]}.b)", f"min({number})")
        )
        having = self.chance.choice(("", "", " HAVING count(*) > 1", f" HAVING {key} > 2"))
        items = f"{key}, {aggregate}, max({names[-1]}.s)"
        return f"SELECT {items} FROM {text}{where} GROUP BY {key}{having}"

    def query(self) -> tuple[str, bool]:
        """A query, and whether the order of its rows counts."""
        text = self.select()
        if self.chance.random() < 0.25:
            operation = self.chance.choice(("UNION", "UNION ALL", "EXCEPT", "INTERSECT"))
            text = f"SELECT * FROM ({text} {operation} {self.select()}) AS d"
        if self.chance.random() < 0.5:
            return text, False
        keys = []
        for position in (1, 2, 3):
            down, nulls = self.chance.choice(("", " DESC")), self.chance.choice(("FIRST", "LAST"))
            keys.append(f"{position}{down} NULLS {nulls}")
        text += f" ORDER BY {', '.join(keys)}"
        if self.chance.random() < 0.6:
            text += f" LIMIT {self.chance.randint(0, 8)} OFFSET {self.chance.randint(0, 3)}"
        return text, True


def random_row(chance: Random, number: int) -> tuple[Any, ...]:
    return (
        number,
        chance.choice((None, *range(6))),
        chance.choice((None, *range(4))),
        chance.choice((None, *WORDS)),
    )


async def filled(database: SqlDatabase, chance: Random) -> sqlite3.Connection:
    """Both databases with the same rows; SQLite's is given back."""
    other = sqlite3.connect(":memory:")
    for statement in SCHEMA:
        await database.execute(statement)
        other.execute(statement)
    for table, most in (("t", 40), ("u", 15)):
        for number in range(chance.randint(0, most)):
            row = random_row(chance, number)
            values = ", ".join("NULL" if v is None else repr(v) for v in row)
            await database.execute(f"INSERT INTO {table} VALUES ({values})")
            other.execute(f"INSERT INTO {table} VALUES ({values})")
    return other


@pytest.mark.parametrize("seed", sampled(range(8), 2))
async def test_random_queries_answer_as_in_sqlite(seed: int) -> None:
    chance = Random(seed)
    maker = QueryMaker(chance)
    async with opened_sql() as database:
        other = await filled(database, chance)
        for _ in range(QUERIES_OF_A_SEED):
            sql, ordered = maker.query()
            expected = other.execute(sql).fetchall()
            found = (await database.execute(sql)).rows
            if ordered:
                assert list(found) == expected, sql
            else:
                assert Counter(found) == Counter(expected), sql
        other.close()
