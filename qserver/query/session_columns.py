"""The columns of statements that have no plan, without running them."""

from __future__ import annotations

from qserver.query.explaining import columns_of_explain
from qserver.query.named_statements import statement_named
from qserver.query.plan_cache import CachedPlan
from qserver.query.session import Session, portal_named
from qserver.query.session_statements import columns_of_show
from qserver.sql import ast
from qserver.values.types import TEXT, SqlType


def columns_of_other(
    session: Session, statement: ast.Statement
) -> tuple[tuple[str, ...], tuple[SqlType, ...]] | None:
    """Return names and types of the columns; None if the statement gives no rows."""
    match statement:
        case ast.Explain():
            return columns_of_explain(statement)
        case ast.Show():
            names = columns_of_show(statement)
            return names, (TEXT,) * len(names)
        case ast.Execute():
            plan = statement_named(session, statement.name).found
            if isinstance(plan, CachedPlan) and (plan.columns or not plan.writes):
                return plan.columns, plan.types
        case ast.Fetch(moves=False):
            portal = portal_named(session, statement.name)
            return portal.columns, portal.types
    return None
