"""Planted bugs that change one place in the text of a function: a bound, an order, a lost case.

They are as small as a mistake gets, and each was written to pass for right on a first look.
"""

from __future__ import annotations

from typing import Any, Final

from qserver.durability.recovery import Replay
from qserver.durability.saved_pages import Save, SavedPages
from qserver.engine import sequence_states
from qserver.engine.checkpointer import Checkpointer
from qserver.engine.coordinator import Coordinator
from qserver.engine.gateway import Gateway
from qserver.engine.log_writer import LogWriter
from qserver.engine.sequences import Sequences
from qserver.engine.versions import Versions
from qserver.query import foreign_keys
from qserver.storage import btree, conflict, routing
from qserver.storage.transaction import Transaction
from simulations.mutants.mutant import Mutant, edited
from simulations.mutants.shapes import CROWDED, SYNCED_IN_BATCHES
from simulations.sizes import SMALL

_SMALL: Final = (("sizes", SMALL),)
_SLOW_SYNCS: Final = (
    ("probabilities", {"sync_slow": 0.7, "sync_fails": 0.05, "process_crash": 0.01}),
)


def _mutant(
    name: str,
    explanation: str,
    workloads: tuple[str, ...],
    function: Any,
    old: str,
    new: str,
    shape: tuple[tuple[str, Any], ...] = (),
) -> Mutant:
    return Mutant(name, explanation, workloads, (edited(function, old, new),), shape)


MUTANTS: Final = (
    _mutant(
        "see_the_others_before_itself",
        "work that is run again sees a row as others of its round wrote it, not as it did itself",
        ("sql_upserts", "bank"),
        Transaction.get_entry,
        "if changes is not None and key in changes:\n        return changes[key]\n    if",
        "if changes and key in changes and key not in (self.earlier or {}).get(tree, ()):\n"
        "        return changes[key]\n    if",
    ),
    _mutant(
        "take_for_free_what_the_round_wrote",
        "an INSERT of several rows that is run again does not see keys that its round has taken",
        ("sql_upserts",),
        Transaction._are_free,
        "(self.writes, self.earlier)",
        "(self.writes,)",
        (*CROWDED, ("long_work", 0.0)),
    ),
    _mutant(
        "take_two_unique_keys_for_free",
        "an INSERT of two rows does not look whether another row has their unique key",
        ("sql_upserts",),
        Transaction._entries_if_free,
        "index.unique and not",
        "index.unique and len(rows) > 2 and not",
    ),
    _mutant(
        "file_a_separator_to_the_left",
        "of a batch, a key that is equal to a separator goes to the page on its left",
        ("sql_upserts", "range_sums"),
        btree._changed_branch,
        "while keys[first - 1] >= low",
        "while keys[first - 1] > low",
        _SMALL,
    ),
    _mutant(
        "join_one_entry_too_many",
        "two pages are joined that have one entry more than fits in a page",
        ("range_sums", "sql_queue"),
        btree._small_joined,
        "<= PAGE_ENTRIES_MAX",
        "<= PAGE_ENTRIES_MAX + 1",
        _SMALL,
    ),
    _mutant(
        "ignore_rows_that_come",
        "a row that comes to satisfy the predicate of a scan is no conflict",
        ("range_sums", "sql_predicates"),
        conflict.stale_read,
        "matters(scanned, was, becomes)",
        "matters(scanned, was)",
    ),
    _mutant(
        "set_versions_back_with_the_clock",
        "where the clock is set back, a version is older than the one before",
        ("bank", "hot_key"),
        Coordinator.next_round,
        "max(newest.time, self.versions.now())",
        "self.versions.now()",
    ),
    _mutant(
        "redefine_beside_others",
        "a definition that another transaction of the round changes is no conflict",
        ("definitions", "sql_definitions"),
        Coordinator.catalog_conflict,
        "(self.versions.newest.catalog, redefined)",
        "(self.versions.newest.catalog,)",
    ),
    _mutant(
        "wake_one_version_early",
        "who waits for a version is woken when the one before is durable",
        ("list_append", "bank"),
        Versions.mark_durable,
        "if wanted <= version:",
        "if wanted <= version + 1:",
    ),
    _mutant(
        "release_by_the_first_of_a_group",
        "a group counts as durable up to its first version",
        ("bank", "hot_key"),
        LogWriter.release,
        "group[-1].snapshot.version",
        "group[0].snapshot.version",
    ),
    _mutant(
        "wait_for_the_version_before",
        "who has only read is answered when the version before is durable",
        ("list_append", "bank"),
        Gateway._try,
        "yield _durable(generation, snapshot.version, attempt.deadline)",
        "yield _durable(generation, snapshot.version - 1, attempt.deadline)",
    ),
    _mutant(
        "refuse_by_what_is_not_durable",
        "an error leaves before what it was caused by is durable",
        ("sql_keys",),
        Gateway._run,
        "yield _durable(generation, snapshot.version, attempt.deadline)",
        "pass",
        _SLOW_SYNCS,
    ),
    _mutant(
        "recover_the_time_of_the_checkpoint",
        "recovery leaves the time of the last record behind",
        ("bank",),
        Replay.apply,
        "self.version, self._time = record.version, record.time",
        "self.version = record.version",
    ),
    _mutant(
        "hand_out_numbers_of_trees_again",
        "recovery does not know which numbers of trees the log has handed out",
        ("definitions", "sql_definitions"),
        Replay.apply,
        "record.trees_used",
        "self._catalog.trees_used",
    ),
    _mutant(
        "cross_off_the_wrong_pages",
        "other pages are crossed off than those that were forgotten",
        ("range_sums", "bank"),
        SavedPages.forgotten,
        "first.numbers[len(first.numbers) - len(numbers) :]",
        "first.numbers[: len(numbers)]",
    ),
    _mutant(
        "forget_a_page_below_a_new_branch",
        "a page of the checkpoint is forgotten although a new branch leads to it",
        ("range_sums", "bank"),
        Save._new_pages,
        "self._kept.add(page.number)",
        "pass",
        _SMALL,
    ),
    _mutant(
        "forget_the_log_in_whole_pieces",
        "the log is forgotten up to the end of a piece, which may be behind the checkpoint",
        ("bank", "hot_key"),
        Checkpointer.forget,
        "min(behind + RECORDS_FORGOTTEN_AT_ONCE, version)",
        "behind + RECORDS_FORGOTTEN_AT_ONCE",
    ),
    _mutant(
        "follow_the_first_of_a_cascade",
        "of the rows that a cascade takes along, only those that refer to the first follow",
        ("sql_references",),
        foreign_keys.enforce,
        "everything += yield from _paired(more)",
        "everything += yield from _paired(more[:1])",
    ),
    _mutant(
        "reserve_of_what_was_dropped",
        "who reserves numbers does not mind that the sequence was dropped or redefined",
        ("sql_sequences",),
        sequence_states._used,
        "now.id > 0",
        "now.id > 10**9",
    ),
    _mutant(
        "keep_the_cache_at_setval",
        "cached numbers are given after setval, too",
        ("sql_sequences",),
        Sequences.set,
        "cache.drop()",
        "pass",
    ),
    _mutant(
        "take_what_is_cached_of_old",
        "who wants several numbers is given cached ones, of whichever state they are",
        ("sql_sequences",),
        Sequences.take_of_state,
        "while cache.state != self._state_now(sequence) or cache.length < count:",
        "while cache.length < count:",
    ),
    _mutant(
        "ask_the_shards_of_the_keys_alone",
        "a range is compared only on the shards where a key was read or written, if one was",
        ("range_sums",),
        routing.parts_of,
        "shares[each.shard].scans.append((each, scanned))",
        "(not shares or each.shard in shares) and shares[each.shard].scans.append((each, scanned))",
    ),
    _mutant(
        "decide_beside_a_round_that_waits",
        "a commit is decided where it is submitted although a round before it waits to go on",
        ("bank", "ring", "range_sums"),
        Coordinator.submit,
        "self._readiness is IDLE and requests.is_empty and requests.may_pass_by()",
        "self._readiness is IDLE and requests.may_pass_by()",
    ),
    _mutant(
        "answer_a_batch_whose_sync_failed",
        "a group that ended at the end of its batch is released, whether its sync failed or not",
        ("sql_bank", "sql_keys", "sql_once"),
        LogWriter._write_gathered,
        "isinstance(appending, Ended) and appending.error is None",
        "isinstance(appending, Ended)",
        shape=SYNCED_IN_BATCHES,
    ),
    _mutant(
        "answer_a_batch_that_is_being_written",
        "the answers of a batch leave when its append has begun, and the log writer's task waits",
        ("sql_bank", "sql_keys", "sql_once"),
        LogWriter._write_gathered,
        "self._begun = Begun(group, appending)",
        "self._begun = Begun(self.release(group) or group, appending)",
        shape=SYNCED_IN_BATCHES,
    ),
    _mutant(
        "forget_what_came_behind_a_batch",
        "rounds that the log writer's task takes together with the group of a batch are lost",
        ("sql_bank", "sql_keys"),
        LogWriter._next,
        "begun.following = group",
        "begun.following = group[1:]",
    ),
)
