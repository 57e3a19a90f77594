"""Planted bugs in leases: which pages a snapshot keeps while it is held across checkpoints."""

from __future__ import annotations

from typing import Final

from qserver.durability.leases import Leases
from simulations.mutants.mutant import Mutant, edited

HELD: Final = (("holds", True), ("checkpoint_log_bytes", 1))

MUTANTS: Final = (
    Mutant(
        "lease_from_the_last_version_on",
        "who holds an older snapshot under a lease keeps the pages of its last version alone",
        ("bank", "range_sums"),
        (
            edited(
                Leases.are_between,
                "lease.first < before and",
                "(lease.first if lease.last is None else lease.last) < before and",
            ),
        ),
        HELD,
    ),
    Mutant(
        "count_living_leases_alone",
        "a lease that has been renewed holds nothing, though snapshots have it",
        ("bank", "range_sums"),
        (edited(Leases.are_between, "lease.last > after", "False"),),
        HELD,
    ),
)
