"""`qserver_catalog.definitions`: all definitions, as the statements that would create them.

    before the rows    schemas, types, sequences, tables with keys and checks
    after the rows     positions of sequences, indexes, UNIQUE, foreign keys, views, comments

Each definition comes after those that it needs, so the statements can run in order, with the rows
in between, where no foreign key can refuse them and indexes are filled at once. The texts are
PostgreSQL's own words. Names are quoted where they have to be.

A sequence goes on after the values that it has reserved, so a copy may leave a gap but gives no
value that the original has given.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

from qserver.engine.sequence_states import state_of
from qserver.query.system_rows import SystemTable, sequences_of, system_table, tables_of, views_of
from qserver.sql.functions.text.quoting import quote_identifier, quote_literal
from qserver.storage.catalog import Catalog
from qserver.storage.snapshot import Snapshot
from qserver.values.constraints import Check, ForeignKey
from qserver.values.enumeration import Enumeration
from qserver.values.relations import Schema, Sequence, View
from qserver.values.schema import PUBLIC, Column, Index, Table, is_predicate, predicate_text
from qserver.values.types import BOOLEAN, INTEGER, SqlType

Statements = Iterator[tuple[str, str]]


def _definitions(catalog: Catalog, snapshot: Snapshot) -> Iterator[tuple[Any, ...]]:
    before = ((kind, False, text) for kind, text in _before(catalog))
    after = ((kind, True, text) for kind, text in _after(catalog, snapshot))
    for number, statement in enumerate(chain(before, after), 1):
        yield number, *statement


def _before(catalog: Catalog) -> Statements:
    for each in catalog.definitions():
        if isinstance(each, Schema):
            yield "schema", f"CREATE SCHEMA {quote_identifier(each.name)}"
    for each in catalog.definitions():
        if isinstance(each, Enumeration):
            labels = ", ".join(quote_literal(str(label)) for label in each.labels)
            yield "type", f"CREATE TYPE {_enum_name(catalog, each)} AS ENUM ({labels})"
    of_identities = _identity_sequences(catalog)
    for sequence in sequences_of(catalog):
        if sequence.key not in of_identities:
            options = _sequence_options(sequence)
            yield "sequence", f"CREATE SEQUENCE {_name(sequence)} AS {sequence.type} {options}"
    for table in tables_of(catalog):
        yield "table", _create_table(catalog, table)
    for sequence in sequences_of(catalog):
        yield from _owner(catalog, sequence, of_identities.get(sequence.key))


def _after(catalog: Catalog, snapshot: Snapshot) -> Statements:
    for sequence in sequences_of(catalog):
        value, called = state_of(snapshot, sequence)
        if (value, called) != (sequence.start, False):
            name = quote_literal(_name(sequence))
            word = "true" if called else "false"
            yield "sequence value", f"SELECT setval({name}, {value}, {word})"
    for table in tables_of(catalog):
        for index in table.indexes:
            yield _index(table, index)
    for table in tables_of(catalog):
        for check in table.checks:
            if not check.valid:
                text = f"ALTER TABLE {_name(table)} ADD {_check(check)} NOT VALID"
                yield "check constraint", text
    for table in tables_of(catalog):
        for key in table.foreign_keys:
            yield "foreign key", f"ALTER TABLE {_name(table)} ADD {_foreign_key(catalog, key)}"
    for query in _in_order_of_use(catalog):
        columns = _columns(name for name, _ in query.columns)
        option = f" WITH {query.check_option.upper()} CHECK OPTION" if query.check_option else ""
        yield "view", f"CREATE VIEW {_name(query)} ({columns}) AS {query.text}{option}"
    yield from _comments(catalog)


# --- names and types -----------------------------------------------------------------------------


def _name(definition: Table | View | Sequence) -> str:
    return _qualified(definition.schema, definition.name)


def _qualified(schema: str, name: str) -> str:
    if schema == PUBLIC:
        return quote_identifier(name)
    return f"{quote_identifier(schema)}.{quote_identifier(name)}"


def _columns(names: Iterator[str] | tuple[str, ...]) -> str:
    return ", ".join(map(quote_identifier, names))


def _enum_name(catalog: Catalog, enum: Enumeration) -> str:
    """Return an enum's name, which has its schema in it if that is not public."""
    schema, dot, name = enum.name.partition(".")
    if dot and any(each.name == schema for each in _schemas(catalog)):
        return _qualified(schema, name)
    return quote_identifier(enum.name)


def _schemas(catalog: Catalog) -> Iterator[Schema]:
    return (each for each in catalog.definitions() if isinstance(each, Schema))


def _type(catalog: Catalog, sql_type: SqlType) -> str:
    if sql_type.element is not None:
        return f"{_type(catalog, sql_type.element)}[]"
    return str(sql_type) if sql_type.enum is None else _enum_name(catalog, sql_type.enum)


# --- tables --------------------------------------------------------------------------------------


def _create_table(catalog: Catalog, table: Table) -> str:
    parts = [_column(catalog, column) for column in table.columns if not column.hidden]
    if not table.has_row_id:
        key = _columns(table.columns[at].name for at in table.primary_key)
        parts.append(f"CONSTRAINT {quote_identifier(table.primary_key_name)} PRIMARY KEY ({key})")
    parts += [_check(each) for each in table.checks if each.valid]
    return f"CREATE TABLE {_name(table)} ({', '.join(parts)})"


def _check(check: Check) -> str:
    return f"CONSTRAINT {quote_identifier(check.name)} CHECK ({check.text})"


def _column(catalog: Catalog, column: Column) -> str:
    text = f"{quote_identifier(column.name)} {_type(catalog, column.type)}"
    if column.identity is not None:
        text += f" GENERATED {column.identity.upper()} AS IDENTITY"
        sequence = catalog.find(column.sequence or "")
        if isinstance(sequence, Sequence):
            text += f" ({_sequence_options(sequence)})"
    elif column.generated is not None:
        text += f" GENERATED ALWAYS AS ({column.generated}) STORED"
    elif column.default is not None:
        text += f" DEFAULT {column.default}"
    return text if column.nullable else f"{text} NOT NULL"


def _index(table: Table, index: Index) -> tuple[str, str]:
    name, nulls = (
        quote_identifier(index.name),
        "" if index.nulls_distinct else " NULLS NOT DISTINCT",
    )
    if index.constraint:
        columns = _columns(table.columns[at].name for at in index.columns)
        text = f"ALTER TABLE {_name(table)} ADD CONSTRAINT {name} UNIQUE{nulls} ({columns})"
        return "unique constraint", text
    downward = index.descending or (False,) * len(index.columns)
    parts, condition = [], ""
    for at, down in zip(index.columns, downward, strict=True):
        column = table.columns[at]
        if is_predicate(column):
            condition = f" WHERE {predicate_text(column)}"
        else:
            part = f"({column.generated})" if column.hidden else quote_identifier(column.name)
            parts.append(f"{part} DESC" if down else part)
    kind = "UNIQUE INDEX" if index.unique else "INDEX"
    where = f"{_name(table)} ({', '.join(parts)})"
    return "index", f"CREATE {kind} {name} ON {where}{nulls}{condition}"


def _foreign_key(catalog: Catalog, key: ForeignKey) -> str:
    text = f"CONSTRAINT {quote_identifier(key.name)} FOREIGN KEY ({_columns(key.columns)})"
    other = _name(catalog.tables[key.table])
    text += f" REFERENCES {other} ({_columns(key.referenced)})"
    if key.match == "full":
        text += " MATCH FULL"
    only = f" ({_columns(key.on_delete_columns)})" if key.on_delete_columns else ""
    return f"{text} ON UPDATE {key.on_update.upper()} ON DELETE {key.on_delete.upper()}{only}"


# --- sequences, views, comments ------------------------------------------------------------------


def _identity_sequences(catalog: Catalog) -> dict[str, tuple[Table, Column]]:
    """Return the sequences that come with a column, by their keys."""
    return {
        column.sequence: (table, column)
        for table in tables_of(catalog)
        for column in table.columns
        if column.identity is not None and column.sequence is not None
    }


def _sequence_options(sequence: Sequence) -> str:
    return (
        f"START WITH {sequence.start} INCREMENT BY {sequence.increment}"
        f" MINVALUE {sequence.minimum} MAXVALUE {sequence.maximum} CACHE {sequence.cache}"
        f"{' CYCLE' if sequence.cycle else ' NO CYCLE'}"
    )


def _owner(
    catalog: Catalog, sequence: Sequence, identity: tuple[Table, Column] | None
) -> Statements:
    if identity is not None:
        table, column = identity
        usual = f"{table.name}_{column.name}_seq"
        if sequence.name != usual:  # the table or the column was renamed
            place = _qualified(table.schema, usual)
            yield "sequence", f"ALTER SEQUENCE {place} RENAME TO {quote_identifier(sequence.name)}"
    elif sequence.owner is not None:
        owner, column_name = catalog.tables[sequence.owner[0]], sequence.owner[1]
        place = f"{_name(owner)}.{quote_identifier(column_name)}"
        yield "sequence", f"ALTER SEQUENCE {_name(sequence)} OWNED BY {place}"


def _in_order_of_use(catalog: Catalog) -> list[View]:
    """Return the views, each after those that it reads from."""
    by_key = {each.key: each for each in views_of(catalog)}
    ordered: dict[str, View] = {}

    def add(key: str) -> None:
        if key in by_key and key not in ordered:
            for used in by_key[key].uses:
                add(used)
            ordered[key] = by_key[key]

    for key in by_key:
        add(key)
    return list(ordered.values())


def _comments(catalog: Catalog) -> Statements:
    for each in catalog.definitions():
        if isinstance(each, Enumeration | Schema):
            continue
        kind = {Table: "TABLE", View: "VIEW", Sequence: "SEQUENCE"}[type(each)]
        for about, text in each.comments:
            what, _, name = about.partition(" ")
            place = {
                "": f"{kind} {_name(each)}",
                "column": f"COLUMN {_name(each)}.{quote_identifier(name)}",
                "constraint": f"CONSTRAINT {quote_identifier(name)} ON {_name(each)}",
                "index": f"INDEX {_qualified(each.schema, name)}",
            }[what]
            yield "comment", f"COMMENT ON {place} IS {quote_literal(text)}"


SYSTEM_TABLES: Final[tuple[SystemTable, ...]] = (
    system_table(
        201,
        "definitions",
        _definitions,
        ("position", INTEGER),
        "kind",
        ("after_rows", BOOLEAN),
        "statement",
    ),
)
