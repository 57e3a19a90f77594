"""Planted bugs: small mutations of the engine, to see whether the simulation would notice.

A simulation that finds nothing proves something only if it would have found a bug. Each mutant here
replaces one function of the product for the time of a run, from outside: the product knows nothing
of it. `hunt` runs seeds of the workloads that the mutant concerns until one fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

from qserver.durability import recovery, saved_pages
from qserver.engine import (
    checkpointer,
    coordinator,
    foreign_keys,
    incarnation,
    log_writer,
    sequence_values,
    sequences,
    shard,
    statements,
)
from qserver.engine.gateway import Gateway
from qserver.engine.incarnation import Fallen
from qserver.engine.messages import Decide, Prepare
from qserver.engine.plan_cache import Plan as SqlPlan
from qserver.engine.published import Published
from qserver.engine.sql_gateway import SqlDatabase
from qserver.sql.definitions import indexes
from qserver.storage import conflict
from qserver.storage.partition import Partition
from qserver.storage.transaction import Part, ScannedRange, Transaction
from qserver.values.keys import TOP
from simulations import begun_mutations, sql_mutations
from simulations import checkpoint_mutations as mutations
from simulations.faults import make_profile
from simulations.run import Plan, Result, Verdict, simulate

CLUMSY: Final = re.compile(r".*(TypeError|AttributeError|NameError)\(")
"""What a mutation raises that was written for other code; being caught by that proves nothing."""

PROFILES_HUNTED: Final = ("calm", "storm", "swarm")


@dataclass(frozen=True, slots=True)
class Mutant:
    """Attributes of the product to replace, each by a function of the original."""

    name: str
    explanation: str
    workloads: tuple[str, ...]
    changes: tuple[tuple[Any, str, Callable[[Any], Any]], ...]


def hunt(mutant: Mutant, seeds: range) -> tuple[Result | None, int]:
    """The first run that fails with the mutant in place, and how many runs it took."""
    runs = 0
    with planted(mutant):
        for seed, workload, profile in product(seeds, mutant.workloads, PROFILES_HUNTED):
            runs += 1
            result = simulate(Plan(seed, workload, make_profile(profile, seed)))
            if result.verdict is not Verdict.PASSED:
                clumsy = [each for each in result.problems if CLUMSY.match(each)]
                assert not clumsy, f"{mutant.name} does not fit the code any more: {clumsy}"
                return result, runs
    return None, runs


@contextmanager
def planted(mutant: Mutant) -> Iterator[None]:
    kept = [(owner, name, owner.__dict__[name]) for owner, name, _ in mutant.changes]
    for owner, name, change in mutant.changes:
        setattr(owner, name, change(owner.__dict__[name]))
    try:
        yield
    finally:
        for owner, name, original in kept:
            setattr(owner, name, original)


def _never(*_: Any) -> None:
    return None


def _without_accepted(original: Any) -> Any:
    def conflict_of(self: shard.Shard, part: Part) -> Any:
        kept, self._accepted = self._accepted, {}
        try:
            return original(self, part)
        finally:
            self._accepted = kept

    return conflict_of


def _without_undecided(original: Any) -> Any:
    def conflict_of(self: shard.Shard, part: Part) -> Any:
        kept, self._undecided = self._undecided, {}
        try:
            return original(self, part)
        finally:
            self._undecided = kept

    return conflict_of


def _acknowledge_before_sync(original: Any) -> Any:
    async def run(self: log_writer.LogWriter) -> None:
        while True:
            group = await self.mailbox.take(8)
            records = [(each.view.version, self.encode(each)) for each in group]
            self.release(group)
            await self.log.append(records)

    return run


def _install_on_one_shard(original: Any) -> Any:
    def decide(self: shard.Shard, message: Decide) -> Any:
        commits = message.commits if self.number % 2 == 0 else ()
        return original(self, Decide(message.round, commits))

    return decide


def _install_all_undecided(original: Any) -> Any:
    def decide(self: shard.Shard, message: Decide) -> Any:
        return original(self, Decide(message.round, tuple(self._undecided)))

    return decide


def _forget_ranges(original: Any) -> Any:
    def scan(self: Transaction, *arguments: Any, **options: Any) -> Any:
        pages = original(self, *arguments, **options)
        self.ranges.pop()
        return pages

    return scan


def _publish_without_the_last_shard(original: Any) -> Any:
    async def second_phase(self: Any, *arguments: Any) -> dict[int, Partition]:
        installed: dict[int, Partition] = await original(self, *arguments)
        if len(installed) > 1:
            installed.popitem()
        return installed

    return second_phase


def _reserve_in_memory_only(original: Any) -> Any:
    def reserve(work: Transaction, sequence: int, count: int) -> range:
        numbers: range = original(work, sequence, count)
        if numbers.start > 1:
            work.writes.clear()  # only the first block ever reaches the log
        return numbers

    return reserve


def _reserve_too_little(original: Any) -> Any:
    def reserve(work: Transaction, sequence: int, count: int) -> range:
        numbers: range = original(work, sequence, count)
        return range(numbers.start, numbers.stop + 1)

    return reserve


def _read_before_durable(original: Any) -> Any:
    def publish(self: Published, view: Any) -> None:
        original(self, view)
        self.durable = view

    return publish


def _do_not_wait_for_durability(original: Any) -> Any:
    async def wait_durable(self: Published, version: int) -> None:
        return None

    return wait_durable


def _run_again_without_the_others(original: Any) -> Any:
    def run_work(self: Any, commit: Any, work: Transaction) -> Any:
        if commit.transaction is not None:
            work.earlier = None
        return original(self, commit, work)

    return run_work


def _retry_what_may_have_happened(original: Any) -> Any:
    return lambda *_, **__: Fallen()


def _ignore_rows_before(original: Any) -> Any:
    def matters(scanned: ScannedRange, was: Any, becomes: Any) -> bool:
        return bool(original(scanned, becomes))

    return matters


def _narrow_every_scan(original: Any) -> Any:
    def scan(self: Transaction, scanned: ScannedRange, *options: Any) -> Any:
        pages = list(original(self, scanned, *options))
        if pages:
            scanned.high = (*pages[-1][0][-1], TOP)
        return iter(pages)

    return scan


def _forget_absent_keys(original: Any) -> Any:
    def get_entry(self: Transaction, tree: int, key: Any, hashed: Any = None) -> Any:
        value = original(self, tree, key, hashed)
        if value is None:
            for seen in self.keys.values():
                seen.pop((tree, key), None)
        return value

    return get_entry


def _resurrect_deleted(original: Any) -> Any:
    def merge(into: Any, writes: Mapping[int, Any]) -> None:
        kept = {
            tree: {key: row for key, row in changes.items() if row is not None}
            for tree, changes in writes.items()
        }
        original(into, kept)

    return merge


def _log_only_the_last_of_a_group(original: Any) -> Any:
    def encode(self: Any, append: Any) -> bytes:
        data: bytes = original(self, append)
        if self.mailbox.statistics().waiting:  # a later round will surely say the same
            append.writes.clear()
            data = original(self, append)
        return data

    return encode


def _miss_half_of_the_difference(original: Any) -> Any:
    def difference(*arguments: Any) -> Iterator[Any]:
        for count, change in enumerate(original(*arguments)):
            if count % 2:
                yield change

    return difference


def _drop_the_first_write(original: Any) -> Any:
    def changed(self: Partition, writes: Any, dropped: Any = ()) -> Any:
        fewer = {
            tree: dict(list(changes.items())[1:]) if len(changes) > 3 else changes
            for tree, changes in writes.items()
        }
        return original(self, fewer, dropped)

    return changed


def _vote_without_looking(original: Any) -> Any:
    def prepare(self: shard.Shard, message: Prepare) -> Any:
        blind = tuple(
            Part(p.position, p.alone, self.partition, {}, [], p.writes, p.dropped)
            if not p.alone
            else p
            for p in message.parts
        )
        return original(self, Prepare(message.round, blind))

    return prepare


ISOLATION: Final = ("list_append", "bank", "ring", "write_skew")
BEGUN: Final = ("sql_bank", "sql_keys")

MUTANTS: Final = (
    Mutant(
        "skip_read_validation",
        "a shard does not compare what was read with what is installed",
        ISOLATION,
        ((shard, "stale_read", lambda original: _never),),
    ),
    Mutant(
        "skip_accepted_check",
        "a shard does not compare with what the same round has accepted",
        ISOLATION,
        ((shard.Shard, "conflict_of", _without_accepted),),
    ),
    Mutant(
        "skip_undecided_check",
        "a shard does not refuse what overlaps a prepared, undecided transaction",
        ISOLATION,
        ((shard.Shard, "conflict_of", _without_undecided),),
    ),
    Mutant(
        "skip_wide_validation",
        "reads of transactions on several shards are not validated",
        ISOLATION,
        ((shard.Shard, "prepare", _vote_without_looking),),
    ),
    Mutant(
        "acknowledge_before_sync",
        "answers leave before the log has synced",
        ("bank", "hot_key", "list_append"),
        ((log_writer.LogWriter, "run", _acknowledge_before_sync),),
    ),
    Mutant(
        "install_on_one_shard_only",
        "the decision reaches only every second shard",
        ("bank", "registers"),
        ((shard.Shard, "decide", _install_on_one_shard),),
    ),
    Mutant(
        "install_the_aborted",
        "a shard installs a transaction that another shard refused",
        ("bank", "ring"),
        ((shard.Shard, "decide", _install_all_undecided),),
    ),
    Mutant(
        "forget_ranges",
        "the footprint lacks the ranges that were scanned",
        ("range_sums",),
        ((Transaction, "scan", _forget_ranges),),
    ),
    Mutant(
        "narrow_every_scan",
        "a scan that ran to its end counts only up to the last key that it found",
        ("range_sums",),
        ((Transaction, "_scan", _narrow_every_scan),),
    ),
    Mutant(
        "ignore_rows_before",
        "a predicate is held against the new row only, not the old one",
        ("range_sums",),
        ((conflict, "_matters", _ignore_rows_before),),
    ),
    Mutant(
        "forget_absent_keys",
        "that a key was found absent is not part of the footprint",
        ("unique_keys", "list_append"),
        ((Transaction, "get_entry", _forget_absent_keys),),
    ),
    Mutant(
        "publish_before_all_installed",
        "the view is published without the last shard's new partition",
        ("bank", "ring", "registers"),
        ((coordinator.Coordinator, "_second_phase", _publish_without_the_last_shard),),
    ),
    Mutant(
        "reserve_in_memory_only",
        "a sequence's later blocks are not logged, so a crash gives them out again",
        ("numbers",),
        ((sequences, "reserve", _reserve_in_memory_only),),
    ),
    Mutant(
        "reserve_too_little",
        "a block of numbers is one longer than what was reserved",
        ("numbers",),
        ((sequences, "reserve", _reserve_too_little),),
    ),
    Mutant(
        "read_before_durable",
        "read-only requests see views that are not durable yet",
        ("list_append", "hot_key", "registers"),
        ((Published, "publish", _read_before_durable),),
    ),
    Mutant(
        "answer_before_durable",
        "a transaction that wrote nothing is answered from a view that is not durable",
        ("list_append", "hot_key", "registers"),
        ((Published, "wait_durable", _do_not_wait_for_durability),),
    ),
    Mutant(
        "run_again_without_the_others",
        "work that is run again does not see what was run before it in the same round",
        ("hot_key", "bank"),
        ((coordinator.Coordinator, "run_work", _run_again_without_the_others),),
    ),
    Mutant(
        "retry_what_may_have_happened",
        "a commit that was under way when the database fell is sent again",
        ("hot_key", "list_append"),
        ((incarnation, "OutcomeUnknown", _retry_what_may_have_happened),),
    ),
    Mutant(
        "skip_catalog_check",
        "a changed definition does not stop those who used the old one",
        ("definitions",),
        ((coordinator.Coordinator, "catalog_conflict", lambda original: _never),),
    ),
    Mutant(
        "resurrect_deleted",
        "recovery forgets deletions",
        ("range_sums", "unique_keys"),
        ((recovery, "merge_writes", _resurrect_deleted),),
    ),
    Mutant(
        "log_only_the_last_of_a_group",
        "a round that is synced together with later ones is logged without its writes",
        ("hot_key", "bank", "list_append"),
        ((log_writer.LogWriter, "encode", _log_only_the_last_of_a_group),),
    ),
    Mutant(
        "miss_half_of_the_difference",
        "comparing two trees overlooks every other change",
        ("range_sums",),
        ((conflict, "difference", _miss_half_of_the_difference),),
    ),
    Mutant(
        "drop_the_first_write",
        "a shard loses the first of many writes to a tree",
        ("registers", "bank", "hot_key"),
        ((Partition, "changed", _drop_the_first_write),),
    ),
    Mutant(
        "cut_before_the_checkpoint",
        "the log is cut before the checkpoint is durable",
        ("bank", "hot_key"),
        ((checkpointer.Checkpointer, "checkpoint", mutations.cut_before_durable),),
    ),
    Mutant(
        "cut_beyond_the_checkpoint",
        "the log is cut up to what is durable, not up to what the checkpoint is of",
        ("bank", "hot_key"),
        ((checkpointer.Checkpointer, "forget", mutations.cut_too_much),),
    ),
    Mutant(
        "take_a_similar_page_for_saved",
        "a page is held for saved because one with the same keys is",
        ("bank", "registers"),
        ((saved_pages.Save, "_new_pages", mutations.take_similar_for_saved),),
    ),
    Mutant(
        "confirm_a_failed_checkpoint",
        "a checkpoint that failed counts as saved",
        ("bank", "hot_key", "registers"),
        ((checkpointer.Checkpointer, "save", mutations.confirm_what_failed),),
    ),
    Mutant(
        "use_page_numbers_again",
        "numbers of an attempt whose outcome is unknown are given to other pages",
        ("bank", "hot_key", "registers", "list_append"),
        ((saved_pages.SavedPages, "begin", mutations.use_numbers_again),),
    ),
    Mutant(
        "forget_pages_too_early",
        "a page of the last checkpoint is forgotten before the next one is durable",
        ("bank", "registers"),
        ((checkpointer.Checkpointer, "save", mutations.forget_before_confirmed),),
    ),
    Mutant(
        "know_what_is_not_durable",
        "after the log has failed, recovery begins with what was published, not what is durable",
        ("bank", "hot_key", "list_append"),
        ((incarnation.Incarnation, "known", mutations.know_what_is_not_durable),),
    ),
    Mutant(
        "keep_plans_of_old_definitions",
        "a plan is kept although a table that it was made from was redefined",
        ("sql_definitions",),
        ((SqlPlan, "holds_in", sql_mutations.keep_plans_of_old_definitions),),
    ),
    Mutant(
        "depend_on_no_definition",
        "a statement commits although a table that its plan was made from was redefined",
        ("sql_definitions",),
        ((statements.StatementRun, "run_plan", sql_mutations.depend_on_no_definition),),
    ),
    Mutant(
        "index_without_footprint",
        "CREATE INDEX does not mind rows that were inserted while it ran",
        ("sql_definitions",),
        ((indexes, "build_index", sql_mutations.index_without_footprint),),
    ),
    Mutant(
        "forget_free_keys",
        "that the keys of new rows are free holds for the view that was read, and is not part of"
        " the footprint",
        ("sql_keys",),
        ((Transaction, "insert_many", sql_mutations.forget_free_keys),),
    ),
    Mutant(
        "refer_without_footprint",
        "that the row is there which another refers to is not part of the footprint",
        ("sql_references",),
        ((foreign_keys, "_look_up", sql_mutations.refer_without_footprint),),
    ),
    Mutant(
        "find_those_who_refer_without_footprint",
        "who deletes a row does not mind others that come to refer to it meanwhile",
        ("sql_references",),
        (
            (
                statements.StatementRun,
                "run_with",
                sql_mutations.find_those_who_refer_without_footprint,
            ),
        ),
    ),
    Mutant(
        "constrain_without_footprint",
        "ADD FOREIGN KEY does not mind rows that were inserted while it looked at the others",
        ("sql_constraints",),
        ((statements, "check_foreign_key", sql_mutations.check_without_footprint),),
    ),
    Mutant(
        "scan_in_any_order_without_footprint",
        "the footprint lacks the ranges that were scanned in no particular order",
        ("sql_predicates", "sql_keys"),
        ((Transaction, "scan_in_any_order", sql_mutations.scan_without_footprint),),
    ),
    Mutant(
        "forget_what_is_left_early",
        "a scan that is left before its end, as for LIMIT, is not part of the footprint",
        ("sql_queue",),
        ((Transaction, "_scan", sql_mutations.forget_what_is_left_early),),
    ),
    Mutant(
        "read_nowait_from_the_newest",
        "what is answered without waiting comes from a view that is not durable",
        ("sql_bank", "sql_keys"),
        ((SqlDatabase, "read_nowait", sql_mutations.read_the_newest),),
    ),
    Mutant(
        "stream_what_is_newer",
        "each page of a stream comes from the view that is durable then",
        ("sql_bank",),
        ((SqlDatabase, "stream", sql_mutations.stream_what_is_newer),),
    ),
    Mutant(
        "reserve_serial_in_memory_only",
        "later blocks of a SERIAL column are not logged, so a crash gives them out again",
        ("sql_bank",),
        ((sequence_values, "reserve", sql_mutations.reserve_serial_in_memory_only),),
    ),
    Mutant(
        "release_what_has_only_begun",
        "the answers of the next group leave when its append has begun",
        ("bank", "hot_key", "list_append"),
        ((log_writer.LogWriter, "run", begun_mutations.release_what_has_only_begun),),
    ),
    Mutant(
        "tell_when_published",
        "who began a transaction without waiting is told of its end before it is durable",
        BEGUN,
        ((coordinator.Coordinator, "next_round", begun_mutations.tell_when_published),),
    ),
    Mutant(
        "tell_of_what_came_to_nothing",
        "who began a transaction without waiting is told that it ended well, though it came to"
        " nothing",
        ("sql_keys",),
        ((SqlDatabase, "write_nowait", begun_mutations.tell_of_what_came_to_nothing),),
    ),
    Mutant(
        "tell_of_what_is_not_durable",
        "who began a transaction without waiting that wrote nothing is told what is not durable",
        ("sql_references", "sql_predicates"),
        ((Gateway, "transact_nowait", begun_mutations.tell_of_what_is_not_durable),),
    ),
    Mutant(
        "run_untried_without_the_others",
        "work that comes untried does not see what was run before it in the same round",
        BEGUN,
        ((coordinator.Coordinator, "run_work", begun_mutations.run_untried_without_the_others),),
    ),
    Mutant(
        "keep_what_was_written_before_an_error",
        "what untried work wrote before it raised is installed with the writes of others",
        BEGUN,
        (
            (
                coordinator.Coordinator,
                "run_work",
                begun_mutations.keep_what_was_written_before_an_error,
            ),
        ),
    ),
)
