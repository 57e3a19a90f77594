"""Planted bugs in the change feed: a version is lost, doubled, cut, told too early or to nobody."""

from __future__ import annotations

from typing import Final

from qserver.engine.catch_up import LogCatchUp
from qserver.engine.coordinator import Coordinator
from qserver.engine.feed import Feed, SharedCatchUp, with_statements
from qserver.engine.log_writer import LogWriter
from qserver.storage import changes
from qserver.web.streaming import feed
from qserver.web.streaming.change_feed import ChangesCall
from qserver.web.streaming.feed import EventBuffer, FeedParts
from simulations.mutants.mutant import Mutant, edited
from simulations.mutants.shapes import RESTARTED, SLOW_TO_DISK

FEED: Final = ("sql_feed",)

MUTANTS: Final = (
    Mutant(
        "compare_with_the_group_before",
        "the versions of a group are all compared with the one before the group",
        FEED,
        (edited(LogWriter.release, "before = append.snapshot", "pass"),),
    ),
    Mutant(
        "go_on_one_further",
        "a reader that was away goes on behind the version after its last one",
        FEED,
        (
            edited(
                FeedParts._caught_up,
                ".behind(since)",
                ".behind(since + 1)",
            ),
        ),
    ),
    Mutant(
        "begin_with_the_last_one_told",
        "a reader that has kept up is told its last version once more",
        FEED,
        (
            edited(
                EventBuffer.behind,
                "index = since + 1 - self.first",
                "index = max(since - self.first, 0)",
            ),
        ),
    ),
    Mutant(
        "cut_a_version_at_the_limit",
        "an answer that reaches its limit ends in the midst of a version",
        FEED,
        (
            edited(
                feed.some_changes,
                "if lines and len(lines) + len(more) > limit:\n                    break",
                "more = more[: limit - len(lines)]",
            ),
        ),
    ),
    Mutant(
        "look_further_than_told",
        "an answer that leaves a version for the next one says that it was looked at",
        FEED,
        (
            edited(
                feed.some_changes,
                "> limit:\n                    break",
                "> limit:\n                    since = version.version\n                    break",
            ),
        ),
    ),
    Mutant(
        "tell_the_first_rows",
        "of a version with many changes, the first few are told",
        FEED,
        (
            edited(
                feed.lines_of,
                "if wanted.wants(table):",
                "if wanted.wants(table) and len(lines) < 4:",
            ),
        ),
    ),
    Mutant(
        "tell_definitions_last",
        "the definitions of a version come behind its rows",
        FEED,
        (
            edited(
                with_statements,
                "[*stated, *unknown, *changes[len(schemas) :]]",
                "[*changes[len(schemas) :], *stated, *unknown]",
            ),
        ),
    ),
    Mutant(
        "tell_the_new_name_alone",
        "who follows a table is not told that it has another name now",
        FEED,
        (
            edited(
                changes.redefined, "if before.find(key) or after.find(key)", "if after.find(key)"
            ),
        ),
    ),
    Mutant(
        "take_rewritten_for_told",
        "rows that change beside a definition that rewrites their table are not told",
        FEED,
        (edited(Coordinator.next_round, "transaction.changes_rows", "False"),),
    ),
    Mutant(
        "read_the_log_to_its_end",
        "a reader that catches up gets every record of the log, durable or not",
        FEED,
        (
            edited(LogCatchUp.after, "while before.version < self._newest():", "while True:"),
            edited(Feed.newest, "self._snapshots.take()", "self._snapshots.take(True)"),
        ),
        SLOW_TO_DISK,
    ),
    Mutant(
        "take_a_restart_for_the_end",
        "a reader that catches up during a restart is told that nothing more is kept",
        FEED,
        (
            edited(
                LogCatchUp.after,
                "return  # the log is ahead of what is durable",
                'raise ReaderTooSlow("gone")',
            ),
        ),
        RESTARTED,
    ),
    Mutant(
        "leave_without_a_word",
        "a stream whose reader has fallen out of history just ends",
        FEED,
        (
            edited(
                ChangesCall._events,
                "if isinstance(error, HistoryTooOld):",
                "if isinstance(error, HistoryTooOld):\n            return",
            ),
        ),
    ),
    Mutant(
        "wake_with_the_second",
        "the first version behind a quiet time wakes nobody",
        FEED,
        (
            edited(
                Feed.committed,
                "    self._tell()",
                "    if len(self._window) > 1:\n        self._tell()",
            ),
        ),
    ),
    Mutant(
        "close_the_gap",
        "versions that came into the log when a generation ended leave no gap in the window",
        FEED,
        (edited(Feed.committed, "if self._window and self._window", "if False and self._window"),),
        RESTARTED,
    ),
    Mutant(
        "share_with_everybody",
        "readers with several filters get the events of the first",
        FEED,
        (edited(FeedParts.events, "setdefault(self._wanted, Tail", "setdefault(None, Tail"),),
    ),
    Mutant(
        "share_a_run_with_everybody",
        "readers that catch up with several filters get the events of the first",
        FEED,
        (edited(FeedParts._caught_up, "run.made(self._wanted,", "run.made(None,"),),
    ),
    Mutant(
        "join_for_another",
        "a reader gets the piece that was joined for a reader at another version",
        FEED,
        (
            edited(
                EventBuffer.behind, "self._joined[:2] != (since, last)", "self._joined[1] != last"
            ),
        ),
    ),
    Mutant(
        "forget_with_the_oldest",
        "events of the window are counted from the wrong one after some were forgotten",
        FEED,
        (
            edited(
                EventBuffer.forget_before,
                "self._ends[:count]",
                "self._ends[: count - 1]",
            ),
        ),
    ),
    Mutant(
        "begin_where_the_run_does",
        "a reader that reuses a run of another reader gets it from its first version",
        FEED,
        (
            edited(SharedCatchUp.after, "run.after(version)", "run.versions"),
            edited(
                Feed.after,
                'assert version.version == since + 1, "catching up leaves nothing out"',
                "pass",
            ),
        ),
    ),
)
