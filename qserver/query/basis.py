"""The basis of a query: what its result depends on.

A query that depends on tables alone has a *basis*: when each definition that it names was last
changed, and when the rows of each table that it reads were. While the basis is the same, so is the
result, which need not be computed again. Names are those of the plan, with the tables inside views:
a kept plan, too, is good as long as they mean the same.
"""

from __future__ import annotations

from typing import TypeAlias

from qserver.errors import FeatureNotSupported
from qserver.query.planning import slots_of
from qserver.query.prepared_statement import PreparedStatement
from qserver.sql import check_live
from qserver.storage.snapshot import Snapshot
from qserver.storage.writes import Moment

Basis: TypeAlias = tuple[Moment, ...]


def basis_of(
    statement: PreparedStatement, snapshot: Snapshot, is_past: bool = False
) -> Basis | None:
    """Return the basis of a query; None if it depends on more than tables.

    An older version never changes, so it is the basis itself.
    """
    given, parameterized, plan = statement.given, statement.parameterized, statement.plan
    assert plan is not None and parameterized is not None and not plan.writes
    try:
        check_live(plan.statement, slots_of(plan, parameterized.literals, given))
    except FeatureNotSupported:
        return None
    if is_past:
        return ((snapshot.version, snapshot.time),)
    definitions = [snapshot.catalog.last_change_of(name) for name in sorted(plan.names)]
    trees = [snapshot.trees.tree(number) for number in sorted(plan.sizes)]
    return (*definitions, *(tree.last_change for tree in trees))
