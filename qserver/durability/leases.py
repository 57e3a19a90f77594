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
        return any(
            lease.first < before and (lease.last is None or lease.last > after)
            for lease in self._alive()
        )

    def newest(self) -> int:
        """Return the first version of the latest live lease; 0 without one."""
        return max((lease.first for lease in self._alive()), default=0)

    def _alive(self) -> list[Lease]:
        alive = [lease for each in self._leases if (lease := each()) is not None]
        self._leases = [ref(lease) for lease in alive]
        return alive

    def clear(self) -> None:
        self._leases = []

    def __repr__(self) -> str:
        return f"{len(self._alive())} leases"
