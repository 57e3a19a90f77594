"""Keeps plans by the fingerprint of their statement.

    fingerprint ──► CachedPlans ─┬─ literals: the plan may depend on their values
                                 ├─ undecided parameters: it depends on the types of their values
                                 └─ those values and types ──► CachedPlan

A plan is good for the very definitions that it was made from: it remembers them by name, and holds
while the catalog has the same objects under those names. One `is` shows that the catalog is the one
compared last, so definitions are compared only after a change.

The cache bounds the number of plans and their memory; the least recently used goes first. Each
database has a cache of its own, and all of them count in `KeptPlans`, which empties the largest
when memory is short.

A plan also depends on the size of its tables. Another `is` shows that no tree of the database has
reached another power of two since the cache looked last (`Trees.sizes`). Otherwise it looks whether
one of the plan's tables is twice or half as large, and the plan is made anew.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any
from weakref import WeakSet

import msgspec

from qserver.functions.context import row_bytes
from qserver.limits import PLANS_KEPT_BYTES_MAX, PLANS_KEPT_MAX, PLANS_OF_FINGERPRINT_MAX
from qserver.query.announced_types import announced_types
from qserver.query.statement_statistics import StatementCounter
from qserver.sql import CompiledPlan, Given, types_of
from qserver.storage.catalog import Catalog
from qserver.storage.snapshot import Snapshot
from qserver.values.relations import Definition
from qserver.values.sizes import is_sized

SIZE_CHANGES_MANY = 2
"""The factor by which a table must grow or shrink to deserve another plan."""

PLANS_LARGE_MIN = 3
"""So many plans as large as the largest that is kept fill the memory for plans. One of a statement
with as many parameters as there may be is kept."""

SIZE_MATTERS_FROM = 64
"""Tables below this size are all alike."""


class PlanCacheStatistics(msgspec.Struct, frozen=True):
    fingerprints: int
    hits: int
    misses: int
    invalidated: int
    bytes: int = 0
    """Approximate memory of the plans."""


class CachedPlan:
    """A compiled statement, the definitions it was made from, and the columns of its result."""

    __slots__ = (
        "catalog",
        "columns",
        "compiled",
        "counter",
        "fingerprint",
        "grows",
        "in_fingerprint",
        "long_columns",
        "may_yield",
        "names",
        "names_database",
        "parameter_types",
        "parameters",
        "row_bytes",
        "size",
        "sized_columns",
        "sizes",
        "sizes_seen",
        "statement",
        "system_tables",
        "types",
        "undecided",
        "watched",
        "writes",
    )

    def __init__(
        self,
        made: CompiledPlan,
        catalog: Catalog,
        names: dict[str, Definition | None],
        sizes: dict[int, int],
        *,
        system_tables: bool = False,
        names_database: bool = False,
    ) -> None:
        self.compiled = compiled = made.compiled
        self.statement = made.plan
        self.parameters = made.parameters
        self.in_fingerprint = made.in_fingerprint
        self.undecided = made.undecided
        self.size = made.size
        self.writes = made.writes
        self.grows = made.grows
        self.watched = made.watched
        self.catalog = catalog
        self.names = names
        self.sizes = sizes
        self.system_tables = system_tables
        self.names_database = names_database
        """Whether the text names the database: such a plan is not kept, for names change."""
        self.parameter_types = (
            () if made.parameters is None else announced_types(made.parameters.types, catalog)
        )
        self.columns = tuple([column.name for column in compiled.columns])
        self.types = announced_types([column.type for column in compiled.columns], catalog)
        self.long_columns = compiled.long_columns
        self.row_bytes = row_bytes(len(self.columns))
        self.sized_columns = tuple(at for at, each in enumerate(self.types) if is_sized(each))
        self.fingerprint: Any = None
        self.counter: StatementCounter | None = None
        """Counts the runs of the statement."""
        self.may_yield = False
        """Whether it ever gave more than one page, or wanted others to run; see `body`."""
        self.sizes_seen: object = None
        """The `Trees.sizes` for which the plan was found to suit."""

    def holds_in(self, catalog: Catalog) -> bool:
        if self.catalog is catalog:
            return True
        find = catalog.find
        for name, definition in self.names.items():
            if find(name) is not definition:
                return False
        self.catalog = catalog
        return True

    def suits(self, snapshot: Snapshot) -> bool:
        """Return whether the tables are still about as large as they were."""
        for tree, before in self.sizes.items():
            now = snapshot.count(tree)
            small, large = min(before, now), max(before, now)
            if large >= SIZE_MATTERS_FROM and large >= SIZE_CHANGES_MANY * max(small, 1):
                return False
        self.sizes_seen = snapshot.trees.sizes
        return True


class CachedPlans:
    """The plans of one fingerprint, by the values of the literals that they depend on."""

    __slots__ = ("in_fingerprint", "plans", "size", "undecided", "values_of")

    def __init__(self, fingerprint: Any) -> None:
        self.size = sum(sys.getsizeof(each) for each in fingerprint)
        self.undecided: tuple[int | str, ...] = ()
        self.in_fingerprint: frozenset[int] = frozenset()
        self.values_of: Callable[[Sequence[Any]], Any] = _no_values
        """Returns those of a statement's literals that belong to the fingerprint."""
        self.plans: dict[Any, CachedPlan] = {}

    def key(self, literals: Sequence[Any], given: Given) -> Any:
        """Return what tells the plans of the fingerprint apart."""
        values = self.values_of(literals)
        return (values, types_of(given, self.undecided)) if self.undecided else values

    def add(self, plan: CachedPlan, literals: Sequence[Any], given: Given) -> None:
        in_fingerprint, undecided = (
            plan.in_fingerprint | self.in_fingerprint,
            plan.undecided.union(self.undecided),
        )
        if in_fingerprint != self.in_fingerprint:
            self.in_fingerprint = in_fingerprint
            self.values_of = itemgetter(*sorted(in_fingerprint))
            self.clear()
        if len(undecided) != len(self.undecided):
            self.undecided = tuple(sorted(undecided, key=str))
            self.clear()
        while len(self.plans) >= PLANS_OF_FINGERPRINT_MAX:
            self.remove(next(iter(self.plans)))
        plan.size += _size_of(self.values_of(literals))
        values = self.key(literals, given)
        if values in self.plans:
            self.remove(values)
        self.plans[values] = plan
        self.size += plan.size

    def remove(self, values: Any) -> None:
        self.size -= self.plans.pop(values).size

    def clear(self) -> None:
        for values in [*self.plans]:
            self.remove(values)


def _size_of(values: Any) -> int:
    """Return the size of literals in the fingerprint: one may be a text of megabytes."""
    return sum(map(sys.getsizeof, values)) if type(values) is tuple else sys.getsizeof(values)


def _no_values(_: Sequence[Any]) -> None:
    """Return None: one plan is good for all literals."""


class KeptPlans:
    """Counts the plans of all databases of a process."""

    def __init__(self) -> None:
        self.bytes = 0
        self._caches: WeakSet[PlanCache] = WeakSet()

    def add(self, cache: PlanCache) -> None:
        self._caches.add(cache)

    def shrink(self, bytes_left: int) -> None:
        """Drop plans of the database that keeps most of them."""
        while self.bytes > bytes_left and self._caches:
            largest = max(self._caches, key=lambda cache: cache.bytes)
            if not largest.bytes:
                return
            largest.drop_oldest()


class PlanCache:
    def __init__(
        self,
        fingerprints_most: int = PLANS_KEPT_MAX,
        bytes_most: int = PLANS_KEPT_BYTES_MAX,
        all_plans: KeptPlans | None = None,
    ) -> None:
        self._fingerprints: OrderedDict[Any, CachedPlans] = OrderedDict()
        self._fingerprints_most = fingerprints_most
        self._bytes_most = bytes_most
        self.bytes = 0
        self._all = KeptPlans() if all_plans is None else all_plans
        self._all.add(self)
        self._hits = self._misses = self._invalidated = 0

    def find(
        self,
        fingerprint: Any,
        literals: Sequence[Any],
        catalog: Catalog,
        snapshot: Snapshot,
        given: Given = None,
    ) -> CachedPlan | None:
        kept = self._fingerprints.get(fingerprint)
        if kept is None:
            self._misses += 1
            return None
        values = kept.key(literals, given) if kept.in_fingerprint or kept.undecided else None
        plan = kept.plans.get(values)
        if plan is None:
            self._misses += 1
            return None
        if (plan.catalog is catalog or plan.holds_in(catalog)) and (
            plan.sizes_seen is snapshot.trees.sizes or plan.suits(snapshot)
        ):
            self._hits += 1
            self._fingerprints.move_to_end(fingerprint)
            return plan
        self._invalidated += 1
        self._count(-plan.size)
        kept.remove(values)
        return None

    def is_still_good(self, plan: CachedPlan, snapshot: Snapshot) -> bool:
        """Return whether a plan that was found before, for the same, would be found again.

        Its finder has kept it, and asks nothing but this: whether anything has changed since.
        """
        if plan.catalog is not snapshot.catalog or plan.sizes_seen is not snapshot.trees.sizes:
            return False
        try:
            self._fingerprints.move_to_end(plan.fingerprint)
        except KeyError:  # it was dropped, and is kept again once it was looked for
            return False
        self._hits += 1
        return True

    def keep(
        self, fingerprint: Any, literals: Sequence[Any], plan: CachedPlan, given: Given = None
    ) -> None:
        """Keep a plan, unless it would take too much of the memory for plans."""
        if plan.size > self._bytes_most // PLANS_LARGE_MIN:
            return
        plan.fingerprint = fingerprint
        kept = self._fingerprints.get(fingerprint)
        if kept is None:
            kept = self._fingerprints[fingerprint] = CachedPlans(fingerprint)
        else:
            self._count(-kept.size)
        kept.add(plan, literals, given)
        self._count(kept.size)
        self._fingerprints.move_to_end(fingerprint)
        while len(self._fingerprints) > self._fingerprints_most or (
            self.bytes > self._bytes_most and len(self._fingerprints) > 1
        ):
            self.drop_oldest()

    def drop_oldest(self) -> None:
        """Drop the plans of the statement that was used least recently."""
        _, oldest = self._fingerprints.popitem(last=False)
        self._count(-oldest.size)

    def close(self) -> None:
        """Drop all plans: the database is closed."""
        self._fingerprints.clear()
        self._count(-self.bytes)

    def _count(self, size: int) -> None:
        self.bytes += size
        self._all.bytes += size

    def statistics(self) -> PlanCacheStatistics:
        return PlanCacheStatistics(
            len(self._fingerprints), self._hits, self._misses, self._invalidated, self.bytes
        )

    def __repr__(self) -> str:
        return f"plans of {len(self._fingerprints)} fingerprints"
