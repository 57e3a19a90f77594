"""Few sought: EXISTS with few rows is an IN that looks them up by a key of the outer table.

    EXISTS (SELECT 1 FROM b WHERE b.x = a.id AND …)  →  a.id IN (SELECT b.x FROM b WHERE …)

A semi-join reads the outer table. How many rows the query has is known when it has been read: where
they are more than was thought, IN reads the table, too.
"""

from __future__ import annotations

from qserver.sql import plan
from qserver.sql.expressions import Apply, Column, Exists, Expression, InQuery
from qserver.sql.join_conditions import hash_keys
from qserver.sql.optimizer.estimate import LOOKUPS_WORTH_A_SCAN, estimate, scans_below
from qserver.sql.optimizer.selectivity import share_of_value
from qserver.sql.plan import OutputColumn, Plan
from qserver.sql.statistics import Statistics
from qserver.sql.walk import conjuncts
from qserver.values.schema import Table
from qserver.values.types import CAREFUL_KINDS


def sought_by_few(node: plan.Join, condition: Expression, statistics: Statistics) -> InQuery | None:
    """Return the condition that does what a semi-join does, if it is less work."""
    project = _projection(condition)
    tied = conjuncts(node.condition)
    keys = hash_keys(node)
    if node.kind != "semi" or project is None or len(tied) != 1 or len(keys) != 1:
        return None
    outer, inner = keys[0]
    (tie,) = tied
    assert isinstance(tie, Apply), "a key of a hash table is an equality"
    equal = tie.function
    scan = scans_below(node.left).get(outer.source) if isinstance(outer, Column) else None
    if scan is None or not isinstance(outer, Column) or outer.type.kind in CAREFUL_KINDS:
        return None
    if equal.parameters[0] != equal.parameters[1] or not scan.table.has_tree:
        return None
    found = _found_by_key(scan.table, outer.position, statistics)
    rows = statistics.row_count(scan.table)
    if found is None or LOOKUPS_WORTH_A_SCAN * estimate(node.right, statistics) * found >= rows:
        return None
    columns = (OutputColumn("sought", inner.type, inner.nullable),)
    query = plan.Project(node.right, project.source, (inner,), columns)
    return InQuery((outer,), query, (equal,), nullable=outer.nullable or inner.nullable)


def _projection(condition: Expression) -> plan.Project | None:
    """Return the projection of the subquery."""
    below: Plan | None = condition.plan if isinstance(condition, Exists | InQuery) else None
    while isinstance(below, plan.Sort | plan.Distinct):
        below = below.input
    return below if isinstance(below, plan.Project) else None


def _found_by_key(table: Table, position: int, statistics: Statistics) -> float | None:
    """Return how many rows a look-up by a key finds that begins with a column."""
    if table.primary_key == (position,):
        return 1.0
    indexed = [index for index in table.indexes if index.columns[0] == position]
    if not indexed and table.primary_key[0] != position:
        return None
    if any(index.unique and index.columns == (position,) for index in indexed):
        return 1.0
    share = share_of_value(statistics.distinct(table, (position,)))
    return max(1.0, statistics.row_count(table) * share)
