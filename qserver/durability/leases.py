"""Leases: which versions' pages somebody may still load.

A lease belongs to snapshots, and nobody gives it back: it dies with the last snapshot that has it.
So this is a list of weak references, and the dead ones are left out when it is looked at.
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
        """Return whether a lease is alive that may need what only versions between had."""
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
