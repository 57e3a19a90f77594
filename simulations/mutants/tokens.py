"""Planted bugs in reads with tokens: what they wait for, and who hears of it."""

from __future__ import annotations

from typing import Final

from qserver.engine.freshness import FreshSnapshots
from qserver.engine.snapshot_source import SnapshotSource
from qserver.web.statements.freshness import version_wanted
from simulations.mutants.followers import FOLLOWED
from simulations.mutants.mutant import Mutant, edited

TOKENS: Final = ("sql_tokens",)

MUTANTS: Final = (
    Mutant(
        "ignore_the_token",
        "a read with min_version is answered from whatever is there",
        TOKENS,
        (edited(SnapshotSource.take_fresh, "snapshot.version < freshness.min_version", "False"),),
        FOLLOWED,
    ),
    Mutant(
        "wait_for_any_version",
        "a read that waits for its version takes the first snapshot that there is",
        TOKENS,
        (edited(FreshSnapshots.wait_fresh, "snapshot.version >= wanted", "True"),),
        FOLLOWED,
    ),
    Mutant(
        "go_on_one_version_early",
        "a read that waits for its version goes on one version too early",
        TOKENS,
        (
            edited(
                FreshSnapshots.wait_fresh,
                "self.wait_durable_snapshot(until, wanted)",
                "self.wait_durable_snapshot(until, wanted - 1)",
            ),
        ),
    ),
    Mutant(
        "ignore_the_header",
        "a version that a request names in its header is not read",
        TOKENS,
        (edited(version_wanted, "if header is not None", "if False"),),
    ),
)
