"""Rewrites, checks or indexes rows after a change of their table's definition.

    INSERT INTO t (a, b) SELECT a, b::text FROM "t of old" ORDER BY its row id

A tree holds rows with one set of columns, so a table whose columns change gets new trees. The
statement that a user would write moves the rows, with the old table under another name. So
defaults, generated columns, NOT NULL, CHECK and UNIQUE need no second implementation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from qserver.errors import (
    CheckViolation,
    NotNullViolation,
    UniqueViolation,
)
from qserver.sql import ast
from qserver.sql.ddl.names import choose, choose_relation_name
from qserver.sql.ddl.port import DdlPort, DdlSteps
from qserver.values.keys import Key, Row
from qserver.values.schema import ROW_ID, Column, Index, Table
from qserver.values.sizes import is_sized, size_of
from qserver.values.temporary import TEMPORARY, TEMPORARY_ROW_IDS
from qserver.values.types import BIGINT

Moved = tuple[str, ast.Expression]
"""A column of the new table, and its expression over the old one."""

ROWS_AT_ONCE: Final = 256
"""Rows that get their entries in an index before others may run."""


def name_of(column: str) -> ast.Name:
    return ast.Name((column,))


def rewrite(work: DdlPort, old: Table, new: Table, moved: Sequence[Moved]) -> DdlSteps:
    """Let `new` take the place of `old`, its rows computed from the old ones.

    A CHECK that was added NOT VALID is not theirs: they were there before it.
    """
    transaction = work.transaction
    name = choose_relation_name(work, old.schema, (old.name,), "old")
    source, row_id = _all_visible(old, name)
    transaction.define(source.key, source)
    checks = tuple(check for check in new.checks if check.valid)
    transaction.define(new.key, replace(new, checks=checks))
    select = ast.Select(
        tuple(ast.Target(expression) for _, expression in moved),
        (ast.TableRef(source.path, old.name),),
    )
    order = () if row_id is None else (ast.OrderItem(name_of(row_id)),)
    insert = ast.Insert(
        ast.TableRef(new.path),
        tuple(column for column, _ in moved),
        ast.Query(select, order) if moved else _empty_rows(source.path, old.name),
        overriding="system",
    )
    count: int
    try:
        running = yield from work.statements.run(insert, work.literals)
        while True:
            next(running)
            yield
    except StopIteration as end:
        count = end.value
    except NotNullViolation as error:
        raise contains_null(new, error.column or "") from None
    except CheckViolation as error:
        raise violated_by_a_row(new, error.constraint or "") from None
    for index in new.indexes:
        if index.deferral:
            yield from _require_unique(work, new, index)
    transaction.define(new.key, new)
    transaction.define(source.key, None)
    transaction.note_rewritten(old.id, new.id)
    transaction.drop_trees(old.id, *(index.id for index in old.indexes))
    return count


def try_default(work: DdlPort, schema: str, column: Column) -> DdlSteps:
    """Raise the error of a row with the column's default, which refuses the new column."""
    transaction = work.transaction
    name = choose_relation_name(work, schema, (column.name,), "default")
    columns = (replace(column, nullable=True), row_id_column(schema))
    table = Table(transaction.next_tree(schema), name, columns, (1,), schema=schema)
    transaction.define(table.key, table)
    insert = ast.Insert(ast.TableRef(table.path), (), None)
    for _ in (yield from work.statements.run(insert, work.literals)):
        yield
    transaction.define(table.key, None)
    transaction.drop_trees(table.id)
    return 0


def _empty_rows(path: tuple[str, ...], name: str) -> ast.Query:
    """Return a query for as many rows as the old table has, without columns."""
    return ast.Query(ast.Select((), (ast.TableRef(path, name),)))


def _all_visible(table: Table, name: str) -> tuple[Table, str | None]:
    """Return the table under another name with all columns visible, and the name of its row id."""
    taken = set(table.positions)
    columns = []
    for column in table.columns:
        if column.hidden:
            shown_as = choose(("hidden",), column.name[:20], taken.__contains__)
            taken.add(shown_as)
            column = replace(column, name=shown_as, hidden=False)
        columns.append(column)
    row_id = columns[table.primary_key[0]].name if table.has_row_id else None
    shown = replace(
        table,
        name=name,
        columns=tuple(columns),
        primary_key_name="",  # the new table has the names of keys and indexes
        indexes=(),
    )
    return shown, row_id


def reshaped(
    table: Table,
    columns: Sequence[Column],
    moved: Callable[[int], int | None],
    *,
    keyless: bool = False,
) -> Table:
    """Return the definition with other columns; `moved` maps old positions to new ones, or None.

    An index on a removed column is removed. So is such a primary key; then, or with `keyless`, rows
    get a hidden row id.
    """
    indexes = []
    for index in table.indexes:
        positions = [moved(at) for at in index.columns]
        if None not in positions:
            indexes.append(replace(index, columns=tuple(positions)))  # type: ignore[arg-type]
    key = tuple(moved(at) for at in table.primary_key)
    if keyless or None in key:
        columns, key = (*columns, row_id_column(table.schema)), (len(columns),)
    first = key[0]
    assert first is not None
    key_name = "" if columns[first].hidden else table.primary_key_name
    return replace(
        table,
        columns=tuple(columns),
        primary_key=key,  # type: ignore[arg-type]
        primary_key_name=key_name,
        indexes=tuple(indexes),
    )


def row_id_column(schema: str) -> Column:
    """Return the hidden key of a table; those of temporary ones are numbers of the session."""
    sequence = TEMPORARY_ROW_IDS if schema == TEMPORARY else None
    return Column(ROW_ID, BIGINT, nullable=False, hidden=True, sequence=sequence)


def with_new_trees(work: DdlPort, table: Table) -> Table:
    """Return the same definition over new, empty trees."""
    indexes = tuple(
        replace(index, id=work.transaction.next_tree(table.schema)) for index in table.indexes
    )
    return replace(table, id=work.transaction.next_tree(table.schema), indexes=indexes)


# --- rows that stay in place ---------------------------------------------------------------------


def build_index(work: DdlPort, table: Table, index: Index) -> DdlSteps:
    """Fill the tree of a new index, and check that it is unique if required."""
    must_be_unique = index.unique or index.deferral
    if must_be_unique:
        work.require_read(table)
    entry_of, seen = table.entry_function(index), set[Key]()
    for many in work.transaction.scan_values(table.id):
        for at in range(0, len(many), ROWS_AT_ONCE):
            rows = many[at : at + ROWS_AT_ONCE]
            count_written(work, table.columns, index.columns, rows)
            entries = list(map(entry_of, rows))
            if must_be_unique:
                _require_new(table, index, rows, [key for key, _ in entries], seen)
            work.transaction.put_entries(index.id, dict(entries))
            yield
    return 0


def _require_new(
    table: Table, index: Index, rows: Sequence[Row], keys: Sequence[Key], seen: set[Key]
) -> None:
    """Refuse rows with a key that is among those seen, and add theirs."""
    for row, key in zip(rows, keys, strict=True):
        guarded = key if index.unique else _guarded(index, row, key)
        if guarded is not None:
            if guarded in seen:
                raise _duplicated(table, index, row)
            seen.add(guarded)


def _guarded(index: Index, row: Row, key: Key) -> Key | None:
    """Return what only one row may have, of a unique key that may wait; None for any number."""
    if not index.deferral or (
        index.nulls_distinct and any(row[at] is None for at in index.columns)
    ):
        return None
    return key[: len(index.columns)]


def _require_unique(work: DdlPort, table: Table, index: Index) -> DdlSteps:
    """Refuse duplicates among rows that were moved; a unique tree refuses them by itself."""
    entry_of, seen = table.entry_function(index), set[Key]()
    for rows in work.transaction.scan_values(table.id):
        _require_new(table, index, rows, [entry_of(row)[0] for row in rows], seen)
        yield
    return 0


def count_written(
    work: DdlPort, columns: Sequence[Column], written: Sequence[int], rows: Sequence[Row]
) -> None:
    """Count rows, or entries of an index, that have these columns."""
    sized = [at for at in written if is_sized(columns[at].type)]
    long_bytes = sum([size_of(row[at]) for row in rows for at in sized])
    work.statements.count_written(len(rows), len(written), long_bytes)


def _duplicated(table: Table, index: Index, row: tuple[object, ...]) -> UniqueViolation:
    return UniqueViolation(
        f'could not create unique index "{index.name}"',
        detail=f"Key {table.describe_key(index.columns, row)} is duplicated.",
        table=table.name,
        constraint=index.name,
    )


def require_no_null(work: DdlPort, table: Table, name: str) -> DdlSteps:
    work.require_read(table)
    at = table.position(name)
    for rows in work.transaction.scan_values(table.id):
        if any(row[at] is None for row in rows):
            raise contains_null(table, name)
        yield
    return 0


def contains_null(table: Table, column: str) -> NotNullViolation:
    return NotNullViolation(
        f'column "{column}" of relation "{table.name}" contains null values',
        table=table.name,
        column=column,
    )


def require_check(
    work: DdlPort,
    table: Table,
    name: str,
    condition: ast.Expression,
    literals: Sequence[Any] | None = None,
) -> DdlSteps:
    """Require that the condition is false for no row; `literals` are those of its stored text."""
    select = ast.Select(
        (ast.Target(ast.Constant(True)),),
        (ast.TableRef(table.path),),
        ast.Is(condition, "false", negated=False),
    )
    work.require_read(table)
    known = work.literals if literals is None else literals
    for page in (yield from work.statements.run(ast.Query(select), known)):
        if page:
            raise violated_by_a_row(table, name)
        yield
    return 0


def violated_by_a_row(table: Table, name: str) -> CheckViolation:
    return CheckViolation(
        f'check constraint "{name}" of relation "{table.name}" is violated by some row',
        table=table.name,
        constraint=name,
    )
