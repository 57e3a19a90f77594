"""Adds constraints to a table's definition; other modules check or rewrite rows.

A UNIQUE constraint is an index of the same name. A CHECK is stored as text. Missing names are
chosen as PostgreSQL does: `t_a_key`, `t_a_check`, `t_a_fkey`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from qserver.errors import (
    DatatypeMismatch,
    DuplicateColumn,
    DuplicateObject,
    InvalidColumnReference,
    InvalidForeignKey,
    InvalidTableDefinition,
    NotInPrerequisiteState,
    SqlSyntaxError,
    UndefinedColumn,
    UndefinedObject,
)
from qserver.sql import ast
from qserver.sql.ddl.columns import names_in
from qserver.sql.ddl.names import (
    choose,
    choose_relation_name,
    constraint_names,
    find_table,
    is_taken,
    new_place,
    require_free,
)
from qserver.sql.ddl.port import DdlPort
from qserver.values.casts import Context, context_of
from qserver.values.constraints import Check, ForeignKey
from qserver.values.identifiers import catalog_key
from qserver.values.schema import Column, Index, Table
from qserver.values.temporary import TEMPORARY
from qserver.values.types import (
    DATETIME_KINDS,
    FLOAT_KINDS,
    INTEGER_KINDS,
    TEXT_KINDS,
    Kind,
)

UNORDERED_KINDS = (Kind.JSON, Kind.JSONPATH, Kind.RECORD, Kind.VOID)


def key_columns(
    columns: Sequence[Column], names: Sequence[str], kind: str, table: str
) -> tuple[int, ...]:
    """Return the positions of a key's columns. `kind`: "primary key" or "unique"."""
    positions: list[int] = []
    by_name = {column.name: at for at, column in enumerate(columns) if not column.hidden}
    for name in names:
        at = by_name.get(name)
        if at is None:
            message = f'column "{name}" named in key does not exist'
            raise UndefinedColumn(message, table=table, column=name)
        if at in positions:
            message = f'column "{name}" appears twice in {kind} constraint'
            raise DuplicateColumn(message, table=table, column=name)
        require_order(columns[at])
        positions.append(at)
    return tuple(positions)


def require_order(column: Column) -> None:
    """Require a type with an order, for a key."""
    if column.type.kind in UNORDERED_KINDS:
        raise UndefinedObject(
            f'data type {column.type} has no default operator class for access method "btree"',
            hint="You must specify an operator class for the index or define a default operator"
            " class for the data type.",
        )


def require_new_constraint(table: Table, name: str) -> None:
    if name in constraint_names(table):
        raise DuplicateObject(
            f'constraint "{name}" for relation "{table.name}" already exists', table=table.name
        )


def with_unique(
    work: DdlPort, table: Table, constraint: ast.Constraint, columns: Sequence[str]
) -> tuple[Table, Index]:
    positions = key_columns(table.columns, columns, "unique", table.name)
    name = constraint.name
    if name is None:
        name = choose_relation_name(work, table.schema, (table.name, *columns), "key")
        while any(index.name == name for index in table.indexes):  # of the same statement
            name = choose((table.name, *columns), "key", lambda each: _has(work, table, each))
    else:
        require_new_constraint(table, name)
        require_free(work, catalog_key(table.schema, name))
    deferral = deferral_of(constraint.attributes)
    index = Index(
        work.transaction.next_tree(table.schema),
        name,
        positions,
        unique=not deferral,
        constraint=True,
        nulls_distinct=not constraint.nulls_not_distinct,
        deferral=deferral,
    )
    return table.with_index(index), index


def _has(work: DdlPort, table: Table, name: str) -> bool:
    taken = is_taken(work, catalog_key(table.schema, name))
    return taken or any(index.name == name for index in table.indexes)


def with_index_like(work: DdlPort, table: Table, index: Index, columns: Sequence[str]) -> Table:
    """Return the table with a copy of another table's index, under a new name."""
    suffix = "key" if index.constraint else "idx"
    name = choose((table.name, *columns), suffix, lambda each: _has(work, table, each))
    positions = tuple(table.position(column) for column in columns)
    number = work.transaction.next_tree(table.schema)
    return table.with_index(replace(index, id=number, name=name, columns=positions))


def with_check(
    work: DdlPort, table: Table, constraint: ast.Constraint, column: str | None
) -> tuple[Table, Check]:
    """Return the table with one more CHECK; `column` is the column that it is part of."""
    assert constraint.expression is not None
    mentioned = [name for name in names_in(constraint.expression) if name in table.positions]
    name = constraint.name
    if name is None:
        about = column or (mentioned[0] if len(mentioned) == 1 else None)
        parts = (table.name,) if about is None else (table.name, about)
        taken = constraint_names(table)
        name = choose(parts, "check", taken.__contains__)
    else:
        require_new_constraint(table, name)
    valid = "not valid" not in constraint.attributes
    check = Check(name, work.stored(constraint.text), tuple(mentioned), valid)
    return replace(table, checks=(*table.checks, check)), check


def deferral_of(attributes: Collection[str]) -> str:
    if "initially deferred" in attributes:
        return "deferred"
    return "deferrable" if "deferrable" in attributes else ""


def with_foreign_key(
    work: DdlPort, table: Table, constraint: ast.Constraint, column: str | None
) -> tuple[Table, ForeignKey]:
    """Return the table with one more FOREIGN KEY; `column` is its only one if none are given."""
    node = constraint.foreign_key
    assert node is not None
    columns = node.columns or constraint.columns or ((column,) if column is not None else ())
    for each in (*columns, *node.on_delete_columns):
        if each not in table.positions:
            raise UndefinedColumn(
                f'column "{each}" referenced in foreign key constraint does not exist',
                table=table.name,
                column=each,
            )
    is_new = work.find(table.key) is None
    itself = is_new and catalog_key(*new_place(work, node.table)) == table.key
    other = table if itself else find_table(work, node.table)
    if (other.schema == TEMPORARY) != (table.schema == TEMPORARY):
        kind = "temporary" if table.schema == TEMPORARY else "permanent"
        raise InvalidTableDefinition(
            f"constraints on {kind} tables may reference only {kind} tables"
        )
    name = constraint.name
    if name is None:
        name = choose((table.name, *columns), "fkey", constraint_names(table).__contains__)
    else:
        require_new_constraint(table, name)
    referenced = node.referenced or _primary_key(other)
    for each in node.on_delete_columns:
        if each not in columns:
            raise InvalidColumnReference(
                f'column "{each}" referenced in ON DELETE SET action must be part of foreign key'
            )
    key = ForeignKey(
        name,
        columns,
        other.key,
        referenced,
        node.on_delete,
        node.on_update,
        node.match,
        tuple(dict.fromkeys(node.on_delete_columns)),
        deferral_of(constraint.attributes),
    )
    check_referenced(table, other, key)
    return replace(table, foreign_keys=(*table.foreign_keys, key)), key


def _primary_key(table: Table) -> tuple[str, ...]:
    if table.has_row_id:
        raise UndefinedObject(f'there is no primary key for referenced table "{table.name}"')
    return tuple(table.columns[at].name for at in table.primary_key)


def check_referenced(table: Table, other: Table, key: ForeignKey) -> None:
    """Require that the columns can refer to those of the other table."""
    for name in key.referenced:
        if name not in other.positions:
            raise UndefinedColumn(
                f'column "{name}" referenced in foreign key constraint does not exist',
                table=other.name,
                column=name,
            )
    if len(key.columns) != len(key.referenced):
        raise InvalidForeignKey(
            "number of referencing and referenced columns for foreign key disagree"
        )
    wanted = sorted(other.position(name) for name in key.referenced)
    if referenced_index(other, key.referenced) is None:
        if any(each.deferral and sorted(each.columns) == wanted for each in other.indexes):
            raise NotInPrerequisiteState(
                f'cannot use a deferrable unique constraint for referenced table "{other.name}"'
            )
        raise InvalidForeignKey(
            f'there is no unique constraint matching given keys for referenced table "{other.name}"'
        )
    _check_actions(table, key)
    for name, theirs in zip(key.columns, key.referenced, strict=True):
        one, two = table.column(name).type, other.column(theirs).type
        if one.bare != two.bare and not _comparable(one.kind, two.kind):
            raise DatatypeMismatch(
                f'foreign key constraint "{key.name}" cannot be implemented',
                detail=f'Key columns "{name}" and "{theirs}" are of incompatible types:'
                f" {one} and {two}.",
            )


def _check_actions(table: Table, key: ForeignKey) -> None:
    """Refuse actions that would set generated columns."""
    if all(table.column(name).generated is None for name in key.columns):
        return
    for event, action in (("UPDATE", key.on_update), ("DELETE", key.on_delete)):
        if action in ("set null", "set default") or (event, action) == ("UPDATE", "cascade"):
            raise SqlSyntaxError(
                f"invalid ON {event} action for foreign key constraint containing generated column"
            )


def _comparable(one: Kind, two: Kind) -> bool:
    """Tell whether a value of the first kind can be looked up among keys of the second."""
    if one is two:
        return one not in (Kind.ENUM, Kind.ARRAY)  # those differ by more than their kind
    if any(one in family and two in family for family in _FAMILIES):
        return True
    return context_of(one, two) is Context.IMPLICIT


_FAMILIES = (INTEGER_KINDS, FLOAT_KINDS, TEXT_KINDS, DATETIME_KINDS)


def referenced_index(table: Table, columns: Sequence[str]) -> Table | Index | None:
    """Return what makes the referenced columns unique: the primary key, or a unique index."""
    wanted = sorted(table.position(name) for name in columns)
    if sorted(table.primary_key) == wanted:
        return table
    for index in table.indexes:
        if index.unique and sorted(index.columns) == wanted:
            return index
    return None
