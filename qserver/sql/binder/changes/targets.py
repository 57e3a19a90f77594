"""The table that a statement changes, its columns by name, and RETURNING."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from qserver.errors import (
    DuplicateColumn,
    FeatureNotSupported,
    GeneratedAlways,
    SqlSyntaxError,
    UndefinedColumn,
    WrongObjectType,
)
from qserver.sql import ast
from qserver.sql.binder.binding import Binding
from qserver.sql.binder.clauses import Clause
from qserver.sql.binder.expressions.coercion import settled
from qserver.sql.binder.expressions.operands import located
from qserver.sql.binder.names.relations import AnyRelation, relation_of_table, sources_of
from qserver.sql.binder.names.scope import Scope
from qserver.sql.binder.queries.outputs import bind_targets
from qserver.sql.binder.tables.sources import missing_table
from qserver.sql.binder.tables.table_expressions import checks_of, default_of
from qserver.sql.binder.tables.updatable_views import UpdatableView, bind_updatable, not_assignable
from qserver.sql.expressions import Expression
from qserver.sql.plan import CheckedExpression, OutputColumn, Returning
from qserver.values.schema import Column, Table


@dataclass(frozen=True, slots=True)
class Target:
    """A table to change, perhaps through a view; `name` is its name in the statement."""

    table: Table
    name: str
    view: UpdatableView | None = None
    aliased: bool = False

    @property
    def relation_name(self) -> str:
        return self.table.name if self.view is None else self.view.name

    def relation(self, source: int, name: str | None = None) -> AnyRelation:
        """Return the relation of the table's row `source`."""
        shown = name or self.name
        if self.view is not None:
            relation: AnyRelation = self.view.relation(shown, source)
        else:
            relation = relation_of_table(shown, source, self.table)
        return replace(relation, aliased=name is not None or self.aliased)

    def checks(
        self, binding: Binding, source: int, changed: frozenset[int] | None = None
    ) -> tuple[CheckedExpression, ...]:
        """Return the conditions of a new row: the table's CHECKs, then the view's CHECK OPTION."""
        of_table = checks_of(binding, self.table, source, changed)
        return of_table if self.view is None else of_table + self.view.checks_over(source)

    def default(self, binding: Binding, at: int, overriding: str | None) -> Expression:
        """Return the value of a column that an INSERT does not set: the view's, if it has one.

        A default of the view counts as a value that was given.
        """
        column = self.table.columns[at]
        text = None if self.view is None else self.view.defaults.get(at)
        if text is not None and not (overriding == "user" and column.identity):
            if overriding != "system":
                refuse_value(column, -1, inserting=True)
            column = replace(column, default=text, identity=None, sequence=None)
        return default_of(binding, column)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the columns of an INSERT without a column list."""
        return tuple(self.table.positions) if self.view is None else self.view.names

    def require(self, name: str, place: int) -> None:
        """Require a column of that name."""
        known = self.table.positions if self.view is None else self.view.names
        if name not in known:
            error = UndefinedColumn(
                f'column "{name}" of relation "{self.relation_name}" does not exist',
                table=self.relation_name,
                column=name,
            )
            raise located(error, place)

    def position(self, name: str, place: int, verb: str = "update") -> int:
        """Return the position of a column in the table's row."""
        self.require(name, place)
        if self.view is None:
            return self.table.positions[name]
        at = self.view.table_position(name)
        if at is None:
            raise located(not_assignable(verb, name, self.view.name), place)
        return at


def find_target(scope: Scope, node: ast.TableRef, verb: str) -> Target:
    """Return the target; `verb` is "insert into", "update", "delete from" or "merge into"."""
    catalog = scope.binding.catalog
    tables = scope.common_tables
    if len(node.name) == 1 and tables is not None and tables.find(node.name[0]) is not None:
        raise WrongObjectType(
            f'relation "{node.name[0]}" cannot be the target of a modifying statement',
            position=node.position + 1,
        )
    table = catalog.find_table(node.name)
    if table is not None:
        scope.binding.use_table(table)
        return Target(table, node.alias or table.name, aliased=node.alias is not None)
    view = catalog.find_view(node.name)
    if view is None:
        raise missing_table(node.name, node.position)
    if verb == "merge into":
        raise FeatureNotSupported(
            f'cannot execute MERGE on relation "{view.name}"',
            detail="This operation is not supported for views.",
            position=node.position + 1,
        )
    updatable = bind_updatable(scope, view, verb, node.position)
    named = node.alias is not None
    return Target(updatable.table, node.alias or view.name, updatable, aliased=named)


def refuse_twice(
    target: Target,
    names: Sequence[str],
    parts: Sequence[object | None],
    places: Sequence[int],
) -> None:
    """Refuse a list of columns that names one twice, other than parts of it, or none at all."""
    whole: dict[str, bool] = {}
    for n, name in enumerate(names):
        place = places[n] if places else -1
        target.require(name, place)
        part = parts[n] if parts else None
        if name in whole and (part is None or whole[name]):
            error = DuplicateColumn(f'column "{name}" specified more than once', column=name)
            raise located(error, place)
        whole[name] = part is None


def assigned_twice(column: Column, position: int) -> SqlSyntaxError:
    """Return the error for a column with two values; a view may show it under two names."""
    error = SqlSyntaxError(f'multiple assignments to same column "{column.name}"')
    located(error, position)
    return error


def refuse_value(column: Column, position: int, inserting: bool) -> None:
    """Refuse a value other than DEFAULT for a generated column or an identity GENERATED ALWAYS."""
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
    scope: Scope, targets: Sequence[ast.Target], relations: tuple[AnyRelation, ...]
) -> Returning | None:
    if not targets:
        return None
    inner = scope.inside().with_relations(relations)
    for relation in relations:
        inner.level.sources |= sources_of(relation)
    outputs = bind_targets(inner, targets, Clause.RETURNING)
    expressions = tuple([settled(scope.binding, output.operand) for output in outputs])
    columns = tuple(
        [
            OutputColumn(output.name, each.type, each.nullable)
            for output, each in zip(outputs, expressions, strict=True)
        ]
    )
    return Returning(expressions, columns)
