"""The entry point: binds a statement's AST.

Expressions of definitions (DEFAULT, CHECK, indexes) are bound with the statement that needs them,
see `table_expressions`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from qserver.errors import StatementError
from qserver.sql import ast
from qserver.sql.binder.binding import Binding, RowsNeedMarks, too_deep
from qserver.sql.binder.changes.insert import bind_insert
from qserver.sql.binder.changes.merge import bind_merge
from qserver.sql.binder.changes.update import bind_delete, bind_update
from qserver.sql.binder.expressions.coercion import unreadable
from qserver.sql.binder.expressions.expressions import EXPRESSION_BINDERS
from qserver.sql.binder.expressions.literals import Literals
from qserver.sql.binder.names.scope import Scope, outermost
from qserver.sql.binder.queries.queries import prepare_query
from qserver.sql.binder.tables.table_expressions import shown_expression
from qserver.sql.expressions import Expression
from qserver.sql.plan import Change, CommonTable, Select
from qserver.sql.ports import CatalogPort
from qserver.sql.step_budget import StepBudget
from qserver.values.relations import View
from qserver.values.schema import Table
from qserver.values.types import SqlType

Parameters = Mapping[int | str, SqlType | None]


def _nothing_suggested(_: int | str) -> None:
    """No values are given."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound statement and its dependencies.

    `in_fingerprint`: the literals whose values the plan depends on. `tables`: the tables used; a
    change of their definitions invalidates the plan. `views`: the expanded views, for the same
    reason. `parameters`: their declared or inferred types; `undecided` are those whose type only
    their value decided. `unused`: CTEs that nothing names.
    """

    statement: Select | Change
    in_fingerprint: frozenset[int]
    tables: tuple[Table, ...]
    parameters: Mapping[int | str, SqlType]
    views: tuple[View, ...] = ()
    undecided: frozenset[int | str] = frozenset()
    unused: tuple[CommonTable, ...] = ()


def bind(
    statement: ast.Statement,
    literals: Literals,
    catalog: CatalogPort,
    parameters: Parameters | None = None,
    suggested: Callable[[int | str], SqlType | None] = _nothing_suggested,
    budget: StepBudget | None = None,
    stars: dict[int, str] | None = None,
    marks_rows: bool = False,
    schemas: dict[int, str] | None = None,
) -> Bound:
    """Bind a statement. Without `parameters` their types are inferred; with them, a type of None is
    inferred, and a missing one is an error. `suggested` tells the types of given values, for
    parameters whose type the statement does not determine. `stars` gets the columns that stars
    stand for, and `schemas` those of relations, see `Binding`."""
    binding = Binding(
        catalog,
        parameters,
        EXPRESSION_BINDERS,
        prepare_query,
        _bind_change,
        suggested,
        budget,
        stars,
        marks_rows,
        schemas,
    )
    scope = outermost(binding, literals)
    try:
        bound = _bind_statement(scope, statement)
    except RowsNeedMarks:
        asked = statement, literals, catalog, parameters, suggested, budget, stars
        return bind(*asked, True, schemas)
    except RecursionError:
        raise too_deep() from None
    except StatementError as error:
        raise unreadable(binding, literals) or error from None
    return Bound(
        bound,
        literals.in_fingerprint,
        tuple(binding.tables.values()),
        dict(binding.inferred),
        tuple(binding.views.values()),
        frozenset(binding.undecided),
        tuple(binding.unused),
    )


def _bind_statement(scope: Scope, statement: ast.Statement) -> Select | Change:
    scope.binding.top_tables = getattr(statement, "common_tables", ())
    if isinstance(statement, ast.Query):
        query = prepare_query(scope, statement).finish()
        return Select(query.plan, query.source, query.columns)
    if isinstance(statement, ast.Merge):
        return bind_merge(scope, statement)
    if isinstance(statement, ast.Insert | ast.Update | ast.Delete):
        return _bind_change(scope, statement)
    raise AssertionError(f"{type(statement).__name__} is not for the binder")


def _bind_change(scope: Scope, statement: ast.Insert | ast.Update | ast.Delete) -> Change:
    match statement:
        case ast.Insert():
            return bind_insert(scope, statement)
        case ast.Update():
            return bind_update(scope, statement)
        case ast.Delete():
            return bind_delete(scope, statement)


def bind_expression(
    text: str, table: Table, catalog: CatalogPort, wanted: SqlType | None
) -> Expression:
    """Bind an expression of a table's definition, as it is to be shown."""
    binding = Binding(
        catalog, {}, EXPRESSION_BINDERS, prepare_query, _bind_change, _nothing_suggested
    )
    return shown_expression(binding, text, table, wanted)
