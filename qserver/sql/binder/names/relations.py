"""Relations: the named items of FROM, as maps from column names to expressions.

    FROM t AS x             x: every column of one source
    FROM a JOIN b USING (k) no name: k once, then the others of a and of b
    (…) AS j                a join with an alias

A relation is visible by its name (`x.a`), and by its columns alone (`a`). Joins separate the two:
after USING columns are visible through the join, but `x.k` still means the side's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from qserver.sql.expressions import Cast, Coalesce, Column, Expression
from qserver.sql.walk import sources_named
from qserver.values.numbering import row_type_oid
from qserver.values.relations import View
from qserver.values.schema import Table
from qserver.values.types import BOOLEAN, SqlType

AMBIGUOUS = -1

Path = tuple[str, str]
"""Schema and name of a table or view, under which `s.t.a` names it unless it is `aliased`."""


class Field(Protocol):
    """A column of a table or of a query."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> SqlType: ...
    @property
    def nullable(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Relation:
    """The columns of one source. `name` is "" if it has none."""

    name: str
    source: int
    fields: Sequence[Field]
    names: Sequence[str]
    positions: Mapping[str, int]
    nullable: bool = False
    by_name: bool = True
    by_column: bool = True
    table: Table | None = None
    path: Path | None = None
    aliased: bool = False
    marked: bool = False
    """Whether a last column, which is not visible, is true in each row that is there."""
    scalar: bool = False
    """Whether its row is the value of its only column: a function that returns such values."""
    row_oid: int = 0
    """The oid of the type of its rows, if that has a name."""

    @property
    def row_names(self) -> Sequence[str]:
        """Return the names of the fields of its row: a type with a name knows no column aliases."""
        named = self.path is not None or self.row_oid
        return [field.name for field in self.fields] if named else self.names

    def expression(self, at: int) -> Expression:
        """Return the column at a position: a new object, which identifies its place in the text."""
        field = self.fields[at]
        name = f"{self.name}.{self.names[at]}" if self.name else self.names[at]
        return Column(self.source, at, field.type, self.nullable or field.nullable, name)

    def as_nullable(self) -> Relation:
        """Return the relation on the nullable side of an outer join."""
        return replace(self, nullable=True)

    def seen(self, by_name: bool, by_column: bool) -> Relation:
        return replace(self, by_name=by_name, by_column=by_column)


@dataclass(frozen=True, slots=True)
class JoinedRelation:
    """The columns of a join; some belong to both sides at once."""

    name: str
    names: Sequence[str]
    expressions: Sequence[Expression]
    positions: Mapping[str, int]
    by_name: bool = False
    by_column: bool = True
    table: Table | None = None
    path: Path | None = None
    aliased: bool = False
    nullable: bool = False
    key: Expression | None = None
    """What is not NULL in a row that is there."""

    @property
    def row_oid(self) -> int:
        return 0

    @property
    def row_names(self) -> Sequence[str]:
        return self.names

    def expression(self, at: int) -> Expression:
        return _copied(self.expressions[at], False)

    def as_nullable(self) -> JoinedRelation:
        expressions = [_copied(each, True) for each in self.expressions]
        return replace(self, expressions=expressions, nullable=True)

    def seen(self, by_name: bool, by_column: bool) -> JoinedRelation:
        return replace(self, by_name=by_name, by_column=by_column)


AnyRelation = Relation | JoinedRelation
Named = TypeVar("Named", Relation, JoinedRelation)


def sources_of(relation: AnyRelation) -> frozenset[int]:
    """Return the sources whose columns the relation shows."""
    if isinstance(relation, Relation):
        return frozenset({relation.source})
    return frozenset[int]().union(*map(sources_named, relation.expressions))


def _copied(expression: Expression, nullable: bool) -> Expression:
    """Copy a joined column: a column, a cast of one, or a COALESCE of two."""
    match expression:
        case Column():
            return Column(
                expression.source,
                expression.position,
                expression.type,
                nullable or expression.nullable,
                expression.name,
            )
        case Cast():
            return replace(expression, operand=_copied(expression.operand, nullable))
        case Coalesce():
            operands = tuple([_copied(each, nullable) for each in expression.operands])
            return Coalesce(operands, expression.type)
        case _:
            return expression  # a view's column; views are not joined


def positions_of(names: Sequence[str]) -> dict[str, int]:
    """Map names to positions; AMBIGUOUS for a name of two columns."""
    positions: dict[str, int] = {}
    for at, name in enumerate(names):
        positions[name] = AMBIGUOUS if name in positions else at
    return positions


def key_of_row(relation: AnyRelation) -> Expression | None:
    """Return a column that no row has NULL in: one that is there can be told."""
    if isinstance(relation, JoinedRelation):
        return None if relation.key is None else _copied(relation.key, True)
    if relation.table is not None:
        at = relation.table.primary_key[0]
        sql_type = relation.table.columns[at].type
    elif relation.marked:
        at, sql_type = len(relation.fields), BOOLEAN
    else:
        return None
    return Column(relation.source, at, sql_type, True, f"{relation.name}.*")


def relation_of_table(name: str, source: int, table: Table) -> Relation:
    """Return the relation of a table's visible columns; hidden ones are the last."""
    fields = table.columns[: len(table.positions)]
    names = [field.name for field in fields]
    path = table.schema, table.name
    oid = row_type_oid(table)
    return Relation(
        name, source, fields, names, table.positions, table=table, path=path, row_oid=oid
    )


def relation_of_query(
    name: str, source: int, fields: Sequence[Field], view: View | None = None
) -> Relation:
    """Return the relation of a query, which may be that of a view."""
    names = [field.name for field in fields]
    made = Relation(name, source, fields, names, positions_of(names))
    if view is None:
        return made
    return replace(made, path=(view.schema, view.name), row_oid=row_type_oid(view))


def renamed(relation: Named, name: str, column_names: Sequence[str]) -> Named:
    """Return the relation with an alias, and with other names for the first columns."""
    names = (*column_names, *relation.names[len(column_names) :])
    positions = positions_of(names) if column_names else relation.positions
    return replace(relation, name=name, names=names, positions=positions, aliased=True)
