"""Planted bugs in history: versions that are gone, found or restored wrongly."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, Final

from qserver.durability.kept import history_begins
from qserver.durability.memory import MemoryScratch
from qserver.durability.saved_pages import Save, SavedPages
from qserver.engine.checkpointer import Checkpointer
from qserver.engine.database import Database
from qserver.engine.history import AsOf, History
from qserver.engine.version_restore import VersionRestore, restore_version
from qserver.engine.work import FOREVER
from qserver.storage.page import Tree
from qserver.storage.snapshot_changes import snapshot_changes
from qserver.storage.transaction import Transaction
from qserver.web.statements.as_of import as_of_given
from simulations.mutants.mutant import Mutant, edited
from simulations.mutants.shapes import Shape
from simulations.sizes import SMALL, Sizes

HISTORY: Final = ("sql_history",)

TRIMMED: Final[Shape] = (
    ("sizes", SMALL),
    ("history", 0.3),
    ("checkpoint_log_bytes", 500),
    ("delay_seconds", 0.005),
    ("cache_bytes", 1 << 30),
    ("probabilities", {"pages_let_go": 0.2, "message_slow": 0.1}),
)
"""Checkpoints all the time, a history that goes on being cut, and hardly a page that stays."""

WHOLE: Final[Shape] = (*TRIMMED, ("history", 1e9))
"""The same, and nothing is too old."""

DOUBTFUL: Final[Shape] = (
    *TRIMMED,
    ("sizes", Sizes(page_entries=3, retry_seconds=0.5)),
    ("probabilities", {"checkpoint_fails": 0.4, "pages_let_go": 0.2}),
)
"""Checkpoints fail though they may be there, and are not tried again for long."""

AT_ONCE: Final[Shape] = (
    ("history", 1e9),
    ("clients", 12),
    ("long_work", 0.0),
    ("rounds_unsynced_most", 1),
    ("probabilities", {"sync_slow": 0.5, "message_slow": 0.2}),
)
"""Many commits wait for the next round."""


def _restore_the_first_table_first(original: Any) -> Any:
    async def turn(
        self: Database, as_of: AsOf, deadline: float = FOREVER, request_id: str | None = None
    ) -> tuple[int, int]:
        old = await self.snapshot_at(as_of, deadline)

        def first(transaction: Transaction) -> Generator[None, None, None]:
            work, now = VersionRestore(old, 1 << 30, transaction), transaction.snapshot.catalog
            for name in sorted(now.tables)[:1]:
                yield from work.restore(name, now.find(name), old.catalog.find(name))

        await self.transact(first, deadline=deadline)
        made: tuple[int, int] = await original(self, as_of, deadline, request_id)
        return made

    return turn


def _let_go_while_it_is_saved(original: Any) -> Any:
    def new_pages(self: Save, page: Tree) -> Iterator[Any]:
        yield from original(self, page)
        if page in self.number_of:
            page.number, page.store = self.number_of[page], self._saved.store
            self._saved.store.cache.keep([page])

    return new_pages


MUTANTS: Final = (
    Mutant(
        "cut_the_log_at_the_horizon",
        "the log is cut up to the first checkpoint of history, not up to the last before it",
        HISTORY,
        (
            edited(
                history_begins,
                "max(len(older) - 1, len(without_log), 0)",
                "min(max(len(older), len(without_log), 0), len(kept) - 1)",
            ),
        ),
        shape=TRIMMED,
    ),
    Mutant(
        "trim_by_the_last_commit",
        "history is counted from the newest version, not from now, and never ends while it rests",
        HISTORY,
        (
            edited(
                Checkpointer.rules,
                "self.versions.now() - self.history",
                "self.versions.durable.time - self.history",
            ),
        ),
        shape=TRIMMED,
    ),
    Mutant(
        "free_what_an_older_checkpoint_has",
        "a page that the new checkpoint has not is freed, though the kept one before it has it",
        HISTORY,
        (
            edited(
                Save.stored, "inherit([], died, before.last_page)", "inherit([], died, before.gone)"
            ),
        ),
        shape=WHOLE,
    ),
    Mutant(
        "read_without_a_lease",
        "who reads a version that was made again holds no page of its checkpoint",
        HISTORY,
        (
            edited(
                History._begin,
                "self._store.new_lease(base.version, version)",
                "Lease(base.version, version)",
            ),
        ),
        shape=(*TRIMMED, ("delay_seconds", 0.02), ("checkpoint_log_bytes", 1)),
    ),
    Mutant(
        "number_scratch_pages_alike",
        "two older versions that were saved in a scratch number their new pages alike",
        HISTORY,
        (edited(History._begin, "self._begun += 1", "pass"),),
        shape=(*WHOLE, ("cache_bytes", 2_000)),
    ),
    Mutant(
        "lose_scratch_pages",
        "pages of an older version are evicted that its scratch does not have",
        HISTORY,
        (edited(MemoryScratch.save_pages, "self._pages.update(pages)", "pass"),),
        shape=(*WHOLE, ("cache_bytes", 2_000)),
    ),
    Mutant(
        "hold_what_nobody_may_read",
        "versions that are kept for the next reader hold their pages when history has ended",
        HISTORY,
        (edited(History._trim, "if each.version >= log_start", ""),),
        shape=TRIMMED,
    ),
    Mutant(
        "believe_that_what_failed_is_not_there",
        "a reader of history looks for a checkpoint that a failed change has dropped",
        HISTORY,
        (edited(Checkpointer.settled, "await self._end_doubt()", "pass"),),
        shape=(
            *DOUBTFUL,
            ("history", 1e9),
            ("checkpoint_log_bytes", 20_000),
            ("checkpoint_seconds", 0.1),
            ("clients", 8),
            ("transactions_per_client", 40),
        ),
    ),
    Mutant(
        "list_from_where_the_log_begins",
        "while checkpoints are dropped, versions are listed from one that is gone already",
        HISTORY,
        (edited(History._newest_segment, "saved.history_start", "saved.log_start"),),
        shape=(
            *TRIMMED,
            ("checkpoint_log_bytes", 1),
            ("clients", 8),
            ("transactions_per_client", 60),
            ("probabilities", {"checkpoint_fails": 0.2}),
        ),
    ),
    Mutant(
        "find_the_version_before_its_time",
        "a version is not yet found at the very time at which it was made",
        HISTORY,
        (
            edited(
                History._halved,
                "decode_time(found[0][1]) <= time",
                "decode_time(found[0][1]) < time",
            ),
        ),
        shape=WHOLE,
    ),
    Mutant(
        "find_the_next_version",
        "a time between two versions finds the later one",
        HISTORY,
        (edited(History._halved, "return low", "return high"),),
        shape=WHOLE,
    ),
    Mutant(
        "miss_the_newest_by_its_time",
        "at the time of the newest version the one before it is found",
        HISTORY,
        (edited(History._found, "newest.time <= as_of", "newest.time < as_of"),),
        shape=WHOLE,
    ),
    Mutant(
        "round_the_time_down",
        "the time of a version, as it is shown, finds the version before",
        HISTORY,
        (edited(as_of_given, "time.timestamp() + MICROSECOND", "time.timestamp()"),),
        shape=WHOLE,
    ),
    Mutant(
        "read_what_is_too_old",
        "a version is read as long as it can be made, however old it is",
        HISTORY,
        (edited(History.check_kept, " or decode_time(after[0][1]) < self.horizon", ""),),
        shape=(*TRIMMED, ("checkpoint_log_bytes", 1_000_000_000), ("checkpoint_seconds", 300.0)),
    ),
    Mutant(
        "list_what_is_too_old",
        "versions are listed by the time at which they were made, not until when they were newest",
        HISTORY,
        (
            edited(
                History._within_history,
                "if each.version <= until and end >= horizon",
                "if each.version <= until and each.time >= horizon",
            ),
        ),
        shape=TRIMMED,
    ),
    Mutant(
        "restore_beside_others",
        "a restore shares its version with transactions that commit at the same moment",
        HISTORY,
        (edited(restore_version, "own_version = True", "own_version = False"),),
        shape=AT_ONCE,
    ),
    Mutant(
        "restore_the_first_table_first",
        "a restore is two versions: the first table, and then all",
        HISTORY,
        ((Database, "restore_version", _restore_the_first_table_first),),
        shape=(("history", 1e9),),
    ),
    Mutant(
        "restore_without_what_came",
        "a restore leaves rows in place that were added since",
        HISTORY,
        (
            edited(
                VersionRestore._change_entries,
                "if not same_row(now, was):",
                "if was is not None and not same_row(now, was):",
            ),
        ),
        shape=(("history", 1e9),),
    ),
    Mutant(
        "restore_whatever_comes_meanwhile",
        "a restore does not depend on rows that others change while it runs",
        HISTORY,
        (
            edited(
                VersionRestore.restore,
                "transaction.ranges.append(ScannedRange(tree, None, None, None))",
                "pass",
            ),
        ),
        shape=AT_ONCE,
    ),
    Mutant(
        "take_back_numbers",
        "a restore sets a sequence back to what it had given out then",
        HISTORY,
        (
            edited(
                VersionRestore.restore,
                "    if now == was:\n        return\n    self._remove",
                "    if now == was:\n"
                "        if isinstance(was, Sequence):\n"
                "            put_state(transaction, was, state_of(self._old, was))\n"
                "        return\n    self._remove",
            ),
        ),
        shape=(("history", 1e9),),
    ),
    Mutant(
        "tell_of_no_new_table",
        "the rows of a table that was made between two versions are not told",
        HISTORY,
        (edited(snapshot_changes, "was is None or _are_alike(was, now)", "_are_alike(was, now)"),),
        shape=(
            ("history", 1e9),
            ("cache_bytes", 1 << 30),
            ("transactions_per_client", 60),
            ("probabilities", {}),
        ),
    ),
    Mutant(
        "let_go_while_it_is_saved",
        "a page may be let go before the checkpoint that has it is durable",
        ("registers", "bank", "list_append"),
        (
            (Save, "_new_pages", _let_go_while_it_is_saved),
            edited(SavedPages._take, "self.store.cache.keep(list(save.number_of))", "pass"),
        ),
        shape=(
            *TRIMMED,
            ("probabilities", {"pages_let_go": 0.3, "sync_fails": 0.05, "checkpoint_fails": 0.2}),
        ),
    ),
)
