"""Planted bugs in followers: what the owner sends, and what the follower accepts."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from qserver.durability.port import StoredRecord
from qserver.engine.follower import FollowedDatabase
from qserver.engine.following import records_after
from qserver.engine.snapshot_source import SnapshotSource
from qserver.engine.versions import Versions
from simulations.mutants.mutant import Mutant, edited

FOLLOWED: Final = (("follows", True),)
CUT: Final = (*FOLLOWED, ("checkpoint_log_bytes", 1), ("history", 0.0))


def _apply_across_a_gap(original: Any) -> Any:
    async def apply(self: FollowedDatabase, stored: StoredRecord) -> None:
        versions = None if self._checkpointer is None else self._checkpointer.versions
        if versions is not None and stored[0] > versions.durable.version + 1:
            moved = msgspec.structs.replace(versions.durable, version=stored[0] - 1)
            versions.durable = versions.newest = moved
        await original(self, stored)

    return apply


def _announce_late(original: Any) -> Any:
    def mark_durable(self: Versions, version: int) -> None:
        before, announce, self.announce = self.durable.version, self.announce, None
        original(self, version)
        self.announce = announce
        if announce is not None:
            announce(before)

    return mark_durable


MUTANTS: Final = (
    Mutant(
        "apply_across_a_gap",
        "a follower applies a record to an older version than the one before it",
        ("bank", "registers"),
        ((FollowedDatabase, "_apply", _apply_across_a_gap),),
        FOLLOWED,
    ),
    Mutant(
        "send_what_is_not_durable",
        "a follower is sent the newest snapshot, which is not durable yet",
        ("hot_key", "bank"),
        (
            edited(
                records_after,
                "_base(await database.wait_durable_snapshot())",
                "_base(database.snapshots.take(True) or await database.wait_durable_snapshot())",
            ),
        ),
        CUT,
    ),
    Mutant(
        "write_the_number_after_the_answers",
        "the owner announces a version when the next group is durable",
        ("bank", "registers"),
        ((Versions, "mark_durable", _announce_late),),
        FOLLOWED,
    ),
    Mutant(
        "show_what_was_recovered_without_its_number",
        "the owner shows what it has recovered, and announces only what it commits",
        ("bank", "registers"),
        (
            edited(SnapshotSource.show, "self.announce(snapshot.version)", "pass"),
            edited(SnapshotSource.follow, "self.announce(versions.durable.version)", "pass"),
        ),
        FOLLOWED,
    ),
    Mutant(
        "go_back_to_an_older_base",
        "a follower takes whatever base it is sent, also one that is older than what it shows",
        ("hot_key", "bank"),
        (edited(FollowedDatabase._begin, "version < self.version", "False"),),
        CUT,
    ),
    Mutant(
        "take_a_base_that_lacks_pages",
        "a follower does not count the pages of a base",
        ("bank", "range_sums"),
        (edited(FollowedDatabase._begin, "recovered.saved.count != pages", "False"),),
        CUT,
    ),
)
