"""WHERE CURRENT OF: the row on which a cursor stands, found by its key.

    DECLARE c CURSOR FOR SELECT b FROM t       ──► SELECT b, and the key of t behind it
    UPDATE t SET … WHERE CURRENT OF c          ──► WHERE key = that of the row that c gave last

PostgreSQL keeps the place of a row. A key says the same as long as no row takes the key of another.
A table without a primary key has a hidden one, which rows keep for life.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from qserver.errors import FeatureNotSupported
from qserver.functions.all_functions import AGGREGATES, TABLE_FUNCTIONS
from qserver.functions.registry import Function
from qserver.sql import ast
from qserver.sql.binder.binding import Binding
from qserver.sql.binder.changes.targets import Target
from qserver.sql.binder.expressions.calling import operator
from qserver.sql.binder.expressions.rows import conjunction
from qserver.sql.binder.tables.updatable_views import why_not_updatable
from qserver.sql.expressions import Apply, Column, Expression
from qserver.sql.ports import CatalogPort
from qserver.values.schema import Table


def is_current(binding: Binding, target: Target, old: int, node: ast.CurrentOf) -> Expression:
    """Return the condition that a row of the table is the one on which the cursor stands."""
    if target.view is not None:
        raise FeatureNotSupported(
            "WHERE CURRENT OF on a view is not implemented",
            hint="Name the table of the view, and declare the cursor over that.",
            position=node.position + 1,
        )
    parts = [
        operator(binding, "=", Column(old, column, about.type, False, about.name), key, -1)
        for at, column in enumerate(target.table.primary_key)
        for about in (target.table.columns[column],)
        for key in (_key_part(target.table, node.cursor, at),)
    ]
    return conjunction(parts)


def _key_part(table: Table, cursor: str, at: int) -> Expression:
    def part(context: Any) -> Any:
        return context.key_of_cursor(cursor, table)[at]

    type_ = table.columns[table.primary_key[at]].type
    return Apply(Function("current_of", (), type_, part, needs_context=True), (), type_, False)


def with_row_key(query: ast.Query, names: CatalogPort) -> tuple[ast.Query, Table] | None:
    """Return the query of a cursor with the key of its rows behind them; None if it reads others
    than the rows of one table."""
    if why_not_updatable(replace(query, limit=None, offset=None)) is not None:
        return None
    body = query.body
    assert isinstance(body, ast.Select)
    (item,) = body.sources
    assert isinstance(item, ast.TableRef)
    table = names.find_table(item.name)
    if table is None or not table.has_tree:
        return None
    if any(_is_of_rows(call) for call in _calls((body.targets, query.order_by))):
        return None
    keys = [ast.Target(ast.KeyColumn(at)) for at in range(len(table.primary_key))]
    return replace(query, body=replace(body, targets=(*body.targets, *keys))), table


def _calls(node: Any) -> Iterator[ast.Call]:
    """Yield the calls of a query, not those of queries inside of it."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tuple):
            waiting.extend(node)
        elif is_dataclass(node) and not isinstance(node, ast.Query):
            if isinstance(node, ast.Call):
                yield node
            waiting.extend(getattr(node, each.name) for each in fields(node))


def _is_of_rows(call: ast.Call) -> bool:
    """Tell whether a call stands for several rows, or gives several."""
    name = call.name[-1]
    return call.over is not None or name in AGGREGATES or name in TABLE_FUNCTIONS
