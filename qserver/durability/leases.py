"""Leases: which versions' pages a reader may still load.

Snapshots hold a lease, and nobody releases it: it dies with its last snapshot. So this is a list of
weak references, pruned when it is read.
"""

from __future__ import annotations

from weakref import ref

from qserver.storage.snapshot import Lease


class Leases:
    def __init__(self) -> None:
        self._leases: list[ref[Lease]] = []

    def add(self, lease: Lease) -> None:
        self._leases.append(ref(lease))

    def are_between(self, after: int, before: int) -> bool:
        """Return whether a live lease may need pages that only versions in between had."""
        if not self._leases:
            return False
        self._leases = [each for each in self._leases if each() is not None]
        return any(
            lease.first < before and (lease.last is None or lease.last > after)
            for each in self._leases
            if (lease := each())
        )

    def clear(self) -> None:
        self._leases = []

    def __repr__(self) -> str:
        return f"{sum(each() is not None for each in self._leases)} leases"
