"""Writes out the columns that a star stands for, so that they can take its place in the text."""

from __future__ import annotations

from collections.abc import Sequence

from qserver.sql.binder.names.relations import AnyRelation, JoinedRelation, Relation
from qserver.sql.binder.names.scope import Scope
from qserver.sql.expressions import Column
from qserver.values.identifiers import quoted


def written_out(scope: Scope, relations: Sequence[AnyRelation]) -> str:
    return ", ".join(
        _column(scope, relation, at) for relation in relations for at in range(len(relation.names))
    )


def _column(scope: Scope, relation: AnyRelation, at: int) -> str:
    """Return `"t"."a"`; a column that both sides of a join share has no table in front."""
    name = relation.names[at]
    shown = relation
    if isinstance(relation, JoinedRelation) and not relation.name:
        column = relation.expressions[at]
        side = _side(scope, column) if isinstance(column, Column) else None
        if side is not None and isinstance(column, Column):
            shown, name = side, side.names[column.position]
    return ".".join(map(quoted, (*_owner(scope, shown), name)))


def _owner(scope: Scope, relation: AnyRelation) -> tuple[str, ...]:
    """Return the name of a relation, with its schema if another one has the same name."""
    if not relation.name:
        return ()
    alike = [each for each in scope.relations if each.by_name and each.name == relation.name]
    return (relation.name,) if len(alike) < 2 or relation.path is None else relation.path


def _side(scope: Scope, column: Column) -> Relation | None:
    """Return the table of a join that a column belongs to, if its name is visible."""
    for each in scope.relations:
        if isinstance(each, Relation) and each.by_name and each.source == column.source:
            return each
    return None
