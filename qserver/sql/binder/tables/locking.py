"""FOR UPDATE, FOR SHARE and similar clauses: where they are allowed.

There are no locks. What a transaction reads does not change before it commits, or it is retried. So
FOR UPDATE keeps its promise, and NOWAIT too, because nobody waits for a row. SKIP LOCKED would
return other rows, so it is refused, and so is what PostgreSQL refuses: a row of the result must be
a row of each locked table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from qserver.errors import FeatureNotSupported, QserverError, SqlSyntaxError, UndefinedTable
from qserver.sql import ast
from qserver.sql.binder.expressions.operands import located
from qserver.sql.binder.names.scope import Scope

Lockings = tuple[ast.Locking, ...]


def check_locking(query: ast.Query) -> None:
    """Check everything that does not depend on names."""
    for each in query.locking:
        if each.wait == "skip locked":
            raise FeatureNotSupported(
                "SKIP LOCKED is not supported",
                hint="Rows are not locked here: a transaction that meets another is run again.",
                position=each.position + 1,
            )
        if isinstance(query.body, ast.SetOperation):
            raise not_with_set_operations(each)
        if isinstance(query.body, ast.Values) and not each.inherited:
            raise FeatureNotSupported(f"{each.words} cannot be applied to VALUES")


def not_with_set_operations(locking: ast.Locking) -> QserverError:
    return FeatureNotSupported(f"{locking.words} is not allowed with UNION/INTERSECT/EXCEPT")


def locked_sources(
    sources: tuple[ast.FromItem, ...], locking: Lockings
) -> tuple[ast.FromItem, ...]:
    """Pass the locking clauses on to subqueries and views."""
    if not locking:
        return sources
    return tuple([_handed_on(item, locking) for item in sources])


def _handed_on(item: ast.FromItem, locking: Lockings) -> ast.FromItem:
    if isinstance(item, ast.Join):
        left, right = _handed_on(item.left, locking), _handed_on(item.right, locking)
        return replace(item, left=left, right=right)
    name = _name(item)
    own = tuple(
        [
            replace(each, tables=(), inherited=True)
            for each in locking
            if not each.tables or (name,) in each.tables
        ]
    )
    if not own:
        return item
    if isinstance(item, ast.SubqueryRef):
        return replace(item, query=replace(item.query, locking=(*item.query.locking, *own)))
    return replace(item, locking=own) if isinstance(item, ast.TableRef) else item


def check_locked_select(scope: Scope, select: ast.Select, locking: Lockings) -> None:
    """Check that the rows of a bound query are rows of its tables."""
    for each in locking:
        reason = _reason(scope, select)
        if reason is not None:
            raise FeatureNotSupported(f"{each.words} is not allowed with {reason}")
        for table in each.tables:
            _check_named(scope, select.sources, each, table)
        _check_nullable(scope, select.sources, each)


def _reason(scope: Scope, select: ast.Select) -> str | None:
    """Return PostgreSQL's word for the first clause, in its order, that prevents locking."""
    level = scope.level
    reasons = (
        (select.distinct or select.distinct_on, "DISTINCT clause"),
        (select.group_by, "GROUP BY clause"),
        (select.having is not None, "HAVING clause"),
        (level.calls or level.groupings, "aggregate functions"),
        (level.windows, "window functions"),
        (level.row_functions, "set-returning functions in the target list"),
    )
    return next((reason for found, reason in reasons if found), None)


def _check_named(
    scope: Scope,
    sources: Sequence[ast.FromItem],
    locking: ast.Locking,
    table: tuple[str, ...],
) -> None:
    words = locking.words
    if len(table) > 1:
        raise located(
            SqlSyntaxError(f"{words} must specify unqualified relation names"), locking.position
        )
    found = [item for item, _ in _items(sources, named=True) if _name(item) == table[0]]
    if not found:
        raise located(
            UndefinedTable(f'relation "{table[0]}" in {words} clause not found in FROM clause'),
            locking.position,
        )
    what = "a join" if isinstance(found[0], ast.Join) else None
    if isinstance(found[0], ast.FunctionRef | ast.RowsFrom):
        what = "a function"
    if _is_common_table(scope, found[0]):
        what = "a WITH query"
    if what is not None:
        raise located(FeatureNotSupported(f"{words} cannot be applied to {what}"), locking.position)


def _check_nullable(scope: Scope, sources: Sequence[ast.FromItem], locking: ast.Locking) -> None:
    for item, nullable in _items(sources, named=False):
        is_function = isinstance(item, ast.FunctionRef | ast.RowsFrom)
        if not nullable or is_function or _is_common_table(scope, item):
            continue
        if not locking.tables or (_name(item),) in locking.tables:
            raise FeatureNotSupported(
                f"{locking.words} cannot be applied to the nullable side of an outer join"
            )


def _is_common_table(scope: Scope, item: ast.FromItem) -> bool:
    if not isinstance(item, ast.TableRef) or scope.common_tables is None:
        return False
    return len(item.name) == 1 and scope.common_tables.find(item.name[0]) is not None


def _items(sources: Sequence[ast.FromItem], *, named: bool) -> Iterator[tuple[ast.FromItem, bool]]:
    """Yield the items of FROM, each with whether an outer join may lack its row.

    `named`: yield nameable items only, so a join with an alias hides its sides.
    """
    waiting = [(item, False) for item in reversed(sources)]
    while waiting:
        item, nullable = waiting.pop()
        if not isinstance(item, ast.Join) or (named and item.alias is not None):
            yield item, nullable
            continue
        waiting.append((item.right, nullable or item.kind in ("left", "full")))
        waiting.append((item.left, nullable or item.kind in ("right", "full")))


def _name(item: ast.FromItem) -> str | None:
    if item.alias is not None:
        return item.alias
    if isinstance(item, ast.TableRef):
        return item.name[-1]
    if isinstance(item, ast.RowsFrom):
        item = item.functions[0]
    return item.call.name[-1] if isinstance(item, ast.FunctionRef) else None
