"""Makes bounds of the product smaller for a run, so that few rows do what many would.

    pages of 3 entries      a few dozen rows are a tree of four levels or five, which splits and
                            joins all the time, and which is compared at every height
    ranges of 3 entries     a table of ten rows is on all shards, and is cut and joined while
                            transactions are under way
    a log read 2 at a time  recovery goes through many pieces, as it does after 1,000 commits
    a feed of 2 versions    a reader that stops for a moment goes on with the log, and catches up
    a pause of 10 ms        a checkpoint that failed is tried again while the clients still work

The mechanism stays the product's own; only its numbers change, for the time of one run. A seed
chooses among the sizes here, and the product's own are always one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from qserver import limits
from qserver.durability import check_snapshot, loading, recovery, saved_columns
from qserver.engine import (
    catch_up,
    checkpointer,
    coordinator,
    feed,
    follower,
    following,
    freshness,
)
from qserver.replication import bases, copies, family, reader
from qserver.storage import btree, ranges, snapshot
from qserver.web.streaming import feed as web_feed

PAGE_ENTRIES: Final = {
    3: (3, 2, 2),
    4: (4, 3, 2),
    6: (6, 5, 3),
    limits.PAGE_ENTRIES_MAX: (
        limits.PAGE_ENTRIES_MAX,
        limits.PAGE_ENTRIES_BUILT,
        limits.PAGE_ENTRIES_MIN,
    ),
}
"""How many entries a page has at most, when it is built, and before it is joined with another."""

RANGE_ENTRIES: Final = {
    3: (3, 1),
    6: (6, 3),
    20: (20, 8),
    limits.RANGE_ENTRIES_MAX: (limits.RANGE_ENTRIES_MAX, limits.RANGE_ENTRIES_MIN),
}
"""How many entries a range has at most, and neighbours together before they are joined."""

READ_AT_ONCE: Final = (2, 7, recovery.RECORDS_READ_AT_ONCE)
"""Records and pages that recovery reads at once, and a checkpoint forgets."""

PICKED_MOST: Final = (1, snapshot.PICKED_MAX)
"""Up to so many first entries of a range are handed out alone; more come by whole pages."""

WORK_AT_ONCE: Final = (1, coordinator.WORK_BEFORE_YIELDING)
"""How many pieces of work the coordinator runs before it lets other tasks run."""

RETRY_SECONDS: Final = (0.01, 0.5, limits.CHECKPOINT_RETRY_SECONDS)
"""How long a checkpoint that failed is not tried again."""

FEED_VERSIONS: Final = (2, 6, limits.FEED_VERSIONS_MAX)
"""How many versions are kept in memory for readers of changes; others come from the log."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The bounds of one run, instead of the product's own."""

    page_entries: int = limits.PAGE_ENTRIES_MAX
    read_at_once: int = recovery.RECORDS_READ_AT_ONCE
    picked_most: int = snapshot.PICKED_MAX
    work_at_once: int = coordinator.WORK_BEFORE_YIELDING
    range_entries: int = limits.RANGE_ENTRIES_MAX
    retry_seconds: float = limits.CHECKPOINT_RETRY_SECONDS
    feed_versions: int = limits.FEED_VERSIONS_MAX


SMALL: Final = Sizes(
    page_entries=min(PAGE_ENTRIES), read_at_once=min(READ_AT_ONCE), retry_seconds=min(RETRY_SECONDS)
)
"""Pages as small as can be, in trees of one range."""

NARROW: Final = Sizes(range_entries=min(RANGE_ENTRIES))
"""Ranges as narrow as can be."""

JOINED: Final = Sizes(range_entries=6)
"""Ranges that are joined as often as they are cut."""


def draw_sizes(chance: Random) -> Sizes:
    return Sizes(
        chance.choice(tuple(PAGE_ENTRIES)),
        chance.choice(READ_AT_ONCE),
        chance.choice(PICKED_MOST),
        chance.choice(WORK_AT_ONCE),
        chance.choice(tuple(RANGE_ENTRIES)),
    )


@contextmanager
def sized(sizes: Sizes) -> Iterator[None]:
    most, built, least = PAGE_ENTRIES[sizes.page_entries]
    range_most, range_least = RANGE_ENTRIES[sizes.range_entries]
    whole = sizes.page_entries == limits.PAGE_ENTRIES_MAX
    few = sizes.feed_versions < limits.FEED_VERSIONS_MAX
    read_at_once = sizes.read_at_once
    values: tuple[tuple[Any, str, float], ...] = (
        (btree, "PAGE_ENTRIES_MAX", most),
        (btree, "PAGE_ENTRIES_BUILT", built),
        (btree, "PAGE_ENTRIES_MIN", least),
        (btree, "LEAVES_OF_RUN", btree.LEAVES_OF_RUN if whole else 2),
        (check_snapshot, "PAGE_ENTRIES_MAX", most),
        (ranges, "RANGE_ENTRIES_MAX", range_most),
        (ranges, "RANGE_ENTRIES_MIN", range_least),
        (saved_columns, "VECTOR_ROWS_MIN", limits.VECTOR_ROWS_MIN if whole else 2),
        (snapshot, "PICKED_MAX", sizes.picked_most),
        (recovery, "RECORDS_READ_AT_ONCE", read_at_once),
        (loading, "PAGES_READ_AT_ONCE", min(read_at_once, loading.PAGES_READ_AT_ONCE)),
        (checkpointer, "RECORDS_FORGOTTEN_AT_ONCE", read_at_once),
        (checkpointer, "CHECKPOINT_RETRY_SECONDS", sizes.retry_seconds),
        (coordinator, "WORK_BEFORE_YIELDING", sizes.work_at_once),
        (feed, "FEED_VERSIONS_MAX", sizes.feed_versions),
        (freshness, "VERSION_WAIT_SECONDS", 1.0),  # it ends before a process is held to be at rest
        (catch_up, "RECORDS_AT_ONCE", min(read_at_once, catch_up.RECORDS_AT_ONCE)),
        (following, "RECORDS_AT_ONCE", min(read_at_once, following.RECORDS_AT_ONCE)),
        (following, "PAGES_BYTES", 300 if few else following.PAGES_BYTES),
        (follower, "RECORD_BYTES_LONG", 100 if few else recovery.RECORD_BYTES_LONG),
        (web_feed, "ANSWER_PART_BYTES", 300 if few else limits.ANSWER_PART_BYTES),
        (feed, "RUN_VERSIONS", 3 if few else feed.RUN_VERSIONS),
        (family, "MESSAGE_BYTES", min(20 * read_at_once, family.MESSAGE_BYTES)),
        (family, "POSITION_BYTES", min(read_at_once**3, family.POSITION_BYTES)),
        (bases, "BASE_BYTES", min(read_at_once**3, bases.BASE_BYTES)),
        (bases, "BASE_SHARE", bases.BASE_SHARE if read_at_once > 1000 else 0.0),
        (bases, "PART_BYTES", min(1000 * read_at_once, bases.PART_BYTES)),
        (reader, "MESSAGES_AT_ONCE", min(read_at_once, reader.MESSAGES_AT_ONCE)),
        (copies, "RECORDS_AT_ONCE", min(read_at_once, copies.RECORDS_AT_ONCE)),
    )
    kept = [(module, name, getattr(module, name)) for module, name, _ in values]
    for module, name, value in values:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in kept:
            setattr(module, name, value)
