"""The relations of pg_catalog and information_schema, as definitions.

A table has no tree: its number is negative, that of its oid, and so are those of its indexes. A
statement that reads one runs on a `CatalogReader`. Indexes are declared for the columns that a
source can look up (`sources`), so the optimizer chooses them as it does for other tables. A view
is an ordinary `View` with PostgreSQL's query.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Final

from qserver.query.catalog.data import SYSTEM_SCHEMAS, RelationData, relations
from qserver.query.catalog.sources import SOURCES
from qserver.values.relations import View
from qserver.values.schema import Column, Index, Table, define_table
from qserver.values.type_names import TYPES_BY_NAME
from qserver.values.types import ANYARRAY, Kind, SqlType, array_of

INDEXES_FROM: Final = 1_000_000
"""Trees of indexes are numbered from here downwards."""

INDEXES_MOST: Final = 8
"""So many numbers for indexes has each table."""

COLUMNS_OF: Final[Mapping[str, SqlType]] = {
    "anyarray": ANYARRAY,
    "_pg_statistic": array_of(SqlType(Kind.PG_STATISTIC)),
}


@cache
def find_relation(schema: str, name: str) -> Table | View | None:
    """Return a relation of the catalog."""
    data = relations().get((schema, name)) if schema in SYSTEM_SCHEMAS else None
    if data is None:
        return None
    return _view(data) if data.query is not None else _table(data)


@cache
def relation_of_tree(tree: int) -> tuple[Table, RelationData]:
    """Return the table that a negative tree number is that of, or whose index's."""
    oid = (-tree - INDEXES_FROM) // INDEXES_MOST if -tree >= INDEXES_FROM else -tree
    for data in relations().values():
        if data.oid == oid:
            table = find_relation(data.schema, data.name)
            assert isinstance(table, Table)
            return table, data
    raise AssertionError(f"no relation has the tree {tree}")


def column_type(kind: str) -> SqlType:
    """Return the type with one of PostgreSQL's internal names."""
    return COLUMNS_OF.get(kind) or TYPES_BY_NAME[kind]


def _columns(data: RelationData) -> list[Column]:
    return [
        Column(name, column_type(kind), not required) for name, kind, required, _ in data.columns
    ]


def _table(data: RelationData) -> Table:
    table = define_table(-data.oid, data.name, _columns(data), _key_of(data))
    table = replace(table, schema=data.schema)
    for at, (columns, unique) in enumerate(_indexes_of(data)):
        places = tuple(data.names.index(column) for column in columns)
        number = -(INDEXES_FROM + data.oid * INDEXES_MOST + at)
        table = table.with_index(Index(number, f"{data.name}_{at}", places, unique))
    return table


def _indexes_of(data: RelationData) -> list[tuple[tuple[str, ...], bool]]:
    """Return the columns of the indexes, and whether each is unique.

    They are those of PostgreSQL's that a source can use, and one for each column more by which it
    finds rows.
    """
    wanted = SOURCES[data.name].looked_up_by if data.name in SOURCES else {}
    found = [(columns, unique) for columns, unique in data.indexes if columns[0] in wanted]
    led_by = {columns[0] for columns, _ in found} | set(_key_of(data)[:1])
    found += [((column,), False) for column in wanted if column not in led_by]
    assert len(found) <= INDEXES_MOST, data.name
    return found


def _key_of(data: RelationData) -> tuple[str, ...]:
    """Return the columns of the primary key; of pg_depend, which has none, all."""
    if data.key or data.name not in SOURCES:
        return tuple(data.key)
    return tuple(name for name, _, required, _ in data.columns if required)


def _view(data: RelationData) -> View:
    columns = tuple((column.name, column.type) for column in _columns(data))
    names = tuple(data.names)
    assert data.query is not None
    return View(data.name, columns, names, data.query.rstrip(";"), schema=data.schema)
