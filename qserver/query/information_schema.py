"""The views of information_schema, each with the columns that are asked for in practice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from qserver.query.system_rows import (
    DATABASE,
    OWNER,
    PUBLIC,
    SystemTable,
    sequences_of,
    system_table,
    tables_of,
    views_of,
    visible,
    yes,
)
from qserver.storage.catalog import Catalog
from qserver.storage.snapshot import Snapshot
from qserver.values.relations import Schema, View
from qserver.values.schema import Column, Table
from qserver.values.types import INTEGER, INTEGER_BITS, Kind, SqlType

RowIterator = Iterator[tuple[Any, ...]]


def _schemata(catalog: Catalog, snapshot: Snapshot) -> RowIterator:
    created = [each.name for each in catalog.definitions() if isinstance(each, Schema)]
    for name in (PUBLIC, "information_schema", "pg_catalog", *created):
        yield DATABASE, name, OWNER


def _tables(catalog: Catalog, snapshot: Snapshot) -> RowIterator:
    for each in catalog.definitions():
        if isinstance(each, Table):
            yield DATABASE, each.schema, each.name, "BASE TABLE", "YES"
        elif isinstance(each, View):
            yield DATABASE, each.schema, each.name, "VIEW", "NO"


def _columns(catalog: Catalog, snapshot: Snapshot) -> RowIterator:
    for each in catalog.definitions():
        if isinstance(each, Table):
            for number, column in visible(each):
                yield _column(each, number, column)
        elif isinstance(each, View):
            defaults = {name: text for name, text, _ in each.defaults}
            for number, (name, sql_type) in enumerate(each.columns, 1):
                yield _column(each, number, Column(name, sql_type, default=defaults.get(name)))


def _column(relation: Table | View, number: int, column: Column) -> tuple[Any, ...]:
    sql_type = column.type
    bits = INTEGER_BITS.get(sql_type.kind)
    floats = {Kind.REAL: 24, Kind.DOUBLE: 53}
    precision = bits or floats.get(sql_type.kind)
    scale, radix = (0, 2) if bits else (None, 2 if precision else None)
    if sql_type.kind is Kind.NUMERIC:
        precision, scale, radix = sql_type.precision, sql_type.scale, 10
    identity = {"always": "ALWAYS", "by default": "BY DEFAULT"}
    return (
        DATABASE,
        relation.schema,
        relation.name,
        column.name,
        number,
        column.default,
        yes(column.nullable),
        data_type(sql_type),
        sql_type.length,
        precision,
        radix,
        scale,
        udt_name(sql_type),
        yes(column.identity),
        identity.get(column.identity or ""),
        "ALWAYS" if column.generated else "NEVER",
        column.generated,
        yes(not column.generated),
    )


def data_type(sql_type: SqlType) -> str:
    """Return the type's name without its length, as the standard wants it."""
    if sql_type.kind is Kind.ARRAY:
        return "ARRAY"
    return "USER-DEFINED" if sql_type.kind is Kind.ENUM else sql_type.kind.value


_SHORT_NAMES: Final = {
    Kind.BOOLEAN: "bool",
    Kind.SMALLINT: "int2",
    Kind.INTEGER: "int4",
    Kind.BIGINT: "int8",
    Kind.REAL: "float4",
    Kind.DOUBLE: "float8",
    Kind.VARCHAR: "varchar",
    Kind.CHAR: "bpchar",
    Kind.TIMESTAMP: "timestamp",
    Kind.TIMESTAMPTZ: "timestamptz",
    Kind.TIME: "time",
    Kind.TIMETZ: "timetz",
}


def udt_name(sql_type: SqlType) -> str:
    if sql_type.element is not None:
        return f"_{udt_name(sql_type.element)}"
    if sql_type.enum is not None:
        return sql_type.enum.name
    return _SHORT_NAMES.get(sql_type.kind, sql_type.kind.value)


def _views(catalog: Catalog, snapshot: Snapshot) -> RowIterator:
    for each in views_of(catalog):
        yield DATABASE, each.schema, each.name, each.text, each.check_option.upper() or "NONE", "NO"


def _sequences(catalog: Catalog, snapshot: Snapshot) -> RowIterator:
    """Those of identity columns are no sequences of their own, in the standard's view."""
    hidden = {
        column.sequence
        for table in tables_of(catalog)
        for column in table.columns
        if column.identity
    }
    for each in sequences_of(catalog):
        if each.key in hidden:
            continue
        yield (
            DATABASE,
            each.schema,
            each.name,
            str(each.type),
            str(each.start),
            str(each.minimum),
            str(each.maximum),
            str(each.increment),
            yes(each.cycle),
        )


# --- constraints ---------------------------------------------------------------------------------


def _constraints(table: Table) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield name, kind and columns of each constraint."""
    if not table.has_row_id:
        key = tuple(table.columns[at].name for at in table.primary_key)
        yield table.primary_key_name, "PRIMARY KEY", key
    for index in table.indexes:
        if index.constraint:
            yield index.name, "UNIQUE", tuple(table.columns[at].name for at in index.columns)
    for foreign_key in table.foreign_keys:
        yield foreign_key.name, "FOREIGN KEY", foreign_key.columns
    for check in table.checks:
        yield check.name, "CHECK", check.columns


def _place(table: Table) -> tuple[str, str]:
    return DATABASE, table.schema


def _table_constraints(catalog: Catalog, snapshot: Snapshot) -> RowIterator:
    for table in tables_of(catalog):
        for name, kind, _ in _constraints(table):
            yield (*_place(table), name, *_place(table), table.name, kind, "NO", "NO", "YES")
        for number, column in visible(table):
            if not column.nullable:
                name = f"{table.id}_{number}_not_null"
                kind = "CHECK"
                yield (*_place(table), name, *_place(table), table.name, kind, "NO", "NO", "YES")


def _key_column_usage(catalog: Catalog, snapshot: Snapshot) -> RowIterator:
    for table in tables_of(catalog):
        for name, kind, columns in _constraints(table):
            if kind == "CHECK":
                continue
            for number, column in enumerate(columns, 1):
                place = number if kind == "FOREIGN KEY" else None
                yield (*_place(table), name, *_place(table), table.name, column, number, place)


def _constraint_column_usage(catalog: Catalog, snapshot: Snapshot) -> RowIterator:
    for table in tables_of(catalog):
        keys = {key.name: key for key in table.foreign_keys}
        for name, kind, columns in _constraints(table):
            of_table, of_columns = table, columns
            if kind == "FOREIGN KEY":
                of_table, of_columns = catalog.tables[keys[name].table], keys[name].referenced
            for column in of_columns:
                yield (*_place(of_table), of_table.name, column, *_place(table), name)


def _referential_constraints(catalog: Catalog, snapshot: Snapshot) -> RowIterator:
    for table in tables_of(catalog):
        for key in table.foreign_keys:
            other = catalog.tables.get(key.table)
            unique = None if other is None else _guard_name(other, key.referenced)
            yield (
                *_place(table),
                key.name,
                *_place(other or table),
                unique,
                "FULL" if key.match == "full" else "NONE",
                key.on_update.upper(),
                key.on_delete.upper(),
            )


def _guard_name(table: Table, columns: tuple[str, ...]) -> str | None:
    for name, kind, its_columns in _constraints(table):
        if kind in ("PRIMARY KEY", "UNIQUE") and sorted(its_columns) == sorted(columns):
            return name
    return None


def _check_constraints(catalog: Catalog, snapshot: Snapshot) -> RowIterator:
    for table in tables_of(catalog):
        for check in table.checks:
            yield *_place(table), check.name, f"({check.text})"
        for number, column in visible(table):
            if not column.nullable:
                name = f"{table.id}_{number}_not_null"
                yield *_place(table), name, f"{column.name} IS NOT NULL"


_CONSTRAINT: Final = ("constraint_catalog", "constraint_schema", "constraint_name")
_TABLE: Final = ("table_catalog", "table_schema", "table_name")

SYSTEM_TABLES: Final[tuple[SystemTable, ...]] = (
    system_table(1, "schemata", _schemata, "catalog_name", "schema_name", "schema_owner"),
    system_table(2, "tables", _tables, *_TABLE, "table_type", "is_insertable_into"),
    system_table(
        3,
        "columns",
        _columns,
        *_TABLE,
        "column_name",
        ("ordinal_position", INTEGER),
        "column_default",
        "is_nullable",
        "data_type",
        ("character_maximum_length", INTEGER),
        ("numeric_precision", INTEGER),
        ("numeric_precision_radix", INTEGER),
        ("numeric_scale", INTEGER),
        "udt_name",
        "is_identity",
        "identity_generation",
        "is_generated",
        "generation_expression",
        "is_updatable",
    ),
    system_table(4, "views", _views, *_TABLE, "view_definition", "check_option", "is_updatable"),
    system_table(
        5,
        "sequences",
        _sequences,
        "sequence_catalog",
        "sequence_schema",
        "sequence_name",
        "data_type",
        "start_value",
        "minimum_value",
        "maximum_value",
        "increment",
        "cycle_option",
    ),
    system_table(
        6,
        "table_constraints",
        _table_constraints,
        *_CONSTRAINT,
        *_TABLE,
        "constraint_type",
        "is_deferrable",
        "initially_deferred",
        "enforced",
    ),
    system_table(
        7,
        "key_column_usage",
        _key_column_usage,
        *_CONSTRAINT,
        *_TABLE,
        "column_name",
        ("ordinal_position", INTEGER),
        ("position_in_unique_constraint", INTEGER),
    ),
    system_table(
        8, "constraint_column_usage", _constraint_column_usage, *_TABLE, "column_name", *_CONSTRAINT
    ),
    system_table(
        9,
        "referential_constraints",
        _referential_constraints,
        *_CONSTRAINT,
        "unique_constraint_catalog",
        "unique_constraint_schema",
        "unique_constraint_name",
        "match_option",
        "update_rule",
        "delete_rule",
    ),
    system_table(10, "check_constraints", _check_constraints, *_CONSTRAINT, "check_clause"),
)
