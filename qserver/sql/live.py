"""Decides how a query is kept live: from the rows that changed, or by running it again.

A query that only filters and projects one table is *linear*: the difference of its results is its
result on the difference of its tables. So it runs on the changed rows alone, as they were and as
they are. Order does not matter, because a live result is a multiset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qserver.errors import FeatureNotSupported
from qserver.functions.datetime.moments import MomentReader, is_moment_word
from qserver.sql import expressions, plan
from qserver.sql.plan import Change, Scan, Select
from qserver.sql.walk import everything, is_plan

_USER_NAMES = frozenset({"current_user", "session_user", "current_role", "user"})


def check_live(statement: Select | Change, slots: Mapping[Any, Any] | Sequence[Any] = ()) -> None:
    """Raise if the statement is no query, or depends on more than tables.

    `slots` has the literals and parameters: DATE 'today' is the current time.
    """
    if not isinstance(statement, Select):
        raise FeatureNotSupported("only a query can be live")
    for node in everything(statement):
        if type(node) is Scan and node.table.id < 0:
            raise FeatureNotSupported(
                f'a live query cannot read "{node.table.name}": it shows what is defined'
            )
        name = _beside_tables(node, slots)
        if name is not None:
            raise FeatureNotSupported(
                f"a live query cannot depend on {name}",
                detail="Its result would change without a change of any table.",
                hint="Pass the value as a parameter.",
            )


def _beside_tables(node: Any, slots: Mapping[Any, Any] | Sequence[Any]) -> str | None:
    """Return what an expression depends on besides tables."""
    if type(node) is expressions.Apply:
        function = node.function
        if function.volatile or (function.needs_context and function.name not in _USER_NAMES):
            return "the current time" if function.name == "moment" else f"{function.name}()"
    if type(node) is plan.FunctionScan and node.function.needs_context:
        return f"{node.function.name}()"
    kind = type(node)
    if kind in (expressions.Slot, expressions.Slots) and isinstance(node.convert, MomentReader):
        names = node.names if kind is expressions.Slots else (node.name,)
        given = [slots[name] for name in names] if slots else []
        if any(isinstance(each, str) and is_moment_word(each) for each in given):
            return "the current time"
    return None


def linear_scan(statement: Select | Change) -> Scan | None:
    """Return the only scan of a linear query; None for any other."""
    if not isinstance(statement, Select):
        return None
    node: object = statement.plan
    plans = 1
    while isinstance(node, plan.Project | plan.Filter | plan.Sort):
        node, plans = node.input, plans + 1
    if not isinstance(node, Scan) or sum(map(is_plan, everything(statement))) != plans:
        return None
    return node


def explain_live(statement: Select | Change, slots: Mapping[Any, Any] | Sequence[Any]) -> str:
    """Return how the query is kept live, as a line of EXPLAIN; raise if it cannot be."""
    check_live(statement, slots)
    if linear_scan(statement) is not None:
        return "Live: looks at changed rows only"
    return "Live: runs again, and compares the results"
