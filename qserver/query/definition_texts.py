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
from qserver.functions.text.quoting import quote_literal
from qserver.query.system_rows import (
    SystemTable,
    index_parts,
    sequences_of,
    system_table,
    tables_of,
    views_of,
)
from qserver.storage.catalog import Catalog
from qserver.storage.snapshot import Snapshot
from qserver.values.constraints import Check, ForeignKey
from qserver.values.enumeration import Enumeration
from qserver.values.extensions import Extension
from qserver.values.identifiers import qualified, quote_identifier
from qserver.values.relations import Definition, Schema, Sequence, View
from qserver.values.schema import Column, Index, Table
from qserver.values.shared_comments import SharedComment
from qserver.values.types import BOOLEAN, INTEGER

Statements = Iterator[tuple[str, str]]


def statements_of(catalog: Catalog, key: str) -> list[str] | None:
    """The statements that would create one definition as it is; None if there is none."""
    definition = catalog.find(key)
    if definition is None:
        return None
    comments = [text for _, text in _comments_on(definition)]
    match definition:
        case Schema():
            return [f"CREATE SCHEMA {quote_identifier(definition.name)}", *comments]
        case Extension():
            return [_create_extension(definition), *comments]
        case SharedComment():
            return comments
        case Enumeration():
            return [_create_type(definition), *comments]
        case Sequence():
            return [_create_sequence(definition), *comments]
        case View():
            return [_create_view(definition), *_view_defaults(definition), *comments]
        case Table():
            beside = [text for _, text in _of_table(catalog, definition)]
            return [_create_table(catalog, definition), *beside, *comments]


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
        if isinstance(each, Extension):
            yield "extension", _create_extension(each)
    for each in catalog.definitions():
        if isinstance(each, Enumeration):
            yield "type", _create_type(each)
    of_identities = _identity_sequences(catalog)
    for sequence in sequences_of(catalog):
        if sequence.key not in of_identities:
            yield "sequence", _create_sequence(sequence)
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
    for part in (_indexes, _unchecked, _foreign_keys):
        for table in tables_of(catalog):
            yield from part(catalog, table)
    for query in _in_order_of_use(catalog):
        yield "view", _create_view(query)
        for text in _view_defaults(query):
            yield "view", text
    for each in catalog.definitions():
        yield from _comments_on(each)


# --- names and types -----------------------------------------------------------------------------


def _name(definition: Table | View | Sequence) -> str:
    return qualified(definition.schema, definition.name)


def _columns(names: Iterator[str] | tuple[str, ...]) -> str:
    return ", ".join(map(quote_identifier, names))


# --- tables --------------------------------------------------------------------------------------


def _create_table(catalog: Catalog, table: Table) -> str:
    parts = [_column(catalog, column) for column in table.columns if not column.hidden]
    if not table.has_row_id:
        key = _columns(table.columns[at].name for at in table.primary_key)
        parts.append(f"CONSTRAINT {quote_identifier(table.primary_key_name)} PRIMARY KEY ({key})")
    parts += [_check(each) for each in table.checks if each.valid]
    return f"CREATE TABLE {_name(table)} ({', '.join(parts)})"


def _of_table(catalog: Catalog, table: Table) -> Statements:
    """What belongs to a table and is created after it."""
    yield from _indexes(catalog, table)
    yield from _unchecked(catalog, table)
    yield from _foreign_keys(catalog, table)


def _indexes(catalog: Catalog, table: Table) -> Statements:
    for index in table.indexes:
        yield _index(table, index)


def _unchecked(catalog: Catalog, table: Table) -> Statements:
    for check in table.checks:
        if not check.valid:
            yield "check constraint", f"ALTER TABLE {_name(table)} ADD {_check(check)} NOT VALID"


def _foreign_keys(catalog: Catalog, table: Table) -> Statements:
    for key in table.foreign_keys:
        yield "foreign key", f"ALTER TABLE {_name(table)} ADD {_foreign_key(catalog, key)}"


def _check(check: Check) -> str:
    return f"CONSTRAINT {quote_identifier(check.name)} CHECK ({check.text})"


def _column(catalog: Catalog, column: Column) -> str:
    text = f"{quote_identifier(column.name)} {column.type}"
    if column.collation is not None:
        text += f" COLLATE {quote_identifier(column.collation)}"
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
    name = quote_identifier(index.name)
    if index.constraint:
        nulls = "" if index.nulls_distinct else " NULLS NOT DISTINCT"
        columns = _columns(table.columns[at].name for at in index.columns)
        text = f"ALTER TABLE {_name(table)} ADD CONSTRAINT {name} UNIQUE{nulls} ({columns})"
        return "unique constraint", text + deferral_text(index)
    kind = "UNIQUE INDEX" if index.unique else "INDEX"
    parts, condition = index_parts(table, index)
    where = f" WHERE {condition}" if condition else ""
    return "index", f"CREATE {kind} {name} ON {_name(table)} {parts}{where}"


def _foreign_key(catalog: Catalog, key: ForeignKey) -> str:
    text = f"CONSTRAINT {quote_identifier(key.name)} FOREIGN KEY ({_columns(key.columns)})"
    other = _name(catalog.tables[key.table])
    text += f" REFERENCES {other} ({_columns(key.referenced)})"
    if key.match == "full":
        text += " MATCH FULL"
    only = f" ({_columns(key.on_delete_columns)})" if key.on_delete_columns else ""
    text += f" ON UPDATE {key.on_update.upper()} ON DELETE {key.on_delete.upper()}{only}"
    return text + deferral_text(key)


def deferral_text(key: ForeignKey | Index) -> str:
    """Return what a constraint that may wait says at its end."""
    waits = " INITIALLY DEFERRED" if key.deferral == "deferred" else ""
    return f" DEFERRABLE{waits}" if key.deferral else ""


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


def _create_sequence(sequence: Sequence) -> str:
    return f"CREATE SEQUENCE {_name(sequence)} AS {sequence.type} {_sequence_options(sequence)}"


def _create_type(enum: Enumeration) -> str:
    labels = ", ".join(quote_literal(str(label)) for label in enum.labels)
    return f"CREATE TYPE {enum} AS ENUM ({labels})"


def _create_view(query: View) -> str:
    columns = _columns(name for name, _ in query.columns)
    option = f" WITH {query.check_option.upper()} CHECK OPTION" if query.check_option else ""
    return f"CREATE VIEW {_name(query)} ({columns}) AS {query.text}{option}"


def _view_defaults(query: View) -> Iterator[str]:
    for column, text, _ in query.defaults:
        name = quote_identifier(column)
        yield f"ALTER VIEW {_name(query)} ALTER COLUMN {name} SET DEFAULT {text}"


def _owner(
    catalog: Catalog, sequence: Sequence, identity: tuple[Table, Column] | None
) -> Statements:
    if identity is not None:
        table, column = identity
        usual = f"{table.name}_{column.name}_seq"
        if sequence.name != usual:  # the table or the column was renamed
            place = qualified(table.schema, usual)
            yield "sequence", f"ALTER SEQUENCE {place} RENAME TO {quote_identifier(sequence.name)}"
    elif sequence.owner is not None:
        owner, column_name = catalog.tables[sequence.owner[0]], sequence.owner[1]
        place = f"{_name(owner)}.{quote_identifier(column_name)}"
        yield "sequence", f"ALTER SEQUENCE {_name(sequence)} OWNED BY {place}"


def _create_extension(extension: Extension) -> str:
    name, schema = quote_identifier(extension.name), quote_identifier(extension.schema)
    return f"CREATE EXTENSION {name} WITH SCHEMA {schema}"


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


def _comments_on(definition: Definition) -> Statements:
    if isinstance(definition, SharedComment):
        return  # it is about this database, and not about what is in it
    if isinstance(definition, Enumeration | Schema | Extension):
        word = "SCHEMA" if isinstance(definition, Schema) else "EXTENSION"
        named = f"{word} {quote_identifier(definition.name)}"
        place = f"TYPE {definition}" if isinstance(definition, Enumeration) else named
        for _, text in definition.comments:
            yield "comment", f"COMMENT ON {place} IS {quote_literal(text)}"
        return
    kind = {Table: "TABLE", View: "VIEW", Sequence: "SEQUENCE"}[type(definition)]
    for about, text in definition.comments:
        what, _, name = about.partition(" ")
        place = {
            "": f"{kind} {_name(definition)}",
            "column": f"COLUMN {_name(definition)}.{quote_identifier(name)}",
            "constraint": f"CONSTRAINT {quote_identifier(name)} ON {_name(definition)}",
            "index": f"INDEX {qualified(definition.schema, name)}",
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
