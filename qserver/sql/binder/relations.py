"""Relations: what stands in FROM under a name, seen as names that lead to expressions.

    FROM t AS x             x: every column of one source
    FROM a JOIN b USING (k) no name: k once, then the others of a and of b
    (…) AS j                a join that was given a name of its own

A relation can be visible in two ways that part company in joins: by its name (`x.a`), and by its
columns alone (`a`). After USING the columns of both sides are reached through the join, but
`x.k` still means the side's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from qserver.sql.expressions import Cast, Coalesce, Column, Expression
from qserver.values.schema import Table
from qserver.values.types import SqlType

AMBIGUOUS = -1


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
    """The columns of one source. `name` is "" where it has none."""

    name: str
    source: int
    fields: Sequence[Field]
    names: Sequence[str]
    positions: Mapping[str, int]
    nullable: bool = False
    by_name: bool = True
    by_column: bool = True
    table: Table | None = None
    schema_named: bool = False
    """Is it a table under its own name, so that `public.t.a` means it?"""

    def expression(self, at: int) -> Expression:
        """What the column at that place is. A new object each time: its place in the text is
        remembered by it."""
        field = self.fields[at]
        name = f"{self.name}.{self.names[at]}" if self.name else self.names[at]
        return Column(self.source, at, field.type, self.nullable or field.nullable, name)

    def as_nullable(self) -> Relation:
        """The same on the side of an outer join that may be missing."""
        return replace(self, nullable=True)

    def seen(self, by_name: bool, by_column: bool) -> Relation:
        return replace(self, by_name=by_name, by_column=by_column)


@dataclass(frozen=True, slots=True)
class JoinedRelation:
    """The columns of a join, of which some are those of both sides at once."""

    name: str
    names: Sequence[str]
    expressions: Sequence[Expression]
    positions: Mapping[str, int]
    by_name: bool = False
    by_column: bool = True
    table: Table | None = None
    schema_named: bool = False

    def expression(self, at: int) -> Expression:
        return _copied(self.expressions[at], False)

    def as_nullable(self) -> JoinedRelation:
        return replace(self, expressions=[_copied(each, True) for each in self.expressions])

    def seen(self, by_name: bool, by_column: bool) -> JoinedRelation:
        return replace(self, by_name=by_name, by_column=by_column)


AnyRelation = Relation | JoinedRelation
Named = TypeVar("Named", Relation, JoinedRelation)


def _copied(expression: Expression, nullable: bool) -> Expression:
    """A copy of a joined column: a column, a cast of one, or the first of two."""
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
            return expression  # a view's, which stands alone: nothing is joined to it


def positions_of(names: Sequence[str]) -> dict[str, int]:
    """Where each name is; AMBIGUOUS for a name that two columns have."""
    positions: dict[str, int] = {}
    for at, name in enumerate(names):
        positions[name] = AMBIGUOUS if name in positions else at
    return positions


def relation_of_table(name: str, source: int, table: Table, schema_named: bool = True) -> Relation:
    """A table's visible columns; hidden ones, if any, are the last."""
    fields = table.columns[: len(table.positions)]
    names = [field.name for field in fields]
    return Relation(
        name, source, fields, names, table.positions, table=table, schema_named=schema_named
    )


def relation_of_query(name: str, source: int, fields: Sequence[Field]) -> Relation:
    names = [field.name for field in fields]
    return Relation(name, source, fields, names, positions_of(names))


def renamed(relation: Named, name: str, column_names: Sequence[str]) -> Named:
    """With an alias, and with other names for the first columns."""
    names = (*column_names, *relation.names[len(column_names) :])
    positions = positions_of(names) if column_names else relation.positions
    return replace(relation, name=name, names=names, positions=positions, schema_named=False)
