"""The table that a statement changes, its columns by name, and RETURNING."""

from __future__ import annotations

from collections.abc import Sequence

from qserver.errors import (
    GeneratedAlways,
    NotInPrerequisiteState,
    UndefinedColumn,
    WrongObjectType,
)
from qserver.sql import syntax
from qserver.sql.binder.clauses import Clause
from qserver.sql.binder.coercion import settled
from qserver.sql.binder.outputs import bind_targets
from qserver.sql.binder.relations import AnyRelation
from qserver.sql.binder.scope import Scope
from qserver.sql.binder.sources import missing_table
from qserver.sql.plan import OutputColumn, Returning
from qserver.values.schema import Column, Table


def find_target(scope: Scope, node: syntax.TableRef, verb: str) -> Table:
    """The table to be changed; `verb` is "insert into", "update" or "delete from"."""
    catalog = scope.binding.catalog
    tables = scope.common_tables
    if len(node.name) == 1 and tables is not None and tables.find(node.name[0]) is not None:
        raise WrongObjectType(
            f'relation "{node.name[0]}" cannot be the target of a modifying statement',
            position=node.position + 1,
        )
    table = catalog.find_table(node.name)
    if table is None:
        if catalog.find_view(node.name) is not None:
            raise NotInPrerequisiteState(
                f'cannot {verb} view "{node.name[-1]}"', position=node.position + 1
            )
        raise missing_table(node.name, node.position)
    scope.binding.use_table(table)
    return table


def position_of(table: Table, name: str, position: int) -> int:
    """Where the column of that name is."""
    at = table.positions.get(name)
    if at is None:
        raise UndefinedColumn(
            f'column "{name}" of relation "{table.name}" does not exist',
            position=position + 1,
            table=table.name,
            column=name,
        )
    return at


def refuse_value(column: Column, position: int, inserting: bool) -> None:
    """Generated columns, and identities that are always generated, take no value but DEFAULT."""
    if column.generated is not None:
        detail, hint = f'Column "{column.name}" is a generated column.', None
    elif column.identity == "always":
        detail = f'Column "{column.name}" is an identity column defined as GENERATED ALWAYS.'
        hint = "Use OVERRIDING SYSTEM VALUE to override." if inserting else None
    else:
        return
    message = f'cannot insert a non-DEFAULT value into column "{column.name}"'
    if not inserting:
        message = f'column "{column.name}" can only be updated to DEFAULT'
    raise GeneratedAlways(
        message, detail=detail, hint=hint, position=position + 1, column=column.name
    )


def bind_returning(
    scope: Scope, targets: Sequence[syntax.Target], relations: tuple[AnyRelation, ...]
) -> Returning | None:
    """RETURNING over the given relations."""
    if not targets:
        return None
    inner = scope.inside().with_relations(relations)
    outputs = bind_targets(inner, targets, Clause.RETURNING)
    expressions = tuple([settled(scope.binding, output.operand) for output in outputs])
    columns = tuple(
        [
            OutputColumn(output.name, each.type, each.nullable)
            for output, each in zip(outputs, expressions, strict=True)
        ]
    )
    return Returning(expressions, columns)
