"""A random schema with its rows: what it is, and the statements that make it.

Tables share the names of their columns, so that joins find partners, names are ambiguous and
USING has something to use. A table has a key, or it has none and holds rows that are equal.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Final

from tests.differential.kinds import ALL, COMMON, ENUM_LABELS, INTEGERS, SPELLINGS
from tests.differential.literals import literal

MAKE_ENUM: Final = "CREATE TYPE mood AS ENUM ('" + "', '".join(ENUM_LABELS) + "')"


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    kind: str
    declared: str
    clause: str = ""
    """NOT NULL, DEFAULT …, GENERATED …"""

    @property
    def generated(self) -> bool:
        return "GENERATED ALWAYS" in self.clause

    @property
    def nullable(self) -> bool:
        return "NOT NULL" not in self.clause

    @property
    def definition(self) -> str:
        return f"{self.name} {self.declared} {self.clause}".rstrip()


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    """Columns that no two rows agree in; empty if there are none for sure."""
    constraints: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    @property
    def writable(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if not column.generated)

    def create(self) -> str:
        parts = [column.definition for column in self.columns] + list(self.constraints)
        return f"CREATE TABLE {self.name} ({', '.join(parts)})"

    def insert(self) -> str | None:
        if not self.rows:
            return None
        names = ", ".join(column.name for column in self.writable)
        rows = ", ".join(f"({', '.join(row)})" for row in self.rows)
        return f"INSERT INTO {self.name} ({names}) VALUES {rows}"


@dataclass(frozen=True, slots=True)
class Schema:
    tables: tuple[Table, ...]
    views: tuple[str, ...] = field(default=())

    def statements(self) -> list[str]:
        """Everything that makes the schema and its rows, in an order in which it can be run."""
        made = [MAKE_ENUM, *(table.create() for table in self.tables)]
        made += [insert for table in self.tables if (insert := table.insert()) is not None]
        return made + [index for table in self.tables for index in table.indexes]


def random_schema(random: Random, *, tables: int | None = None, rows_max: int = 14) -> Schema:
    count = random.randint(2, 4) if tables is None else tables
    made: list[Table] = []
    for number in range(count):
        made.append(_random_table(random, f"t{number}", tuple(made), rows_max))
    return Schema(tuple(made))


def random_column(random: Random, name: str, kind: str) -> Column:
    clause = ""
    if random.random() < 0.12:
        clause = "NOT NULL"
    if random.random() < 0.15:
        clause = f"{clause} DEFAULT {literal(random, kind)}".strip()
    return Column(name, kind, random.choice(SPELLINGS[kind]), clause)


def random_kind(random: Random) -> str:
    return random.choice(COMMON) if random.random() < 0.5 else random.choice(ALL)


def random_value(random: Random, column: Column, *, wild: bool = False) -> str:
    """A value that the column takes, NULL now and then where it is allowed."""
    if column.nullable and random.random() < 0.18:
        return "NULL"
    if column.declared.startswith("numeric("):
        wild = False
    return literal(random, column.kind, wild=wild)


def _random_table(random: Random, name: str, earlier: tuple[Table, ...], rows_max: int) -> Table:
    keyed = random.random() < 0.75
    columns = _random_columns(random, keyed)
    key: tuple[str, ...] = ("id",) if keyed else ()
    constraints: list[str] = []
    if keyed and random.random() < 0.15 and columns[1].kind in INTEGERS:
        columns[1] = Column("a", columns[1].kind, columns[1].declared, "NOT NULL")
        key = ("id", "a")
        constraints.append("PRIMARY KEY (id, a)")
    elif keyed:
        constraints.append(random.choice(("PRIMARY KEY (id)", "PRIMARY KEY (id)", "UNIQUE (id)")))
    if random.random() < 0.15:
        constraints.append("CHECK (id > -1000)")
    rows = _random_rows(random, columns, keyed, rows_max)
    table = Table(name, tuple(columns), key, tuple(constraints), (), rows)
    return Table(name, table.columns, key, table.constraints, _indexes(random, table), rows)


def _random_columns(random: Random, keyed: bool) -> list[Column]:
    kind = random.choice(("int4", "int4", "int4", "int8", "int2"))
    columns = [Column("id", kind, SPELLINGS[kind][0], "NOT NULL" if keyed else "")]
    columns.append(Column("a", "int4", "integer"))
    for name in random.sample("bcdefgh", random.randint(2, 6)):
        columns.append(random_column(random, name, random_kind(random)))
    if random.random() < 0.15:
        clause = "GENERATED ALWAYS AS (id + coalesce(a, 0)) STORED"
        columns.append(Column("total", "int8", "bigint", clause))
    return columns


def _random_rows(
    random: Random, columns: list[Column], keyed: bool, rows_max: int
) -> tuple[tuple[str, ...], ...]:
    count = 0 if random.random() < 0.06 else random.randint(1, rows_max)
    wild = {column.name for column in columns if random.random() < 0.15} - {"id", "a"}
    numbers = random.sample(range(-2, 2 * count + 2), count)
    rows: list[tuple[str, ...]] = []
    for number in numbers:
        if not keyed and rows and random.random() < 0.2:
            rows.append(random.choice(rows))
            continue
        values = [str(number)]
        for column in columns[1:]:
            if not column.generated:
                values.append(random_value(random, column, wild=column.name in wild))
        rows.append(tuple(values))
    return tuple(rows)


def _indexes(random: Random, table: Table) -> tuple[str, ...]:
    made: list[str] = []
    for number in range(random.choice((0, 0, 1, 1, 2))):
        usable = [column for column in table.columns if column.kind != "json"]
        chosen = random.sample(usable, random.randint(1, min(2, len(usable))))
        parts = ", ".join(
            column.name + random.choice(("", "", " DESC", " NULLS FIRST")) for column in chosen
        )
        if random.random() < 0.2:
            parts = "(coalesce(a, 0) + 1)"
        where = random.choice(("", "", "", " WHERE a > 2", " WHERE a IS NOT NULL"))
        made.append(f"CREATE INDEX {table.name}_i{number} ON {table.name} ({parts}){where}")
    return tuple(made)
