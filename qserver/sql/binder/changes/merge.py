"""MERGE: joins rows of a source to those of a table, and binds the actions.

    MERGE INTO t USING s ON t.k = s.k
    WHEN MATCHED AND s.gone THEN DELETE            over t and s
    WHEN NOT MATCHED THEN INSERT VALUES (s.k)      over s alone

The plan is a left join from the source to the table. A stored key is never NULL, so a NULL key
means that the row is unmatched. The first action whose condition holds is taken.
"""

from __future__ import annotations

from qserver.errors import QserverError, SqlSyntaxError
from qserver.sql import ast
from qserver.sql.binder.changes.targets import Target, find_target, refuse_twice, refuse_value
from qserver.sql.binder.changes.update import bind_assignments, whole_row
from qserver.sql.binder.clauses import Clause
from qserver.sql.binder.expressions.coercion import assigned, condition
from qserver.sql.binder.names.scope import Scope, leftmost
from qserver.sql.binder.tables.common_tables import with_common_tables, with_tables
from qserver.sql.binder.tables.joins import bind_from
from qserver.sql.binder.tables.sources import check_names, scan_table
from qserver.sql.binder.tables.table_expressions import (
    default_of,
    generated_values,
    has_generated,
)
from qserver.sql.expressions import Expression
from qserver.sql.plan import Join, Merge, MergeAction


def bind_merge(around: Scope, node: ast.Merge) -> Merge:
    outer = with_common_tables(around, node.common_tables, node.recursive)
    target = find_target(outer, node.table, "merge into")
    _check_order(node)
    inner = outer.inside()
    scan, relation = scan_table(inner, target.table, node.table)
    inner.level.sources.add(relation.source)
    source, without = bind_from(inner, (node.source,))
    check_names((relation,), without.relations, node.source.position)
    inner.level.entries.append(relation)
    both = inner.with_relations((relation, *without.relations))
    matched = condition(
        outer.binding,
        both.bind_in(Clause.ON, node.condition),
        "JOIN/ON",
        leftmost(node.condition),
    )
    plan = Join("left", source, scan, matched)
    new = outer.binding.new_source()
    actions = tuple(
        [
            _action(both if when.matched else without, target, relation.source, new, when)
            for when in node.whens
        ]
    )
    merged = plan if outer is around else with_tables(outer, plan)
    return Merge(target.table, merged, relation.source, new, actions)


def _check_order(node: ast.Merge) -> None:
    """Refuse an action after one without a condition: it is unreachable."""
    final: set[bool] = set()
    for when in node.whens:
        if when.matched in final:
            raise SqlSyntaxError(
                "unreachable WHEN clause specified after unconditional WHEN clause",
                position=when.position + 1,
            )
        if when.condition is None:
            final.add(when.matched)


def _action(scope: Scope, target: Target, old: int, new: int, when: ast.MergeWhen) -> MergeAction:
    binding, table = scope.binding, target.table
    chosen = None
    if when.condition is not None:
        operand = scope.bind_in(Clause.MERGE_WHEN, when.condition)
        chosen = condition(binding, operand, "WHEN", leftmost(when.condition))
    if when.action not in ("update", "insert"):
        return MergeAction(when.matched, when.action, chosen)
    changed: frozenset[int] | None = None
    if when.action == "update":
        given = bind_assignments(scope, target, old, when.assignments)
        values = whole_row(table, old, given)
        changed = frozenset(given)
    else:
        values = _inserted(scope, target, when)
    if has_generated(table):
        values = generated_values(binding, table, values)
        changed = None
    checks = target.checks(binding, new, changed)
    return MergeAction(when.matched, when.action, chosen, values, checks)


def _inserted(scope: Scope, target: Target, when: ast.MergeWhen) -> tuple[Expression, ...]:
    table, names = target.table, when.columns or target.names
    stand = when.places or (when.position,) * len(names)
    positions = [
        target.position(name, at, "insert into") for name, at in zip(names, stand, strict=True)
    ]
    refuse_twice(target, names, (), stand)
    if len(when.values) > len(positions):
        raise _counts("INSERT has more expressions than target columns", when)
    if when.columns and when.values and len(when.values) < len(positions):
        raise _counts("INSERT has more target columns than expressions", when)
    given: dict[int, Expression] = {}
    for at, node in zip(positions, when.values, strict=False):
        column = table.columns[at]
        if isinstance(node, ast.Default) or (when.overriding == "user" and column.identity):
            continue
        if not (when.overriding == "system" and column.identity):
            refuse_value(column, leftmost(node), inserting=True)
        operand = scope.bind_in(Clause.VALUES, node)
        given[at] = assigned(scope.binding, operand, column.type, column.name, leftmost(node))
    return tuple(
        [
            given[at] if at in given else default_of(scope.binding, column)
            for at, column in enumerate(table.columns)
        ]
    )


def _counts(message: str, when: ast.MergeWhen) -> QserverError:
    return SqlSyntaxError(message, position=leftmost(when.values[-1]) + 1)
