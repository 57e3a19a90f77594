"""Order preservation: rows without ORDER BY have the order that users expect.

Tables are read in the order of their keys; for a table without a primary key that is the insertion
order. A LIMIT ends its scans early, so they read page by page, and get the number of wanted rows if
it is known.

Rows of a query with windows leave it in the order of the window that was defined first, as in
PostgreSQL.
"""

from __future__ import annotations

from dataclasses import replace

from qserver.sql import plan
from qserver.sql.expressions import Expression, SortKey, WindowCall
from qserver.sql.optimizer.sort_elimination import below_projections
from qserver.sql.plan import Plan
from qserver.sql.statistics import Statistics
from qserver.sql.walk import may_substitute, substituted, tree_rebuilt


def order_preservation(node: Plan, statistics: Statistics) -> Plan:
    node = _windows_sorted(node)

    def change(each: Plan) -> Plan:
        if not isinstance(each, plan.Limit) or each.with_ties:
            return each
        return _with_hint(replace(each, input=_partial(each.input)))

    return tree_rebuilt(node, change)


def _partial(node: Plan) -> Plan:
    """Make the scans below read page by page, as far as the LIMIT can end them early."""
    match node:
        case plan.Scan():
            if node.access.range.choices:
                return node
            return replace(node, access=replace(node.access, partial=True))
        case plan.Join():
            return replace(node, left=_partial(node.left), right=_partial(node.right))
        case plan.Project() | plan.Filter() | plan.Limit() | plan.Distinct():
            return replace(node, input=_partial(node.input))
        case plan.Aggregate(in_order=True):
            return replace(node, input=_partial(node.input))
        case plan.SetOperation():
            return replace(node, left=_partial(node.left), right=_partial(node.right))
        case _:
            return node


def _with_hint(node: plan.Limit) -> Plan:
    """Tell a scan directly below LIMIT how many rows are wanted."""
    if node.limit is None or node.limit.nullable or node.offset is not None:
        return node
    scan = node.input
    if not isinstance(scan, plan.Scan) or scan.condition is not None or not scan.access.partial:
        return node
    return replace(node, input=replace(scan, access=replace(scan.access, wanted=node.limit)))


# --- windows -------------------------------------------------------------------------------------


def _windows_sorted(node: Plan) -> Plan:
    """Sort the rows of a query with windows by one of them, unless the query sorts them itself."""
    match node:
        case plan.Project() | plan.Filter() | plan.Limit():
            return replace(node, input=_windows_sorted(node.input))
        case plan.Window():
            keys = _last_order(node.calls)
            if not keys or _is_sorted(node.input, keys):
                return node
            return replace(node, input=below_projections(plan.Sort(node.input, keys)))
        case _:
            return node


def _is_sorted(node: Plan, keys: tuple[SortKey, ...]) -> bool:
    if isinstance(node, plan.Project):
        made = dict(enumerate(node.expressions))
        replacements = {(node.source, position): each for position, each in made.items()}
        if not all(may_substitute(key, replacements) for key in keys):
            return False
        below = [replace(key, expression=substituted(key.expression, replacements)) for key in keys]
        return _is_sorted(node.input, tuple(below))
    return isinstance(node, plan.Sort) and node.keys == keys


def _last_order(calls: tuple[WindowCall, ...]) -> tuple[SortKey, ...]:
    """Return the order of the last sort: windows over columns named later are sorted first."""
    known: list[Expression] = []
    orders = []
    for call in calls:
        partitions = [SortKey(each, False, False) for each in call.partition_by]
        for key in (*call.order_by, *partitions):
            if key.expression not in known:
                known.append(key.expression)
        order: dict[tuple[int, bool, bool], SortKey] = {}
        for key in (*partitions, *call.order_by):
            number = known.index(key.expression)
            if not any(number == other for other, _, _ in order):
                order[number, key.descending, key.nulls_first] = key
        if order:
            orders.append(order)
    if not orders:
        return ()
    least = min(orders, key=lambda order: tuple(order))
    longer = [each for each in orders if tuple(each)[: len(least)] == tuple(least)]
    return tuple(max(longer, key=len).values())
