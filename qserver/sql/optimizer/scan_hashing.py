"""Scan hashing: a correlated scan of a table, or of a range of its key, looks up its rows in
a hash table.

    (SELECT sum(b.y) FROM b WHERE b.x = a.x AND b.z = a.z)      a.x and a.z: the hash key of b

It runs once for each combination of a.x and a.z. After the first runs the rows of b are hashed, so
that all further runs together cost about as much as a hash join; any number of equalities, and any
query around the scan: with an aggregate, without, with joins, below EXISTS or LATERAL. A query that
has one outer row never pays for it: see `codegen.hashed_scans`.

Not done: joining the outer rows with a grouped subquery, which needs more (what an empty group
gives, duplicates, errors of groups that nobody asks for) and helps in fewer cases.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from qserver.sql import plan
from qserver.sql.join_conditions import scan_keys
from qserver.sql.plan import Plan
from qserver.sql.statistics import Statistics
from qserver.sql.vectors.planning import reads_whole_pages
from qserver.sql.walk import sources_named, tree_rebuilt

HASHED_ROWS_MIN: Final = 64
"""Smaller tables are read again and again."""


def scan_hashing(node: Plan, statistics: Statistics) -> Plan:
    def change(each: Plan) -> Plan:
        if not isinstance(each, plan.Scan) or not _reads_the_same(each):
            return each
        if statistics.row_count(each.table) < HASHED_ROWS_MIN or not scan_keys(each):
            return each
        return replace(each, hashed=True)

    return tree_rebuilt(node, change)


def _reads_the_same(scan: plan.Scan) -> bool:
    """Tell whether a scan reads a table, or a range of its key, that is the same in all runs."""
    return reads_whole_pages(scan) and not sources_named(scan.access)
