"""CREATE TABLE … (LIKE other INCLUDING …): copies the columns of another table.

Columns are copied with their types and NOT NULL. Defaults, generated expressions, checks, indexes,
identity and comments are copied only if INCLUDING names them.
"""

from __future__ import annotations

from collections.abc import Generator
from collections.abc import Sequence as Several
from dataclasses import dataclass, replace

from qserver.errors import WrongObjectType
from qserver.sql import ast
from qserver.sql.ddl.columns import sequence_for
from qserver.sql.ddl.constraints import with_index_like
from qserver.sql.ddl.names import find_relation
from qserver.sql.ddl.port import DdlPort
from qserver.values.constraints import Check
from qserver.values.relations import Sequence, View
from qserver.values.schema import Column, Index, Table

PARTS = ("defaults", "constraints", "identity", "generated", "indexes", "comments")


@dataclass(frozen=True, slots=True)
class Likeness:
    """The parts copied from another table."""

    columns: tuple[Column, ...]
    checks: tuple[Check, ...] = ()
    primary_key: tuple[str, ...] = ()
    indexes: tuple[tuple[Index, tuple[str, ...]], ...] = ()
    comments: tuple[tuple[str, str], ...] = ()


def likeness(work: DdlPort, schema: str, table: str, node: ast.TableLike) -> Likeness:
    other = find_relation(work, node.name)
    if isinstance(other, View):
        return Likeness(tuple(Column(name, sql_type) for name, sql_type in other.columns))
    if isinstance(other, Sequence):
        raise WrongObjectType(
            f'relation "{other.name}" is invalid in LIKE clause',
            detail="This operation is not supported for sequences.",
        )
    wanted = _wanted(node.options)
    columns = tuple(
        _column(work, (schema, table), column, wanted)
        for column in other.columns
        if not column.hidden
    )
    with_indexes = "indexes" in wanted
    return Likeness(
        columns,
        other.checks if "constraints" in wanted else (),
        _names(other, other.primary_key) if with_indexes and not other.has_row_id else (),
        tuple(
            (index, _names(other, index.columns))
            for index in other.indexes
            if not any(other.columns[at].hidden for at in index.columns)
        )
        if with_indexes
        else (),
        tuple(pair for pair in other.comments if pair[0].startswith("column "))
        if "comments" in wanted
        else (),
    )


def _wanted(options: Several[str]) -> set[str]:
    wanted: set[str] = set()
    for option in options:
        what, part = option.split(" ", 1)
        parts = PARTS if part == "all" else (part,)
        if what == "including":
            wanted.update(parts)
        else:
            wanted.difference_update(parts)
    return wanted


def _column(work: DdlPort, place: tuple[str, str], column: Column, wanted: set[str]) -> Column:
    taken = Column(column.name, column.type, column.nullable, collation=column.collation)
    if "defaults" in wanted and column.default is not None:
        taken = replace(taken, default=column.default, sequence=column.sequence)
    if "generated" in wanted and column.generated is not None:
        taken = replace(taken, generated=column.generated)
    if "identity" in wanted and column.identity is not None:
        sequence = sequence_for(work, *place, taken.name, taken.type)
        taken = replace(taken, identity=column.identity, sequence=sequence.key)
    return taken


def _names(table: Table, positions: Several[int]) -> tuple[str, ...]:
    return tuple(table.columns[at].name for at in positions)


def with_likeness(work: DdlPort, table: Table, taken: Likeness) -> Generator[None, None, Table]:
    """Add the rest of the copied parts to a table that has the columns already."""
    table = replace(
        table,
        checks=(*table.checks, *taken.checks),
        comments=(*table.comments, *taken.comments),
    )
    for index, columns in taken.indexes:
        table = with_index_like(work, table, index, columns)
        yield
    return table
