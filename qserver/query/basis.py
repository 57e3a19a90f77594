"""The basis of a query: what its result depends on.

A query that depends on tables alone has a *basis*: when any definition was last changed, and when
each table that it reads was. While the basis is the same, so is the result, which need not be
computed again.
"""

from __future__ import annotations

from typing import TypeAlias

from qserver.errors import FeatureNotSupported
from qserver.query.body import Found
from qserver.query.planning import slots_of
from qserver.sql.live import check_live
from qserver.storage.snapshot import Snapshot
from qserver.storage.writes import Moment

Basis: TypeAlias = tuple[Moment, ...]


def basis_of(found: Found, snapshot: Snapshot, is_past: bool = False) -> Basis | None:
    """Return the basis of a query; None if it depends on more than tables.

    Any definition may change what a name means, so the last change of all definitions is part of
    it. An older version never changes, so it is the basis itself.
    """
    _, given, parameterized, plan = found
    assert plan is not None and parameterized is not None and not plan.writes
    try:
        check_live(plan.statement, slots_of(plan, parameterized.literals, given))
    except FeatureNotSupported:
        return None
    if is_past:
        return ((snapshot.version, snapshot.time),)
    trees = [snapshot.trees.tree(number) for number in sorted(plan.sizes)]
    return (snapshot.catalog.last_change, *(tree.last_change for tree in trees))
