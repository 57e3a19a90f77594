"""Tables of thousands of rows, made by one INSERT … SELECT from generate_series.

A column has a *way* that its values lie over the rows: few values in turn, runs of one value, a
number that grows, one value throughout. Each has NULLs in it or none, and some have what is at the
ends of a type: NaN, infinities, the least and the greatest. Sums of doubles are exact in any order:
they are quarters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random
from typing import Final

from tests.differential.kinds import SPELLINGS, cast_name
from tests.differential.literals import literal
from tests.differential.schema import Column

KINDS: Final = (
    "int4",
    "int8",
    "int2",
    "numeric",
    "float8",
    "float4",
    "text",
    "varchar",
    "bpchar",
    "bool",
    "date",
    "timestamp",
    "timestamptz",
    "time",
    "interval",
    "uuid",
    "mood",
    "jsonb",
)
WEIGHTS: Final = (8, 6, 3, 6, 6, 2, 7, 2, 2, 3, 4, 3, 2, 1, 1, 1, 2, 1)
WILD_FLOATS: Final = ("NaN", "Infinity", "-Infinity", "-0", "0.1", "1e-30")
"""Those whose sums with quarters do not depend on the order, but for the last digits."""

WILD_NUMERICS: Final = ("NaN", "Infinity", "-Infinity", "1e30", "0.0000001", "-1e-20", "3.10")

GROWING: Final = {
    "int2": "(i % 30000)::int2",
    "int4": "i * {k} - {c}",
    "int8": "i::int8 * {k}00000 - {c}",
    "numeric": "(i * {k} - {c}) / 8.0",
    "float8": "(i * {k} - {c}) / 4.0::float8",
    "float4": "((i % 4000) / 4.0)::float4",
    "text": "'w' || i % {c}",
    "date": "DATE '1999-12-01' + i % {c}",
    "timestamp": "TIMESTAMP '2024-02-27' + i * INTERVAL '{k} minutes'",
    "timestamptz": "TIMESTAMPTZ '2024-02-27 00:00+00' + i * INTERVAL '{k} minutes'",
    "interval": "i * INTERVAL '{k} minutes'",
}
"""Values that grow with the row's number, or nearly."""


@dataclass(frozen=True, slots=True)
class LargeColumn:
    """A column; `made` is its value for row i, `pool` are literals that occur in it, or nearly."""

    name: str
    kind: str
    declared: str
    made: str
    pool: tuple[str, ...]
    few: bool
    """It has few values: something to group by."""
    clause: str = ""


@dataclass(frozen=True, slots=True)
class LargeTable:
    name: str
    columns: tuple[LargeColumn, ...]
    rows: int
    keyed: bool
    shuffled: bool
    indexes: tuple[str, ...]

    def column(self, name: str) -> LargeColumn:
        return next(column for column in self.columns if column.name == name)

    def statements(self) -> list[str]:
        parts = [f"{each.name} {each.declared} {each.clause}".rstrip() for each in self.columns]
        if self.keyed:
            parts.append("PRIMARY KEY (id)")
        return [
            f"CREATE TABLE {self.name} ({', '.join(parts)})",
            self.insert(1, self.rows),
            *self.indexes,
        ]

    def insert(self, first: int, last: int) -> str:
        """The rows of these numbers, in their order or not."""
        made = ", ".join(each.made for each in self.columns)
        order = " ORDER BY i * 7919 % 10007, i" if self.shuffled else ""
        return (
            f"INSERT INTO {self.name} SELECT {made} FROM generate_series({first}, {last}) AS s(i)"
            f"{order}"
        )

    def schema_columns(self) -> tuple[Column, ...]:
        return tuple(
            Column(each.name, each.kind, each.declared, each.clause) for each in self.columns
        )


def random_table(random: Random, name: str, rows: int, partner: str | None) -> LargeTable:
    """A table; `partner` is the kind of another table's key, which the column `r` refers to."""
    kind = random.choice(("int4", "int4", "int8"))
    columns = [LargeColumn("id", kind, SPELLINGS[kind][0], "i", ("1", "7", str(rows // 2)), False)]
    if partner is not None:
        columns.append(_reference(random, partner))
    names = random.sample("abcdefgh", random.randint(3, 6))
    for letter in names:
        kind = random.choices(KINDS, WEIGHTS)[0]
        columns.append(_random_column(random, letter, kind))
    if random.random() < 0.5:
        columns += _touching(random)
    indexes = []
    for number in range(random.choice((0, 0, 1, 2))):
        chosen = random.choice(columns[1:])
        indexes.append(f"CREATE INDEX {name}_i{number} ON {name} ({chosen.name})")
    keyed = random.random() < 0.8
    return LargeTable(name, tuple(columns), rows, keyed, random.random() < 0.3, tuple(indexes))


def _reference(random: Random, kind: str) -> LargeColumn:
    made = random.choice(("1 + i % 40", "CASE WHEN i % 9 > 0 THEN i * 31 % 90 END", "i"))
    return LargeColumn("r", kind, SPELLINGS[kind][0], made, ("1", "5", "39"), True)


def _touching(random: Random) -> list[LargeColumn]:
    """Two columns, of which the greatest value of one is the least of the other."""
    kind = random.choice(("int4", "int8", "numeric", "float8", "date"))
    declared = "numeric(9,2)" if kind == "numeric" else SPELLINGS[kind][0]
    start = "DATE '2020-02-29' " if kind == "date" else "0 "
    nulls = random.choice(("", "CASE WHEN i % 11 > 0 THEN "))
    found = []
    for name, sign in (("p", "-"), ("q", "+")):
        made = f"{nulls}{start}{sign} i % {random.choice((2, 40))}{' END' * bool(nulls)}"
        pool = tuple(f"({start}{sign} {number})" for number in (0, 1, 39))
        found.append(LargeColumn(name, kind, declared, made, pool, True))
    return found


def _random_column(random: Random, name: str, kind: str) -> LargeColumn:
    declared = random.choice(SPELLINGS[kind])
    wild = random.random() < 0.3 and "(" not in declared
    pool = tuple(_value(random, kind, wild) for _ in range(random.choice((1, 3, 8, 20))))
    few = kind != "jsonb"
    lot = random.random()
    step = random.choice((1, 1, 3, 7, 101))
    growing = GROWING.get(kind)
    if growing is not None and lot < 0.35:
        made = growing.format(k=random.choice((1, 3, 11)), c=random.choice((7, 50, 3000)))
        few = kind in ("text", "date")
        pool = (*pool[:3], *(_of_row(random, made) for _ in range(3)))
    elif lot < 0.5:
        made = f"({_array(pool, kind)})[1 + i / {random.choice((50, 700))} % {len(pool)}]"
    else:
        made = f"({_array(pool, kind)})[1 + i * {step} % {len(pool)}]"
    clause = ""
    lot = random.random()
    if lot < 0.25:
        clause = "NOT NULL"
    elif lot < 0.75:
        made = f"CASE WHEN i % {random.choice((2, 5, 97))} > 0 THEN {made} END"
    elif lot < 0.8:
        made = f"CASE WHEN i > {random.choice((100, 1500))} THEN {made} END"
    elif lot < 0.83:
        made = f"NULL::{cast_name(kind)}"
    return LargeColumn(name, kind, declared, made, pool, few, clause)


def _of_row(random: Random, made: str) -> str:
    """The value of some row as an expression of no column."""
    number = random.choice((1, 17, 250, 1999, 4000))
    return "(" + re.sub(r"\bi\b", str(number), made) + ")"


def _value(random: Random, kind: str, wild: bool) -> str:
    if kind in ("float4", "float8"):
        tame = not wild or random.random() < 0.7
        return literal(random, kind) if tame else f"'{random.choice(WILD_FLOATS)}'::{kind}"
    if kind == "numeric":
        tame = not wild or random.random() < 0.7
        return literal(random, kind) if tame else f"'{random.choice(WILD_NUMERICS)}'::numeric"
    return literal(random, kind, wild=wild)


def _array(pool: tuple[str, ...], kind: str) -> str:
    return f"ARRAY[{', '.join(pool)}]::{cast_name(kind)}[]"
