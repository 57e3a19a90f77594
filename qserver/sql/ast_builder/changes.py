"""INSERT, UPDATE, DELETE and MERGE."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from qserver.errors import FeatureNotSupported
from qserver.sql.ast import (
    Assignment,
    CurrentOf,
    Delete,
    Expression,
    Field,
    IndexItem,
    Insert,
    Merge,
    MergeWhen,
    Name,
    OnConflict,
    Subscript,
    TableRef,
    Update,
)
from qserver.sql.ast_builder.expressions import Children, as_list, as_tuple, indirect, parts
from qserver.sql.ast_builder.queries import With
from qserver.sql.terminals import Terminal

ColumnTarget = tuple[str, Any, int]
_DEFAULT_VALUES = "default values"


class Changes:
    """Methods for the rules under "changing data"."""

    insert_columns = as_list
    do_update = assignments = as_tuple

    def insert(self, children: Children) -> Insert:
        with_clause, word, table, columns, overriding, source, on_conflict, returning = children
        targets = [target for _, target, _ in columns or ()]
        return Insert(
            table,
            tuple([name for name, _, _ in columns or ()]),
            None if source == _DEFAULT_VALUES else source,
            overriding,
            on_conflict,
            returning or (),
            *_with(with_clause),
            targets=tuple(targets) if any(targets) else (),
            places=_places(columns),
            position=_start(with_clause, word),
        )

    def insert_target(self, children: Children) -> TableRef:
        name, alias = children
        return TableRef(parts(name), _value(alias), position=name[0].start)

    def insert_default(self, children: Children) -> str:
        return _DEFAULT_VALUES

    def overriding(self, children: Children) -> str:
        kind: str = children[1].value
        return kind

    def column_target(self, children: Children) -> ColumnTarget:
        """Return a column, with the assigned part if it is not the whole column."""
        name, *steps = children
        column = Name((name.value,), position=name.start)
        if not steps:
            return name.value, None, name.start
        first = replace(steps[0], operand=column, position=name.start)
        return name.value, indirect(first, steps[1:]), name.start

    # --- ON CONFLICT ------------------------------------------------------------------------------

    def on_conflict(self, children: Children) -> OnConflict:
        word, target, (assignments, where) = children
        columns, constraint, target_where = target or ((), None, None)
        return OnConflict(
            columns, constraint, target_where, assignments, where, position=word.start
        )

    def do_nothing(self, children: Children) -> tuple[tuple[()], None]:
        return (), None

    def conflict_target(self, children: Children) -> tuple[Any, ...]:
        items, where = children
        return tuple([_indexed(item) for item in items]), None, where

    def conflict_constraint(self, children: Children) -> tuple[Any, ...]:
        return (), children[1].value, None

    # --- UPDATE, DELETE ---------------------------------------------------------------------------

    def update(self, children: Children) -> Update:
        with_clause, word, table, assignments, sources, where, returning = children
        return Update(
            table,
            assignments,
            sources or (),
            where,
            returning or (),
            *_with(with_clause),
            position=_start(with_clause, word),
        )

    def delete(self, children: Children) -> Delete:
        with_clause, word, table, sources, where, returning = children
        return Delete(
            table,
            sources or (),
            where,
            returning or (),
            *_with(with_clause),
            position=_start(with_clause, word),
        )

    def current_of(self, children: Children) -> CurrentOf:
        word, cursor = children
        return CurrentOf(str(cursor.value), position=word.start)

    changed_table = insert_target

    def assignment(self, children: Children) -> Assignment:
        (column, target, start), expression = children
        assert target is None or isinstance(target, Subscript | Field)
        return Assignment((column,), expression, target, position=start)

    def assignment_row(self, children: Children) -> Assignment:
        columns, expression = children
        return Assignment(
            _plain_columns(columns), expression, places=_places(columns), position=columns[0][2]
        )

    # --- MERGE ------------------------------------------------------------------------------------

    def merge(self, children: Children) -> Merge:
        with_clause, word, table, source, condition, *whens = children
        return Merge(
            table,
            source,
            condition,
            tuple(whens),
            *_with(with_clause),
            position=_start(with_clause, word),
        )

    def merge_when(self, children: Children) -> MergeWhen:
        word, *negation, _, condition, action = children
        assert isinstance(action, MergeWhen)
        return replace(action, matched=not negation, condition=condition, position=word.start)

    def merge_update(self, children: Children) -> MergeWhen:
        return MergeWhen(True, None, "update", children[0])

    def merge_delete(self, children: Children) -> MergeWhen:
        return MergeWhen(True, None, "delete")

    def merge_nothing(self, children: Children) -> MergeWhen:
        return MergeWhen(True, None, "nothing")

    def merge_insert(self, children: Children) -> MergeWhen:
        columns, overriding, values = children
        return MergeWhen(
            False,
            None,
            "insert",
            columns=_plain_columns(columns),
            values=values,
            overriding=overriding,
            places=_places(columns),
        )

    def merge_default(self, children: Children) -> MergeWhen:
        return MergeWhen(False, None, "insert")


def _places(columns: list[ColumnTarget] | None) -> tuple[int, ...]:
    return tuple([start for _, _, start in columns or ()])


def _with(clause: With | None) -> tuple[Any, bool]:
    return ((), False) if clause is None else (clause.common_tables, clause.recursive)


def _start(clause: With | None, word: Terminal) -> int:
    return word.start if clause is None else clause.position


def _value(terminal: Terminal | None) -> str | None:
    return None if terminal is None else terminal.value


def _plain_columns(columns: list[ColumnTarget] | None) -> tuple[str, ...]:
    for _, target, start in columns or ():
        if target is not None:
            raise FeatureNotSupported("only a whole column can be named here", position=start + 1)
    return tuple([name for name, _, _ in columns or ()])


def _indexed(item: IndexItem) -> Expression:
    return item.expression
