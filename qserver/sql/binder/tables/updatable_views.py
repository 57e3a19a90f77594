"""Updatable views: those that only select rows and columns of one table.

    CREATE VIEW v AS SELECT a AS x, b + 1 AS y FROM t WHERE b > 0
    UPDATE v SET x = 1 WHERE y = 2      ──►     UPDATE t SET a = 1 WHERE b > 0 AND b + 1 = 2

A change of such a view is a change of its table. Each of the view's columns is an expression over
the table's row, and a plain column can be assigned to.

WITH CHECK OPTION requires that the view shows a new row: LOCAL by its own condition, CASCADED by
those of the views below as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from qserver.errors import FeatureNotSupported, NotInPrerequisiteState, QserverError
from qserver.sql import ast
from qserver.sql.binder.clauses import Clause
from qserver.sql.binder.expressions.coercion import condition, settled
from qserver.sql.binder.expressions.parsed import parsed_query
from qserver.sql.binder.expressions.rows import conjunction
from qserver.sql.binder.names.relations import (
    AnyRelation,
    JoinedRelation,
    Path,
    positions_of,
    relation_of_table,
    renamed,
)
from qserver.sql.binder.names.scope import Scope, outermost
from qserver.sql.binder.queries.outputs import bind_targets
from qserver.sql.binder.tables.views import picked_columns
from qserver.sql.expressions import Column, Expression, IsTruth
from qserver.sql.plan import CheckedExpression
from qserver.sql.walk import substituted
from qserver.values.relations import View
from qserver.values.schema import Table


@dataclass(frozen=True, slots=True)
class UpdatableView:
    """The view's columns by name, as expressions over `source`, the row of `table`."""

    path: Path
    table: Table
    source: int
    names: tuple[str, ...]
    expressions: tuple[Expression, ...]
    condition: Expression | None
    checks: tuple[tuple[str, Expression], ...] = ()
    """The conditions of WITH CHECK OPTION on a new row, by view, innermost first."""
    defaults: Mapping[int, str] = field(default_factory=dict)
    """The texts of DEFAULT that it and the views below have, by the table's columns."""
    own_defaults: Mapping[int, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.path[1]

    def relation(self, name: str, source: int) -> JoinedRelation:
        """Return the view's relation over another row of the table."""
        expressions = [self._over(source, each) for each in self.expressions]
        positions = positions_of(self.names)
        return JoinedRelation(
            name, self.names, expressions, positions, by_name=True, path=self.path
        )

    def condition_over(self, source: int) -> Expression | None:
        return None if self.condition is None else self._over(source, self.condition)

    def checks_over(self, source: int) -> tuple[CheckedExpression, ...]:
        """Return the checks over a row; NULL fails, too."""
        return tuple(
            [
                CheckedExpression(name, IsTruth(self._over(source, each), truth=True), of_view=True)
                for name, each in self.checks
            ]
        )

    def table_position(self, name: str) -> int | None:
        """Return the position of the table's column that a column of the view is, if it is one."""
        expression = self.expressions[self.names.index(name)]
        if isinstance(expression, Column) and expression.source == self.source:
            return expression.position
        return None

    def _over(self, source: int, expression: Expression) -> Expression:
        replacements: dict[tuple[int, int], Expression] = {
            (self.source, at): Column(source, at, column.type, column.nullable, column.name)
            for at, column in enumerate(self.table.columns)
        }
        result: Expression = substituted(expression, replacements)
        return result


def bind_updatable(
    scope: Scope, view: View, verb: str, position: int, *, cascaded: bool = False
) -> UpdatableView:
    """Bind a view as the target of a change, or raise the reason why it is not updatable.

    `cascaded`: a view above requires this view's condition, too.
    """
    with scope.binding.in_definition():
        return _bind_updatable(scope, view, verb, position, cascaded)


def _bind_updatable(
    scope: Scope, view: View, verb: str, position: int, cascaded: bool
) -> UpdatableView:
    query, literals = parsed_query(view.text, scope.binding.budget)
    body = query.body
    reason = why_not_updatable(query)
    if reason is not None:
        raise _refusal(view, verb, reason, position)
    assert isinstance(body, ast.Select)
    (item,) = body.sources
    assert isinstance(item, ast.TableRef)
    binding = scope.binding
    binding.views[view.key] = view
    inner = outermost(binding, literals)
    cascades = cascaded or view.check_option == "cascaded"
    base = _base(inner, item, verb, position, cascades)
    if base is None:
        raise _refusal(view, verb, _SINGLE, position)
    relation, table, source, below, checks, defaults = base
    inner = inner.with_relations((relation,))
    outputs = bind_targets(inner, body.targets, Clause.TARGETS)
    level = inner.level
    for found, what in (
        (level.calls, "aggregate functions"),
        (level.windows, "window functions"),
        (level.row_functions, "set-returning functions"),
    ):
        if found:
            reason = f"Views that return {what} are not automatically updatable."
            raise _refusal(view, verb, reason, position)
    picked = picked_columns(view, [output.name for output in outputs])
    where = [] if below is None else [below]
    if body.where is not None:
        own = condition(binding, inner.bind_in(Clause.WHERE, body.where), "WHERE", -1)
        where.append(own)
        if view.check_option or cascaded:
            checks = (*checks, (view.name, own))
    names = tuple([name for name, _ in view.columns])
    expressions = tuple([settled(binding, outputs[at].operand) for at in picked])
    own_defaults = _own_defaults(view, names, expressions, verb)
    return UpdatableView(
        (view.schema, view.name),
        table,
        source,
        names,
        expressions,
        conjunction(where) if where else None,
        checks,
        defaults | own_defaults,
        own_defaults,
    )


def _own_defaults(
    view: View, names: Sequence[str], expressions: Sequence[Expression], verb: str
) -> dict[int, str]:
    """Return the view's own defaults; one of a computed column leaves no INSERT possible."""
    found: dict[int, str] = {}
    for name, text, _ in view.defaults:
        expression = expressions[names.index(name)]
        if isinstance(expression, Column):
            found[expression.position] = text
        elif verb == "insert into":
            raise not_assignable(verb, name, view.name)
    return found


def not_assignable(verb: str, column: str, view: str) -> FeatureNotSupported:
    return FeatureNotSupported(
        f'cannot {verb} column "{column}" of view "{view}"',
        detail="View columns that are not columns of their base relation are not updatable.",
    )


Base = tuple[
    AnyRelation,
    Table,
    int,
    Expression | None,
    tuple[tuple[str, Expression], ...],
    dict[int, str],
]


def _base(
    scope: Scope, item: ast.TableRef, verb: str, position: int, cascades: bool
) -> Base | None:
    """Bind what the view selects from: a table, or another updatable view."""
    binding = scope.binding
    if item.sample is not None:
        return None
    table = binding.catalog.find_table(item.name)
    if table is not None:
        binding.use_table(table)
        source = binding.new_source()
        relation = relation_of_table(table.name, source, table)
        if item.alias is not None:
            relation = renamed(relation, item.alias, item.column_aliases)
        return relation, table, source, None, (), {}
    view = binding.catalog.find_view(item.name)
    if view is None:
        return None
    below = bind_updatable(scope, view, verb, position, cascaded=cascades)
    shown = below.relation(view.name, below.source)
    if item.alias is not None:
        shown = renamed(shown, item.alias, item.column_aliases)
    defaults = dict(below.defaults)
    return shown, below.table, below.source, below.condition, below.checks, defaults


# --- errors --------------------------------------------------------------------------------------

_SINGLE = "Views that do not select from a single table or view are not automatically updatable."


def why_not_updatable(query: ast.Query) -> str | None:
    """Return the clause that makes a query not updatable, in PostgreSQL's words."""
    body = query.body
    if query.common_tables:
        what = "WITH"
    elif query.limit is not None or query.offset is not None:
        what = "LIMIT or OFFSET"
    elif isinstance(body, ast.SetOperation):
        what = "UNION, INTERSECT, or EXCEPT"
    elif not isinstance(body, ast.Select):
        return _SINGLE
    elif body.distinct or body.distinct_on:
        what = "DISTINCT"
    elif body.group_by:
        what = "GROUP BY"
    elif body.having is not None:
        what = "HAVING"
    elif len(body.sources) != 1 or not isinstance(body.sources[0], ast.TableRef):
        return _SINGLE
    else:
        return None
    return f"Views containing {what} are not automatically updatable."


_HINTS = {
    "insert into": ("inserting into", "INSERT"),
    "update": ("updating", "UPDATE"),
    "delete from": ("deleting from", "DELETE"),
}


def _refusal(view: View, verb: str, reason: str, position: int) -> QserverError:
    doing, event = _HINTS[verb]
    return NotInPrerequisiteState(
        f'cannot {verb} view "{view.name}"',
        detail=reason,
        hint=f"To enable {doing} the view, provide an INSTEAD OF {event} trigger "
        f"or an unconditional ON {event} DO INSTEAD rule.",
        position=position + 1,
    )
