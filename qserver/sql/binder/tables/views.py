"""Views: expands a view to its query, like a subquery in parentheses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from qserver.errors import InvalidRecursion, QserverError, UndefinedColumn
from qserver.sql import ast
from qserver.sql.binder.expressions.parsed import parsed_query
from qserver.sql.binder.expressions.prepared import Finished
from qserver.sql.binder.expressions.subqueries import column_at
from qserver.sql.binder.names.scope import Scope, outermost
from qserver.sql.plan import OutputColumn, Project
from qserver.values.relations import View


def bind_view(scope: Scope, view: View, locking: tuple[ast.Locking, ...] = ()) -> Finished:
    """Bind the view's query, with the columns that the view was created with."""
    binding = scope.binding
    if view.key in binding.views_open:
        raise InvalidRecursion(f'infinite recursion detected in rules for relation "{view.name}"')
    binding.views[view.key] = view
    binding.views_open.append(view.key)
    query, literals = parsed_query(view.text, binding.budget)
    if locking:
        query = replace(query, locking=(*query.locking, *locking))
    try:
        with binding.in_definition():
            finished = binding.prepare_query(outermost(binding, literals), query).finish()
    except QserverError as error:
        error.position = None  # a position in the view's text
        raise
    binding.views_open.pop()
    picked = picked_columns(view, [column.name for column in finished.columns])
    columns = tuple(
        [
            OutputColumn(name, finished.columns[at].type, finished.columns[at].nullable)
            for (name, _), at in zip(view.columns, picked, strict=True)
        ]
    )
    if picked == list(range(len(finished.columns))):
        return Finished(finished.plan, finished.source, columns)
    source = binding.new_source()
    expressions = tuple([column_at(finished, at) for at in picked])
    return Finished(Project(finished.plan, source, expressions, columns), source, columns)


def picked_columns(view: View, names: Sequence[str]) -> list[int]:
    """Return the positions of the view's columns in the query: by name, each once, in order."""
    if tuple(names) == view.output:
        return list(range(len(names)))
    picked: list[int] = []
    for name in view.output:
        at = next(
            (n for n, each in enumerate(names) if each == name and n not in picked),
            None,
        )
        if at is None:
            raise UndefinedColumn(f'column "{name}" of view "{view.name}" does not exist')
        picked.append(at)
    return picked
