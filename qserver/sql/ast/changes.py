"""Statements that change data: INSERT, UPDATE, DELETE, MERGE."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from qserver.sql.ast.expressions import Node

if TYPE_CHECKING:
    from qserver.sql.ast.expressions import Expression, Field, Subscript
    from qserver.sql.ast.queries import CommonTable, FromItem, Query, TableRef, Target


@dataclass(frozen=True, slots=True)
class Assignment(Node):
    """`column = expression`, or `(a, b) = (…)` with several columns and a Row or ScalarQuery."""

    columns: tuple[str, ...]
    expression: Expression
    target: Subscript | Field | None = None  # for `a[1] = …`, a part of the column
    places: tuple[int, ...] = field(default=(), compare=False)  # positions of several columns


@dataclass(frozen=True, slots=True)
class OnConflict(Node):
    columns: tuple[Expression, ...] = ()
    constraint: str | None = None
    where: Expression | None = None
    assignments: tuple[Assignment, ...] = ()  # none: DO NOTHING
    assignments_where: Expression | None = None


@dataclass(frozen=True, slots=True)
class Insert(Node):
    table: TableRef
    columns: tuple[str, ...]
    source: Query | None  # None: DEFAULT VALUES
    overriding: str | None = None  # "system", "user"
    on_conflict: OnConflict | None = None
    returning: tuple[Target, ...] = ()
    common_tables: tuple[CommonTable, ...] = ()
    recursive: bool = False
    targets: tuple[Subscript | Field | None, ...] = ()
    """The assigned parts, one per column: `INSERT INTO t (a[1])`. None for a whole column; empty if
    every column is whole."""
    places: tuple[int, ...] = field(default=(), compare=False)
    """The positions of `columns` in the text."""


@dataclass(frozen=True, slots=True)
class CurrentOf(Node):
    """`WHERE CURRENT OF cursor`: the row on which a cursor stands."""

    cursor: str


@dataclass(frozen=True, slots=True)
class Update(Node):
    table: TableRef
    assignments: tuple[Assignment, ...]
    sources: tuple[FromItem, ...] = ()
    where: Expression | CurrentOf | None = None
    returning: tuple[Target, ...] = ()
    common_tables: tuple[CommonTable, ...] = ()
    recursive: bool = False


@dataclass(frozen=True, slots=True)
class Delete(Node):
    table: TableRef
    sources: tuple[FromItem, ...] = ()
    where: Expression | CurrentOf | None = None
    returning: tuple[Target, ...] = ()
    common_tables: tuple[CommonTable, ...] = ()
    recursive: bool = False


@dataclass(frozen=True, slots=True)
class MergeWhen(Node):
    """action: "update", "insert", "delete", "nothing"."""

    matched: bool
    condition: Expression | None
    action: str
    assignments: tuple[Assignment, ...] = ()
    columns: tuple[str, ...] = ()
    values: tuple[Expression, ...] = ()  # of "insert"; empty: DEFAULT VALUES
    overriding: str | None = None
    places: tuple[int, ...] = field(default=(), compare=False)  # positions of `columns`


@dataclass(frozen=True, slots=True)
class Merge(Node):
    table: TableRef
    source: FromItem
    condition: Expression
    whens: tuple[MergeWhen, ...]
    common_tables: tuple[CommonTable, ...] = ()
    recursive: bool = False
