"""A system table: its definition, and the function that makes its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from qserver.storage.catalog import Catalog
from qserver.storage.snapshot import Snapshot
from qserver.values.identifiers import quote_identifier
from qserver.values.relations import Sequence, View
from qserver.values.schema import (
    Column,
    Index,
    Table,
    define_table,
    is_predicate,
    order_words,
    predicate_text,
)
from qserver.values.types import TEXT, SqlType

MakeRows = Callable[[Catalog, Snapshot], Iterator[tuple[Any, ...]]]


@dataclass(frozen=True, slots=True)
class SystemTable:
    table: Table
    rows: MakeRows


def system_table(
    number: int, name: str, make: MakeRows, *columns: str | tuple[str, SqlType]
) -> SystemTable:
    """Define a system table; columns are texts unless they say otherwise."""
    defined = [
        Column(column, TEXT) if isinstance(column, str) else Column(*column) for column in columns
    ]
    return SystemTable(define_table(-number, name, defined), make)


def tables_of(catalog: Catalog) -> Iterator[Table]:
    return (each for each in catalog.definitions() if isinstance(each, Table))


def views_of(catalog: Catalog) -> Iterator[View]:
    return (each for each in catalog.definitions() if isinstance(each, View))


def sequences_of(catalog: Catalog) -> Iterator[Sequence]:
    return (each for each in catalog.definitions() if isinstance(each, Sequence))


def index_parts(table: Table, index: Index) -> tuple[str, str]:
    """Return the columns and the condition of an index, as CREATE INDEX has them."""
    parts, condition = [], ""
    for at, order in zip(index.columns, index.orders, strict=True):
        column = table.columns[at]
        if is_predicate(column):
            condition = predicate_text(column)
        else:
            part = f"({column.generated})" if column.hidden else quote_identifier(column.name)
            parts.append(part + order_words(*order))
    nulls = "" if index.nulls_distinct else " NULLS NOT DISTINCT"
    return f"({', '.join(parts)}){nulls}", condition
