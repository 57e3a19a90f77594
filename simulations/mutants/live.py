"""Planted bugs in live queries: a commit that should wake one does not, or leads astray."""

from __future__ import annotations

from typing import Final

from qserver.engine.watches import Watches
from qserver.query import live_query
from qserver.query.kept_result import _surplus
from qserver.query.live_query import LiveQuery
from qserver.sql.live import linear_scan
from qserver.storage.footprint import Footprint, tree_changes
from qserver.storage.footprint_index import Intervals, TreeFootprints
from simulations.mutants.mutant import Mutant, edited

LIVE: Final = ("sql_live",)

MUTANTS: Final = (
    Mutant(
        "arm_whatever_came_meanwhile",
        "a live query watches from the newest version on, although it has read an older one",
        LIVE,
        (edited(Watches.arm, " or durable.version != snapshot.version", ""),),
    ),
    Mutant(
        "sleep_through_a_restart",
        "a restart does not wake live queries; what recovery found in the log is not told",
        LIVE,
        (edited(Watches.restarting, "self._disarm_all(durable, durable.version + 1)", "pass"),),
    ),
    Mutant(
        "hold_the_new_row_against_it",
        "a change is tested against a live query by the row that it makes, not the one it replaces",
        LIVE,
        (edited(Watches._touched, "matters(scanned, was, becomes)", "matters(scanned, becomes)"),),
    ),
    Mutant(
        "begin_behind_the_commit",
        "a live query compares with the snapshot that woke it, not with the one before",
        LIVE,
        (
            edited(
                Watches.committed,
                "self._disarm(watch, before)",
                "self._disarm(watch, append.snapshot)",
            ),
        ),
    ),
    Mutant(
        "test_the_first_change_alone",
        "of the changes of a round, one that does not matter hides those behind it",
        LIVE,
        (
            edited(
                Watches._touched,
                "if not differs(was, becomes):\n                continue",
                "if not differs(was, becomes):\n                return",
            ),
        ),
    ),
    Mutant(
        "watch_the_rows_of_the_beginning",
        "a row that comes into the range of an index is not watched itself",
        LIVE,
        (edited(LiveQuery._changed_by_index, "for key in come:", "for key in come & changed:"),),
    ),
    Mutant(
        "show_what_is_not_durable",
        "a live query reads the newest snapshot, durable or not",
        LIVE,
        (edited(LiveQuery.changes, "snapshots.take()", "snapshots.take(True)"),),
    ),
    Mutant(
        "take_first_rows_for_linear",
        "a query with a LIMIT looks at the rows that changed, as if it were a filter",
        LIVE,
        (
            edited(
                linear_scan,
                "plan.Project | plan.Filter | plan.Sort",
                "plan.Project | plan.Filter | plan.Sort | plan.TopN | plan.Limit",
            ),
        ),
    ),
    Mutant(
        "tell_equal_rows_once",
        "of several equal rows that change at once, one is told",
        LIVE,
        (
            edited(
                live_query._without_common,
                "list((before - now).elements()), list((now - before).elements())",
                "list(before - now), list(now - before)",
            ),
        ),
    ),
    Mutant(
        "keep_what_has_left",
        "a row of the kept result that has gone for good is not told",
        LIVE,
        (edited(_surplus, "beyond.get(line, 0)", "beyond.get(line, count)"),),
    ),
    Mutant(
        "overlook_open_ranges",
        "a range between two keys is not found by the keys in it",
        LIVE,
        (edited(Intervals.at, "if key < block.highs[place]:", "if key == block.lows[place]:"),),
    ),
    Mutant(
        "overlook_prefixes",
        "a range of an index is found by its whole key only",
        LIVE,
        (edited(TreeFootprints.ranges_at, "key[:length]", "key"),),
    ),
    Mutant(
        "compare_the_first_range",
        "of a range that is cut differently now, the first piece is compared",
        LIVE,
        (edited(tree_changes, "start = end", "return"),),
    ),
    Mutant(
        "never_close_a_watch",
        "a live query that has ended is watched for ever",
        LIVE,
        (edited(Watches.close, "self._all.discard(watch)", "pass"),),
    ),
    Mutant(
        "forget_keys_with_the_first",
        "a footprint with two keys of a tree forgets the second",
        LIVE,
        (edited(Footprint.add_key, "elif key not in keys:", "elif key is None:"),),
    ),
)
