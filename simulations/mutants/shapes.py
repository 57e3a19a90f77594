"""Shapes of the runs that hunt a planted bug: what has to happen often for the bug to show.

A bug that one run in a hundred meets is found by luck, and any change of the code may end that
luck. With its shape, each bug fails at least one run in ten or so.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from simulations.sizes import SMALL

Shape: TypeAlias = tuple[tuple[str, Any], ...]

CROWDED: Final[Shape] = (("clients", 12),)
"""Many transactions at once, for bugs between two of one round."""

OFTEN_SAVED: Final[Shape] = (
    ("sizes", SMALL),
    ("checkpoint_log_bytes", 500),
    ("checkpoint_pages_at_once", 1),
)
"""Checkpoints of many pages, each saved by itself."""

_ALL_THE_TIME: Final[Shape] = (
    ("transactions_per_client", 40),
    ("checkpoint_log_bytes", 300),
    ("checkpoint_pages_at_once", 1),
)

SAVES_FAIL: Final[Shape] = (
    *_ALL_THE_TIME,
    (
        "probabilities",
        {
            "checkpoint_fails": 0.15,
            "actor_killed": 0.01,
            "process_crash": 0.03,
            "sync_slow": 0.15,
            "tail_kept": 0.5,
        },
    ),
)
"""Checkpoints that fail half-way, and restarts and crashes soon after."""

SYNCS_FAIL: Final[Shape] = (
    *_ALL_THE_TIME,
    ("sizes", SMALL),
    ("probabilities", {"sync_fails": 0.05, "process_crash": 0.015, "sync_slow": 0.3}),
)
"""Syncs of the log that fail while a checkpoint is under way, and crashes soon after."""

NOBODY_KNOWS: Final[Shape] = (
    *_ALL_THE_TIME,
    ("sizes", SMALL),
    ("probabilities", {"checkpoint_fails": 0.5, "process_crash": 0.03, "tail_kept": 1.0}),
)
"""Checkpoints that fail though they may be there, the next soon after, and a crash during it."""

RESTARTED: Final[Shape] = (
    ("history", 1e9),
    ("transactions_per_client", 40),
    ("probabilities", {"actor_killed": 0.02, "sync_fails": 0.05, "sync_slow": 0.3}),
)
"""Generations that end while the disk has more than they knew, in one process; all is kept."""

SLOW_TO_DISK: Final[Shape] = (
    ("history", 1e9),
    ("rounds_unsynced_most", 8),
    ("probabilities", {"sync_slow": 0.6, "page_slow": 0.1}),
)
"""Memory that runs far ahead of the disk; all is kept."""

SYNCED_IN_BATCHES: Final[Shape] = (
    ("all_here", True),
    ("long_work", 0.0),
    ("shards", 1),
    ("clients", 2),
    ("transactions_per_client", 40),
    ("probabilities", {"sync_fails": 0.2, "process_crash": 0.01}),
)
"""Commits that are written and synced before their batch ends, and syncs that fail there."""

LOOKED_BACK: Final[Shape] = (
    ("history", 1e9),
    ("checkpoint_log_bytes", 500),
    ("cache_bytes", 1 << 30),
)
"""Families that keep all versions, and checkpoints between them."""

TRIMMED_WHILE_READ: Final[Shape] = (
    ("history", 1e9),
    ("checkpoint_log_bytes", 1),
    ("sizes", SMALL),
    ("cache_bytes", 1 << 30),
    ("probabilities", {"pages_let_go": 0.5, "page_slow": 0.05}),
)
"""Families that keep all versions until they are told not to; pages are read when they are used."""

TRIMMED_UNDER_BRANCHES: Final[Shape] = (
    *TRIMMED_WHILE_READ,
    ("past", 24),
    ("steps", 24),
    ("steps_taken", ("hold", "hold", "look back", "trim", "close", "branch")),
)
"""Families with a long past, which main forgets bit by bit while branches read it."""
