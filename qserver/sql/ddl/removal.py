"""Removes a column from a table, with the constraints and indexes that use it."""

from __future__ import annotations

from collections.abc import Collection, Generator
from dataclasses import replace
from typing import Any

from qserver.sql.ddl.dependencies import (
    Dependent,
    default_dependent,
    dependents,
    drop_definition,
    foreign_key_dependent,
    owned_sequences,
    require_no_dependents,
    view_dependent,
    with_hanging,
)
from qserver.sql.ddl.names import choose
from qserver.sql.ddl.port import DdlPort, DdlSteps
from qserver.sql.ddl.rewrite import name_of, reshaped, rewrite, with_new_trees
from qserver.sql.ddl.texts import mentions
from qserver.sql.ddl.view_texts import is_unharmed, views_using, without_alias
from qserver.values.relations import View
from qserver.values.schema import Table


def drop_column_of(work: DdlPort, table: Table, name: str, cascade: bool = True) -> DdlSteps:
    """Drop a column and what the table itself derives from it; other dependents need CASCADE."""
    dependent = [
        at
        for at, column in enumerate(table.columns)
        if column.generated is not None and column.name != name and mentions(column.generated, name)
    ]
    shown = [table.columns[at].name for at in dependent if not table.columns[at].hidden]
    what = f"column {name} of table {table.name}"
    own = [Dependent(f"column {each} of table {table.name}", _nothing) for each in shown]
    outside = with_hanging(work, (yield from _outside(work, table, name)))
    itself = default_dependent(table, table.column(name)).text
    for each in (*shown, name):
        for sequence in owned_sequences(work, table.key, each):
            outside += [one for one in dependents(work, sequence, ()) if one.text != itself]
    require_no_dependents(work, what, own + outside, cascade, table.name)
    now = work.table_now(table.key)
    yield from without_columns(work, now, {table.position(name), *dependent})
    for each in reversed([each for each in table.positions if each in (name, *shown)]):
        for view in views_using(work, table.key):
            work.transaction.define(view.key, without_alias(work, view, table, each, None))
    for each in (*shown, name):
        for sequence in owned_sequences(work, table.key, each):
            drop_definition(work, sequence.key)
    return 0


def _nothing(work: DdlPort) -> None:
    """The rewrite without the column removes it."""


def _outside(work: DdlPort, table: Table, name: str) -> Generator[Any, Any, list[Dependent]]:
    """Return the views that use the column, and the foreign keys that refer to it."""
    found = []
    for other in work.transaction.catalog.definitions():
        if isinstance(other, View):
            uses = table.key in other.uses
            if uses and (yield from needs_column(work, other, table, name)):
                found.append(view_dependent(other))
        elif isinstance(other, Table):
            found += [
                foreign_key_dependent(other, key.name)
                for key in other.foreign_keys
                if key.table == table.key and name in key.referenced and name not in key.columns
            ]
    return found


def needs_column(work: DdlPort, view: View, table: Table, name: str) -> Generator[Any, Any, bool]:
    """Tell whether the view would change without the column, by trying it."""
    gone = table.position(name)
    other_name = choose((name,), "gone", table.positions.__contains__)
    hidden = replace(table.columns[gone], name=other_name)
    columns = (*table.columns[:gone], hidden, *table.columns[gone + 1 :])
    work.transaction.define(table.key, replace(table, columns=columns, checks=()))
    work.transaction.define(view.key, without_alias(work, view, table, name, other_name))
    needed = not (yield from is_unharmed(work, view))
    work.transaction.define(view.key, view)
    work.transaction.define(table.key, table)
    return needed


def without_columns(work: DdlPort, table: Table, gone: Collection[int]) -> DdlSteps:
    """Rewrite the table without some columns and the constraints that use them."""
    names = {table.columns[at].name for at in gone if not table.columns[at].hidden}
    columns = [column for at, column in enumerate(table.columns) if at not in gone]

    def moved(at: int) -> int | None:
        return None if at in gone else at - sum(other < at for other in gone)

    bare = replace(
        table,
        checks=tuple(check for check in table.checks if names.isdisjoint(check.columns)),
        foreign_keys=tuple(
            key
            for key in table.foreign_keys
            if names.isdisjoint(key.columns)
            and not (key.table == table.key and not names.isdisjoint(key.referenced))
        ),
        comments=tuple(
            pair for pair in table.comments if pair[0].removeprefix("column ") not in names
        ),
    )
    new = reshaped(bare, columns, moved)
    kept = [
        (column.name, name_of(column.name))
        for column in columns
        if not column.hidden and column.generated is None
    ]
    yield from rewrite(work, table, with_new_trees(work, new), kept)
    return 0


def unused_hidden_columns(table: Table) -> set[int]:
    used = {at for index in table.indexes for at in index.columns}
    return {
        at
        for at, column in enumerate(table.columns)
        if column.hidden and column.generated is not None and at not in used
    }
