"""CREATE INDEX, including indexes on expressions and partial indexes.

The index is filled inside the transaction that defines it, so nobody sees an incomplete one. NULLS
FIRST or LAST has no effect: the order inside an index is not visible, and the planner sorts where
it does not fit.

An index is over columns. An expression becomes a hidden generated column, and WHERE one that is
true where the condition is true and NULL elsewhere: NULLs are never duplicates, so a unique index
that ends in this column covers just the rows that satisfy the condition.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from qserver.errors import (
    DuplicateTable,
    FeatureNotSupported,
    InvalidObjectDefinition,
    UndefinedColumn,
    UndefinedObject,
)
from qserver.sql import ast
from qserver.sql.ddl.constraints import require_order
from qserver.sql.ddl.immutable import is_immutable
from qserver.sql.ddl.names import (
    choose_relation_name,
    find_table,
    is_taken,
    require_free,
)
from qserver.sql.ddl.port import TAKEN, DdlPort, DdlSteps
from qserver.sql.ddl.rewrite import (
    build_index,
    name_of,
    reshaped,
    rewrite,
    with_new_trees,
)
from qserver.values.identifiers import catalog_key
from qserver.values.schema import Column, Index, Table, predicate_of
from qserver.values.types import BOOLEAN, SqlType

METHODS = ("btree", "hash", "gist", "gin", "spgist", "brin")


@dataclass(frozen=True, slots=True)
class Item:
    """One element of an index: a column, or the text of a hidden generated column."""

    label: str
    column: str = ""
    generated: str = ""
    type: SqlType = BOOLEAN


def create_index(work: DdlPort, node: ast.CreateIndex) -> DdlSteps:
    table = find_table(work, node.table)
    if node.method not in METHODS:
        raise UndefinedObject(f'access method "{node.method}" does not exist')
    if node.nulls_not_distinct and node.where is not None:
        raise FeatureNotSupported(
            "NULLS NOT DISTINCT is not supported for an index over some rows only",
            hint="Leave out NULLS NOT DISTINCT, or WHERE.",
        )
    if node.name is not None and is_taken(work, catalog_key(table.schema, node.name)):
        if node.if_not_exists:
            work.skip(f'relation "{node.name}" already exists', TAKEN)
            return 0
        require_free(work, catalog_key(table.schema, node.name))
        raise DuplicateTable(f'relation "{node.name}" already exists', table=node.name)
    items = yield from _items(work, table, node)
    labels = [item.label for item in items if item.label]
    name = node.name or choose_relation_name(work, table.schema, (table.name, *labels), "idx")
    table = yield from _with_hidden_columns(work, table, items)
    descending = [item.descending for item in node.items]
    moved = [item.nulls_first not in (None, item.descending) for item in node.items]
    rest = [False] * (len(items) - len(node.items))
    index = Index(
        work.transaction.next_tree(table.schema),
        name,
        tuple(_position(table, item) for item in items),
        node.unique,
        (*descending, *rest),
        nulls_distinct=not node.nulls_not_distinct,
        nulls_moved=(*moved, *rest),
    )
    indexed = table.with_index(index)
    yield from build_index(work, indexed, index)
    work.transaction.define(table.key, indexed)
    return 0


def _items(work: DdlPort, table: Table, node: ast.CreateIndex) -> Generator[Any, Any, list[Item]]:
    items = []
    for each in node.items:
        items.append((yield from _item(work, table, each)))
    for name in node.including:
        if name not in table.positions:
            raise UndefinedColumn(f'column "{name}" does not exist', column=name)
    if node.where is not None:
        yield from _type_of(work, table, ast.Constant(True), node.where)
        _require_immutable(node.where, "predicate")
        items.append(Item("", generated=predicate_of(work.stored(node.where_text))))
    return items


def _item(work: DdlPort, table: Table, item: ast.IndexItem) -> Generator[Any, Any, Item]:
    expression = item.expression
    if isinstance(expression, ast.Collate) and isinstance(expression.operand, ast.Name):
        yield from _type_of(work, table, expression)
        expression = expression.operand  # there is one order of texts
    if not isinstance(expression, ast.Name):
        sql_type = yield from _type_of(work, table, expression)
        _require_immutable(expression, "expression")
        require_order(Column("expression", sql_type))
        label = expression.name[-1] if isinstance(expression, ast.Call) else "expr"
        return Item(label, generated=work.stored(item.text), type=sql_type)
    name = expression.parts[-1]
    if name not in table.positions:
        raise UndefinedColumn(
            f'column "{name}" does not exist',
            table=table.name,
            column=name,
            position=expression.position + 1,
        )
    require_order(table.column(name))
    return Item(name, column=name)


def _require_immutable(expression: ast.Expression, what: str) -> None:
    if not is_immutable(expression):
        raise InvalidObjectDefinition(f"functions in index {what} must be marked IMMUTABLE")


def _type_of(
    work: DdlPort,
    table: Table,
    expression: ast.Expression,
    where: ast.Expression | None = None,
) -> Generator[Any, Any, SqlType]:
    """Check an expression over the table's rows, and return its type."""
    source = ast.TableRef(table.path)
    select = ast.Select((ast.Target(expression),), (source,), where)
    found = yield from work.statements.columns_of(ast.Query(select), work.literals)
    return found[0].type


def _with_hidden_columns(
    work: DdlPort, table: Table, items: list[Item]
) -> Generator[None, None, Table]:
    """Return the table with a hidden column for each expression that lacks one."""
    there = {column.generated for column in table.columns if column.hidden}
    missing = {item.generated: item for item in items if item.generated}
    wanted = [item for text, item in missing.items() if text not in there]
    if not wanted:
        return table
    work.require_read(table)
    at = len(table.columns) - table.has_row_id
    number = len(there)
    added = [
        Column(f"expression {number + n}", item.type, hidden=True, generated=item.generated)
        for n, item in enumerate(wanted)
    ]
    columns = (*table.columns[:at], *added, *table.columns[at:])
    new = reshaped(table, columns, lambda was: was + len(added) * (was >= at))
    new = with_new_trees(work, new)
    kept = [
        (column.name, name_of(column.name))
        for column in table.columns
        if not column.hidden and column.generated is None
    ]
    yield from rewrite(work, table, new, kept)
    return new


def _position(table: Table, item: Item) -> int:
    if item.column:
        return table.position(item.column)
    for at, column in enumerate(table.columns):
        if column.hidden and column.generated == item.generated:
            return at
    raise AssertionError("an expression without its hidden column")
