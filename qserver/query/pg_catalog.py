"""A small pg_catalog: what tools ask for to list tables, columns, indexes and types.

Object ids (oid) are tree numbers and serve only to join these tables with each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from zlib import crc32

from qserver.query.system_rows import (
    DATABASE,
    OWNER,
    PUBLIC,
    SystemTable,
    comment_of,
    index_parts,
    sequences_of,
    system_table,
    tables_of,
    views_of,
    visible,
)
from qserver.storage.catalog import Catalog
from qserver.storage.snapshot import Snapshot
from qserver.values.enumeration import Enumeration
from qserver.values.identifiers import quote_identifier
from qserver.values.relations import Schema, Sequence, View
from qserver.values.schema import Table
from qserver.values.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, REAL

RowIterator = Iterator[tuple[Any, ...]]

PUBLIC_NUMBER: Final = 2200
SCHEMA_NUMBERS: Final = {"pg_catalog": 11, PUBLIC: PUBLIC_NUMBER, "information_schema": 13000}


def number_of(definition: Table | View | Sequence | Enumeration) -> int:
    """Return an object id: the tree's number, or a hash of the name if there is no tree."""
    if isinstance(definition, Table | Sequence):
        return definition.id
    return 2**31 + crc32(definition.key.encode())


def schema_number(name: str) -> int:
    return SCHEMA_NUMBERS.get(name) or 2**31 + crc32(f"schema {name}".encode())


def _pg_tables(catalog: Catalog, snapshot: Snapshot) -> RowIterator:
    for table in tables_of(catalog):
        yield table.schema, table.name, OWNER, bool(table.indexes or not table.has_row_id)


def _pg_views(catalog: Catalog, snapshot: Snapshot) -> RowIterator:
    for each in views_of(catalog):
        yield each.schema, each.name, OWNER, each.text


def _pg_indexes(catalog: Catalog, snapshot: Snapshot) -> RowIterator:
    for table in tables_of(catalog):
        place = f"{quote_identifier(table.schema)}.{quote_identifier(table.name)}"
        for name, unique, parts in _indexes(table):
            kind = "UNIQUE INDEX" if unique else "INDEX"
            text = f"CREATE {kind} {quote_identifier(name)} ON {place} USING btree {parts}"
            yield table.schema, table.name, name, text


def _indexes(table: Table) -> Iterator[tuple[str, bool, str]]:
    """Yield each index: its name, whether it is unique, and the rest of its text."""
    if not table.has_row_id:
        key = ", ".join(quote_identifier(table.columns[at].name) for at in table.primary_key)
        yield table.primary_key_name, True, f"({key})"
    for index in table.indexes:
        parts, condition = index_parts(table, index)
        where = f" WHERE ({condition})" if condition else ""
        yield index.name, index.unique, f"{parts}{where}"


def _pg_sequences(catalog: Catalog, snapshot: Snapshot) -> RowIterator:
    for each in sequences_of(catalog):
        yield (
            each.schema,
            each.name,
            OWNER,
            str(each.type),
            each.start,
            each.minimum,
            each.maximum,
            each.increment,
            each.cycle,
            each.cache,
        )


def _pg_namespace(catalog: Catalog, snapshot: Snapshot) -> RowIterator:
    for name, number in SCHEMA_NUMBERS.items():
        yield number, name, 10
    for each in catalog.definitions():
        if isinstance(each, Schema):
            yield schema_number(each.name), each.name, 10


def _pg_class(catalog: Catalog, snapshot: Snapshot) -> RowIterator:
    for each in catalog.definitions():
        if isinstance(each, Enumeration | Schema):
            continue
        kind = {Table: "r", View: "v", Sequence: "S"}[type(each)]
        rows = float(snapshot.count(each.id)) if isinstance(each, Table) else 0.0
        width = len(list(visible(each))) if isinstance(each, Table) else 0
        yield number_of(each), each.name, schema_number(each.schema), kind, rows, width, "p"
        if isinstance(each, Table):
            if not each.has_row_id:
                name, width = each.primary_key_name, len(each.primary_key)
                number = 2**31 + crc32(f"{each.key} key".encode())
                yield number, name, schema_number(each.schema), "i", rows, width, "p"
            for index in each.indexes:
                columns = len(index.columns)
                yield index.id, index.name, schema_number(each.schema), "i", rows, columns, "p"


def _pg_attribute(catalog: Catalog, snapshot: Snapshot) -> RowIterator:
    for each in catalog.definitions():
        if isinstance(each, Table):
            for number, column in visible(each):
                has_default = column.default is not None or column.generated is not None
                name, sql_type = column.name, str(column.type)
                yield each.id, name, number, sql_type, not column.nullable, has_default, False
        elif isinstance(each, View):
            defaults = {name for name, _, _ in each.defaults}
            for number, (name, of_type) in enumerate(each.columns, 1):
                has_default = name in defaults
                yield number_of(each), name, number, str(of_type), False, has_default, False


def _pg_type(catalog: Catalog, snapshot: Snapshot) -> RowIterator:
    for each in catalog.definitions():
        if isinstance(each, Enumeration):
            yield number_of(each), each.name, schema_number(each.schema), "e"


def _pg_enum(catalog: Catalog, snapshot: Snapshot) -> RowIterator:
    for each in catalog.definitions():
        if isinstance(each, Enumeration):
            for label in each.labels:
                yield number_of(each), label.position + 1.0, str(label)


def _pg_description(catalog: Catalog, snapshot: Snapshot) -> RowIterator:
    for each in catalog.definitions():
        if isinstance(each, Enumeration | Schema):
            continue
        text = comment_of(each, "")
        if text is not None:
            yield number_of(each), 0, text
        if isinstance(each, Table):
            for number, column in visible(each):
                text = comment_of(each, f"column {column.name}")
                if text is not None:
                    yield each.id, number, text


def _pg_database(catalog: Catalog, snapshot: Snapshot) -> RowIterator:
    yield 1, DATABASE, 6, "C", "C"


SYSTEM_TABLES: Final[tuple[SystemTable, ...]] = (
    system_table(
        101,
        "pg_tables",
        _pg_tables,
        "schemaname",
        "tablename",
        "tableowner",
        ("hasindexes", BOOLEAN),
    ),
    system_table(102, "pg_views", _pg_views, "schemaname", "viewname", "viewowner", "definition"),
    system_table(
        103, "pg_indexes", _pg_indexes, "schemaname", "tablename", "indexname", "indexdef"
    ),
    system_table(
        104,
        "pg_sequences",
        _pg_sequences,
        "schemaname",
        "sequencename",
        "sequenceowner",
        "data_type",
        ("start_value", BIGINT),
        ("min_value", BIGINT),
        ("max_value", BIGINT),
        ("increment_by", BIGINT),
        ("cycle", BOOLEAN),
        ("cache_size", BIGINT),
    ),
    system_table(
        105, "pg_namespace", _pg_namespace, ("oid", BIGINT), "nspname", ("nspowner", BIGINT)
    ),
    system_table(
        106,
        "pg_class",
        _pg_class,
        ("oid", BIGINT),
        "relname",
        ("relnamespace", BIGINT),
        "relkind",
        ("reltuples", DOUBLE),
        ("relnatts", INTEGER),
        "relpersistence",
    ),
    system_table(
        107,
        "pg_attribute",
        _pg_attribute,
        ("attrelid", BIGINT),
        "attname",
        ("attnum", INTEGER),
        "atttypid",
        ("attnotnull", BOOLEAN),
        ("atthasdef", BOOLEAN),
        ("attisdropped", BOOLEAN),
    ),
    system_table(
        108, "pg_type", _pg_type, ("oid", BIGINT), "typname", ("typnamespace", BIGINT), "typtype"
    ),
    system_table(
        109, "pg_enum", _pg_enum, ("enumtypid", BIGINT), ("enumsortorder", REAL), "enumlabel"
    ),
    system_table(
        110,
        "pg_description",
        _pg_description,
        ("objoid", BIGINT),
        ("objsubid", INTEGER),
        "description",
    ),
    system_table(
        111,
        "pg_database",
        _pg_database,
        ("oid", BIGINT),
        "datname",
        ("encoding", INTEGER),
        "datcollate",
        "datctype",
    ),
)
