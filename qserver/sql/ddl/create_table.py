"""CREATE TABLE and CREATE TABLE AS.

    columns and primary key ─► UNIQUE ─► CHECK ─► FOREIGN KEY ─► check_definition ─► defined

The definition is built step by step, each step a new frozen `Table`. Defaults, checks and generated
columns are checked by binding an INSERT of defaults against the new table, so the errors are the
binder's.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from qserver.errors import (
    DatatypeMismatch,
    DuplicateColumn,
    DuplicateObject,
    InvalidTableDefinition,
    QserverError,
    SqlSyntaxError,
)
from qserver.sql import ast
from qserver.sql.ddl.columns import (
    DefinedColumn,
    check_generated,
    define_column,
    type_of_output,
)
from qserver.sql.ddl.constraints import (
    key_columns,
    with_check,
    with_foreign_key,
    with_unique,
)
from qserver.sql.ddl.names import (
    choose_relation_name,
    is_taken,
    new_place,
    require_free,
)
from qserver.sql.ddl.port import TAKEN, DdlPort, DdlSteps
from qserver.sql.ddl.references import add_references
from qserver.sql.ddl.rewrite import count_written, row_id_column
from qserver.sql.ddl.table_like import Likeness, likeness, with_likeness
from qserver.sql.execution import Rows
from qserver.sql.plan import OutputColumn
from qserver.values.identifiers import catalog_key
from qserver.values.schema import Column, Table
from qserver.values.temporary import OnCommit


def create_table(work: DdlPort, node: ast.CreateTable) -> DdlSteps:
    if is_skipped(work, node):
        return 0
    schema, name = new_place(work, node.name, temporary=node.temporary)
    key = catalog_key(schema, name)
    if node.query is not None:
        made = yield from _create_table_as(work, node, schema, name)
        _note_on_commit(work, node, key)
        return made
    table = yield from _define(work, schema, name, node)
    work.transaction.define(key, table)
    yield from check_definition(work, table)
    yield from _try_generated(work, table, node)
    add_references(work, table)
    _note_on_commit(work, node, key)
    return 0


def is_skipped(work: DdlPort, node: ast.CreateTable) -> bool:
    """Tell whether there is nothing to do, because of IF NOT EXISTS; raise if the name is taken."""
    schema, name = new_place(work, node.name, temporary=node.temporary)
    key = catalog_key(schema, name)
    if node.if_not_exists and is_taken(work, key):
        work.skip(f'relation "{name}" already exists', TAKEN)
        return True
    require_free(work, key)
    return False


_ON_COMMIT: Final[Mapping[str, OnCommit]] = {"drop": "drop", "delete rows": "delete rows"}


def _note_on_commit(work: DdlPort, node: ast.CreateTable, key: str) -> None:
    action = _ON_COMMIT.get(dict(node.options).get("on commit", ""))
    if action is not None:
        work.statements.on_commit(work.table_now(key), action)


def check_definition(work: DdlPort, table: Table) -> DdlSteps:
    """Raise the errors that every INSERT into the table would raise."""
    target = ast.TableRef(table.path)
    try:
        yield from work.statements.check(ast.Insert(target, (), None))
    except QserverError as error:
        error.position = None  # a position in the text of a DEFAULT, a CHECK, …
        if isinstance(error, DatatypeMismatch):
            error.message = error.message.replace("but expression", "but default expression")
        raise
    return 0


def _try_generated(work: DdlPort, table: Table, node: ast.CreateTable) -> DdlSteps:
    """Raise the errors of constants in generated columns, which are computed before any row."""
    generated = [
        constraint.expression
        for column in node.columns
        for constraint in column.constraints
        if constraint.kind == "generated" and constraint.expression is not None
    ]
    if generated:
        select = ast.Select(tuple(map(ast.Target, generated)), (ast.TableRef(table.path),))
        for _ in (yield from work.statements.run(ast.Query(select), work.literals)):
            yield
    return 0


def _define(
    work: DdlPort, schema: str, name: str, node: ast.CreateTable
) -> Generator[Any, Any, Table]:
    """Return the definition; yield between constraints, since each costs more than the one before.

    A table of thousands would take a minute.
    """
    defined = [define_column(work, schema, name, column) for column in node.columns]
    columns = [each.column for each in defined]
    taken = [(like.before, likeness(work, schema, name, like)) for like in node.likes]
    for before, like in reversed(taken):
        columns[before:before] = like.columns
    _refuse_duplicates(columns)
    key = _primary_key(node, defined, [like for _, like in taken])
    table = _with_key(work, schema, name, columns, key)
    for _, like in taken:
        table = yield from with_likeness(work, table, like)
    for each in defined:
        for constraint in each.constraints:
            table = _with_constraint(work, table, constraint, each.column.name)
            yield
    for constraint in node.constraints:
        table = _with_constraint(work, table, constraint, None)
        yield
    for column in node.columns:
        for constraint in column.constraints:
            if constraint.kind == "generated":
                check_generated(table.columns, column.name, constraint.expression)
                yield
    return table


def _refuse_duplicates(columns: Sequence[Column]) -> None:
    seen: set[str] = set()
    for column in columns:
        if column.name in seen:
            message = f'column "{column.name}" specified more than once'
            raise DuplicateColumn(message, column=column.name)
        seen.add(column.name)


def _primary_key(
    node: ast.CreateTable, defined: Sequence[DefinedColumn], likes: Sequence[Likeness]
) -> ast.Constraint | None:
    """Return the only primary key, with its columns, wherever it is defined."""
    keys = [
        replace(constraint, columns=(each.column.name,))
        for each in defined
        for constraint in each.constraints
        if constraint.kind == "primary key"
    ]
    keys += [constraint for constraint in node.constraints if constraint.kind == "primary key"]
    keys += [
        ast.Constraint("primary key", columns=like.primary_key)
        for like in likes
        if like.primary_key
    ]
    if len(keys) > 1:
        name = node.name[-1]
        raise InvalidTableDefinition(
            f'multiple primary keys for table "{name}" are not allowed', table=name
        )
    return keys[0] if keys else None


def _with_key(
    work: DdlPort,
    schema: str,
    name: str,
    columns: Sequence[Column],
    key: ast.Constraint | None,
) -> Table:
    number = work.transaction.next_tree(schema)
    if key is None:
        return _without_key(number, schema, name, columns)
    positions = key_columns(columns, key.columns, "primary key", name)
    if key.name is not None:
        require_free(work, catalog_key(schema, key.name))
    key_name = key.name or choose_relation_name(work, schema, (name,), "pkey")
    columns = [
        replace(column, nullable=False) if at in positions else column
        for at, column in enumerate(columns)
    ]
    return Table(number, name, tuple(columns), positions, primary_key_name=key_name, schema=schema)


def _without_key(number: int, schema: str, name: str, columns: Sequence[Column]) -> Table:
    """Return a table with a hidden row id as its key."""
    return Table(number, name, (*columns, row_id_column(schema)), (len(columns),), schema=schema)


def _with_constraint(
    work: DdlPort, table: Table, constraint: ast.Constraint, column: str | None
) -> Table:
    match constraint.kind:
        case "unique":
            columns = constraint.columns or ((column,) if column is not None else ())
            if constraint.name is None and _is_primary_key(table, columns):
                return table  # the primary key is unique already
            return with_unique(work, table, constraint, columns)[0]
        case "check":
            if any(check.name == constraint.name for check in table.checks):
                raise DuplicateObject(f'check constraint "{constraint.name}" already exists')
            return with_check(work, table, constraint, column)[0]
        case "foreign key":
            return with_foreign_key(work, table, constraint, column)[0]
        case "primary key":
            return table
        case kind:
            raise AssertionError(f"{kind} is no constraint of a table")


def _is_primary_key(table: Table, columns: Sequence[str]) -> bool:
    return [table.columns[at].name for at in table.primary_key] == list(columns)


# --- CREATE TABLE AS -----------------------------------------------------------------------------


def _create_table_as(work: DdlPort, node: ast.CreateTable, schema: str, name: str) -> DdlSteps:
    assert node.query is not None
    found, _ = yield from work.statements.describe(node.query, work.literals)
    if len(node.column_names) > len(found):
        raise SqlSyntaxError("too many column names were specified")
    names = [*node.column_names, *(column.name for column in found[len(node.column_names) :])]
    columns = [_column_as(each, column) for each, column in zip(names, found, strict=True)]
    _refuse_duplicates(columns)
    table = _without_key(work.transaction.next_tree(schema), schema, name, columns)
    made, pages = 0, list[Rows]()
    if node.with_data:
        work.statements.check_read()
        rows = yield from work.statements.run_query(node.query, work.literals)
        made, pages = yield from _rows_made(work, columns, rows)
    work.transaction.define(table.key, table)
    for page in pages:
        for row in page:
            work.transaction.insert(table, (*row, work.statements.next_row_id(schema)))
        made += len(page)
        yield
    return made


def _rows_made(
    work: DdlPort, columns: Sequence[Column], running: Generator[Rows | None, None, int]
) -> Generator[None, None, tuple[int, list[Rows]]]:
    """Run the query; return how many rows its WITH has changed, and its own rows."""
    pages: list[Rows] = []
    while True:
        try:
            page = next(running)
        except StopIteration as end:
            return end.value, pages
        if page is None:
            yield
        else:
            count_written(work, columns, range(len(columns)), page)
            pages.append(page)


def _column_as(name: str, column: OutputColumn) -> Column:
    return Column(name, type_of_output(name, column))
