"""Binds FROM: joins, the relations they make visible, and the effect of USING and NATURAL.

    a JOIN b ON …             both sides, with all their columns
    a JOIN b USING (k)        k once, then the rest of a and of b; a.k and b.k can still be named
    a LEFT JOIN b …           b's columns may be NULL from here on
    (a JOIN b …) AS j         only j

The k of USING is the left one; of a RIGHT JOIN the right one; of a FULL JOIN the first that is not
NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qserver.errors import (
    AmbiguousColumn,
    DuplicateColumn,
    InvalidColumnReference,
    QserverError,
    UndefinedColumn,
)
from qserver.sql import ast
from qserver.sql.binder.clauses import Clause
from qserver.sql.binder.expressions.coercion import condition, implicit, shared_type
from qserver.sql.binder.expressions.operands import located
from qserver.sql.binder.expressions.rows import compare, conjunction
from qserver.sql.binder.names.relations import (
    AMBIGUOUS,
    AnyRelation,
    JoinedRelation,
    key_of_row,
    positions_of,
)
from qserver.sql.binder.names.scope import Scope, leftmost
from qserver.sql.binder.tables.sources import Sources, bind_item, check_names
from qserver.sql.expressions import Coalesce, Expression
from qserver.sql.plan import Join, OneRow, Plan
from qserver.sql.walk import free_columns, free_sources, output_sources


def bind_from(scope: Scope, items: Sequence[ast.FromItem]) -> tuple[Plan, Scope]:
    """Bind FROM; return its plan and the scope for the rest of the query.

    Items separated by commas are joined without a condition.
    """
    if not items:
        return OneRow(), scope
    joined: Sources | None = None
    for item in items:
        left = () if joined is None else joined.relations
        sources = bind_sources(scope.with_relations(left), item)
        if joined is None:
            joined = sources
            continue
        check_names(left, sources.relations, item.position)
        lateral = _is_lateral(item, joined.plan, sources.plan)
        plan: Plan = Join("inner", joined.plan, sources.plan, None, lateral=lateral)
        joined = Sources(plan, (*left, *sources.relations))
    assert joined is not None
    return joined.plan, scope.with_relations(joined.relations)


def bind_sources(scope: Scope, item: ast.FromItem) -> Sources:
    """Bind an item or a join. `scope` has the relations to its left, for lateral items.

    Joins lean to the left, as deep as there are tables: hence the loop.
    """
    chain: list[ast.Join] = []
    while isinstance(item, ast.Join):
        chain.append(item)
        item = item.left
    left = bind_item(scope, item)
    for join in reversed(chain):
        visible = (*scope.relations, *left.relations)
        scope.binding.enter()
        right = bind_sources(scope.with_relations(visible), join.right)
        scope.binding.leave()
        left = _joined(scope, join, left, right)
    return left


def _is_lateral(item: ast.FromItem, left: Plan, right: Plan) -> bool:
    if isinstance(item, ast.TableRef):
        return False
    return not free_sources(right).isdisjoint(output_sources(left))


def _joined(scope: Scope, join: ast.Join, left: Sources, right: Sources) -> Sources:
    check_names(left.relations, right.relations, join.right.position)
    merged: list[_Merged] = []
    on: Expression | None = None
    if join.using or join.natural:
        merged = _merge(scope, join, left, right)
        if merged:
            on = conjunction([each.equal for each in merged])
    elif join.condition is not None:
        inner = scope.with_relations((*left.relations, *right.relations))
        operand = inner.bind_in(Clause.ON, join.condition)
        on = condition(scope.binding, operand, "JOIN/ON", leftmost(join.condition))
    kind = "inner" if join.kind == "cross" else join.kind
    lateral = _is_lateral(join.right, left.plan, right.plan)
    if lateral and kind in ("right", "full"):
        raise _wrong_way(scope, left, right)
    plan = Join(kind, left.plan, right.plan, on, lateral=lateral)
    left_relations, right_relations = left.relations, right.relations
    if kind in ("right", "full"):
        left_relations = tuple([each.as_nullable() for each in left_relations])
    if kind in ("left", "full"):
        right_relations = tuple([each.as_nullable() for each in right_relations])
    return Sources(plan, _visible(scope, join, kind, merged, left_relations, right_relations))


def _wrong_way(scope: Scope, left: Sources, right: Sources) -> QserverError:
    """Return the error for a RIGHT or FULL JOIN whose right side depends on the left."""
    sources = output_sources(left.plan)
    column = next(each for each in free_columns(right.plan) if each.source in sources)
    table = column.name.partition(".")[0]
    error = InvalidColumnReference(
        f'invalid reference to FROM-clause entry for table "{table}"',
        detail="The combining JOIN type must be INNER or LEFT for a LATERAL reference.",
    )
    return located(error, scope.binding.position_of(column))


# --- USING and NATURAL ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Merged:
    """A column of USING in both sides; `equal` is the condition on it."""

    name: str
    left: tuple[int, int]
    right: tuple[int, int]
    equal: Expression


def _merge(scope: Scope, join: ast.Join, left: Sources, right: Sources) -> list[_Merged]:
    names = join.using or _common_names(left, right)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DuplicateColumn(
            f'column name "{twice}" appears more than once in USING clause',
            position=join.position + 1,
        )
    merged: list[_Merged] = []
    for name in names:
        one = _find(left.relations, name, "left", join.position)
        other = _find(right.relations, name, "right", join.position)
        equal = compare(
            scope.binding,
            "=",
            left.relations[one[0]].expression(one[1]),
            right.relations[other[0]].expression(other[1]),
            join.position,
        )
        merged.append(_Merged(name, one, other, equal))
    return merged


def _common_names(left: Sources, right: Sources) -> tuple[str, ...]:
    """Return the names in both sides, in the order of the left."""
    others = {name for relation in right.relations if relation.by_column for name in relation.names}
    names = [
        name
        for relation in left.relations
        if relation.by_column
        for name in relation.names
        if name in others
    ]
    return tuple(dict.fromkeys(names))


def _find(relations: Sequence[AnyRelation], name: str, side: str, position: int) -> tuple[int, int]:
    found: tuple[int, int] | None = None
    for which, relation in enumerate(relations):
        at = relation.positions.get(name) if relation.by_column else None
        if at is None:
            continue
        if found is not None or at == AMBIGUOUS:
            raise AmbiguousColumn(
                f'common column name "{name}" appears more than once in {side} table',
                position=position + 1,
            )
        found = which, at
    if found is None:
        raise UndefinedColumn(
            f'column "{name}" specified in USING clause does not exist in {side} table',
            position=position + 1,
            column=name,
        )
    return found


def _visible(
    scope: Scope,
    join: ast.Join,
    kind: str,
    merged: Sequence[_Merged],
    left: tuple[AnyRelation, ...],
    right: tuple[AnyRelation, ...],
) -> tuple[AnyRelation, ...]:
    if not merged and join.alias is None:
        return (*left, *right)
    names: list[str] = []
    expressions: list[Expression] = []
    for each in merged:
        names.append(each.name)
        one = left[each.left[0]].expression(each.left[1])
        other = right[each.right[0]].expression(each.right[1])
        expressions.append(_merged_column(scope, kind, one, other, join.position))
    for side, taken in ((left, {m.left for m in merged}), (right, {m.right for m in merged})):
        for which, relation in enumerate(side):
            if relation.by_column:
                for at, name in enumerate(relation.names):
                    if (which, at) not in taken:
                        names.append(name)
                        expressions.append(relation.expression(at))
    if join.alias is not None:
        given = join.column_aliases
        if len(given) > len(names):
            raise InvalidColumnReference(
                f'join expression "{join.alias}" has {len(names)} columns available but '
                f"{len(given)} columns specified",
                position=join.position + 1,
            )
        names = [*given, *names[len(given) :]]
        kept = {"inner": (*left, *right), "left": left, "right": right}.get(kind, ())
        keys = [key_of_row(each) for each in kept]
        key = next((each for each in keys if each is not None), None)
        relation = JoinedRelation(join.alias, names, expressions, positions_of(names), key=key)
        return (relation.seen(True, True),)
    visible: list[AnyRelation] = [each.seen(each.by_name, False) for each in (*left, *right)]
    visible.append(JoinedRelation("", names, expressions, positions_of(names)))
    if join.using_alias is not None:
        shared = names[: len(merged)]
        relation = JoinedRelation(join.using_alias, shared, expressions, positions_of(shared))
        named = relation.seen(True, False)
        check_names(visible, (named,), join.position)
        visible.append(named)
    return tuple(visible)


def _merged_column(
    scope: Scope, kind: str, left: Expression, right: Expression, position: int
) -> Expression:
    shared = shared_type([left.type, right.type], "JOIN/USING", [position, position])
    one, other = (implicit(scope.binding, each, shared, position) for each in (left, right))
    if kind == "full":
        return Coalesce((one, other), shared)
    if kind == "right":
        return other
    if kind == "inner" and one is not left and other is right:
        return other
    return one
