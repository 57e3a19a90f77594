"""Reading: what a request that only reads asks of a view.

It satisfies the same port as a `Transaction`, but keeps no footprint. Its view is durable, so
nothing that was read can turn out to be untrue, and nobody will ask later what it was. A query that
follows a million index entries therefore remembers none of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from qserver.storage.btree import Key, Value, get
from qserver.storage.catalog import Catalog
from qserver.storage.transaction import Predicate
from qserver.storage.view import Page, View
from qserver.values.keys import partition_of
from qserver.values.relations import Definition


class Reading:
    """Reads of a view, with nothing written over it."""

    __slots__ = ("_partitions", "view")

    def __init__(self, view: View) -> None:
        self.view = view
        self._partitions = view.partitions

    @property
    def catalog(self) -> Catalog:
        return self.view.catalog

    def find_definition(self, name: str) -> Definition | None:
        """What is defined under a name."""
        return self.view.catalog.find(name)

    def get_entry(self, tree: int, key: Key, hashed: int | None = None) -> Value | None:
        partitions = self._partitions
        shard = partition_of(key if hashed is None else key[:hashed], len(partitions))
        return get(partitions[shard].tree(tree), key)

    def scan(
        self,
        tree: int,
        low: Key | None = None,
        high: Key | None = None,
        predicate: Predicate | None = None,
        backward: bool = False,
        limit: int | None = None,
    ) -> Iterator[Page]:
        return self.view.pages_in_order(tree, low, high, backward, limit)

    def scan_in_any_order(
        self,
        tree: int,
        low: Key | None = None,
        high: Key | None = None,
        predicate: Predicate | None = None,
    ) -> Iterator[list[Value]]:
        return self.view.value_runs(tree, low, high)

    def first_rows(
        self, tree: int, low: Key | None, high: Key | None, backward: bool, most: int
    ) -> list[Value]:
        return self.view.first_rows(tree, low, high, backward, most)

    def __repr__(self) -> str:
        return f"a reading of {self.view!r}"
