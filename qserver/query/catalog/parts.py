"""Parts of tables as PostgreSQL counts them: columns, indexes with that of the key, constraints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from qserver.storage.catalog import Catalog
from qserver.values.constraints import ForeignKey
from qserver.values.relations import View
from qserver.values.schema import Column, Index, Table, is_predicate, predicate_text
from qserver.values.types import SqlType


@dataclass(frozen=True, slots=True)
class Part:
    """A column of an index, or an expression, whose `number` is 0."""

    number: int
    name: str
    type: SqlType
    text: str
    descending: bool = False
    nulls_first: bool = False
    collation: str | None = None


@dataclass(frozen=True, slots=True)
class AnyIndex:
    """An index, or the primary key of a table, which has no index of its own here."""

    oid: int
    name: str
    parts: tuple[Part, ...]
    unique: bool
    primary: bool = False
    constraint: bool = False
    nulls_distinct: bool = True
    condition: str = ""
    deferral: str = ""


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint: p, u, f or c; `index` is the oid of the one that enforces it."""

    oid: int
    name: str
    kind: str
    columns: tuple[int, ...]
    text: str = ""
    index: int = 0
    valid: bool = True
    deferral: str = ""


def columns_of(relation: Table | View) -> Iterator[tuple[int, Column]]:
    """Yield the visible columns, counted from 1."""
    if isinstance(relation, View):
        for number, (name, sql_type) in enumerate(relation.columns, 1):
            yield number, Column(name, sql_type)
        return
    yield from enumerate((column for column in relation.columns if not column.hidden), 1)


def numbers_of(table: Table) -> dict[str, int]:
    return {column.name: number for number, column in columns_of(table)}


def indexes_of(table: Table) -> Iterator[AnyIndex]:
    """Yield the index of the primary key, and the others."""
    numbers = {at: number for number, at in enumerate(table.positions.values(), 1)}
    if not table.has_row_id:
        parts = tuple(_part(table, at, numbers) for at in table.primary_key)
        name, oid = table.primary_key_name, table.primary_key_oid
        yield AnyIndex(oid, name, parts, unique=True, primary=True, constraint=True)
    for index in table.indexes:
        yield _index(table, index, numbers)


def _index(table: Table, index: Index, numbers: dict[int, int]) -> AnyIndex:
    condition, parts = "", []
    for at, order in zip(index.columns, index.orders, strict=True):
        if is_predicate(table.columns[at]):
            condition = predicate_text(table.columns[at])
        else:
            parts.append(_part(table, at, numbers, *order))
    return AnyIndex(
        index.oid,
        index.name,
        tuple(parts),
        index.unique or bool(index.deferral),
        constraint=index.constraint,
        nulls_distinct=index.nulls_distinct,
        condition=condition,
        deferral=index.deferral,
    )


def _part(
    table: Table,
    at: int,
    numbers: dict[int, int],
    descending: bool = False,
    nulls_first: bool = False,
) -> Part:
    column = table.columns[at]
    if not column.hidden:
        about = column.name, column.type, column.name, descending, nulls_first, column.collation
        return Part(numbers[at], *about)
    text = column.generated or ""
    head, parenthesis, _ = text.partition("(")
    name = head.strip() if parenthesis and head.strip().isidentifier() else "expr"
    return Part(0, name, column.type, text, descending, nulls_first)


def constraints_of(table: Table) -> Iterator[Constraint]:
    numbers = numbers_of(table)
    for index in indexes_of(table):
        if index.constraint:
            kind = "p" if index.primary else "u"
            columns = tuple(part.number for part in index.parts)
            about = index.oid + 1, index.name, kind, columns
            yield Constraint(*about, index=index.oid, deferral=index.deferral)
    for key in table.foreign_keys:
        columns = tuple(numbers[name] for name in key.columns)
        yield Constraint(key.oid, key.name, "f", columns)
    for check in table.checks:
        columns = tuple(sorted(numbers[name] for name in check.columns if name in numbers))
        yield Constraint(check.oid, check.name, "c", columns, check.text, valid=check.valid)


def foreign_key_of(
    catalog: Catalog, table: Table, name: str
) -> tuple[ForeignKey, Table, tuple[int, ...], int]:
    """Return a foreign key, the table that it references, the columns there, and their index."""
    key = next(each for each in table.foreign_keys if each.name == name)
    other = catalog.tables[key.table]
    numbers = numbers_of(other)
    referenced = tuple(numbers[each] for each in key.referenced)
    for index in indexes_of(other):
        if index.unique and sorted(part.number for part in index.parts) == sorted(referenced):
            return key, other, referenced, index.oid
    return key, other, referenced, 0
