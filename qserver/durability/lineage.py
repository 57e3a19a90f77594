"""Finds older versions of a branch in the logs of its ancestors.

    versions        … 12 ……………… 20 ……………… 31 ……
    main            [ log from 12 on ················]
    a branch                    [ log from 20 on, made at version 25 ··]
    its history     main's      its own

A branch and its parent have the same versions up to the one at which the branch was made. The log
of the branch begins with the checkpoint before that; older versions are in the parent's log, as
long as the parent keeps them. Pages of older checkpoints have smaller numbers, so the branch loads
them as it loads all pages of its parent (see `branch_log`). A checkpoint of an older version that
the parent saved after the branch was made is not used: the numbers of its new pages are the
branch's own.

The parent may be open, closed, or deleted except for its file; only its file is read.
"""

from __future__ import annotations

import msgspec

from qserver.durability.branch_log import BranchLog
from qserver.durability.kept import KeptCheckpoint, base_of, decode_outline, with_empty
from qserver.durability.port import Log


class LogSegment(msgspec.Struct, frozen=True):
    """The versions that one log can rebuild."""

    log: Log
    kept: list[KeptCheckpoint]
    start: int
    """The log has all records behind this version."""
    end: int | None = None
    """Later ones are made from another log; None: there is none."""

    def base_of(self, version: int) -> KeptCheckpoint | None:
        return base_of(self.kept, version, self.start)


async def segment_before(segment: LogSegment) -> LogSegment | None:
    """Return the parent's part of the versions before; None if there is none."""
    log = segment.log
    if not isinstance(log, BranchLog) or segment.start > log.base.version:
        return None
    parent = log.parent
    records = await parent.read(0, 1)
    outlines = await parent.load_outlines()
    kept = [decode_outline(version, outline) for version, outline in outlines if outline]
    start = records[0][0] - 1 if records else max((each.version for each in kept), default=0)
    kept = [each for each in kept if each.last_page <= log.base.last_page]
    if start == 0:
        kept = with_empty(kept)
    return LogSegment(parent, kept, min(start, segment.start), segment.start)


async def segment_of(newest: LogSegment, version: int) -> LogSegment | None:
    """Return the segment with the records after a version; None if the version is too old."""
    segment: LogSegment | None = newest
    while segment is not None and version < segment.start:
        segment = await segment_before(segment)
    return segment
