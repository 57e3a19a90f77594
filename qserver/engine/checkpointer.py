"""The checkpointer: the actor that saves the durable snapshot now and then, beside all commits.

    due: enough log, enough time, or a request
        ─► new pages, a few at a time ─► the checkpoint's record ─► forget what nobody needs
        ─► columns of pages that were loaded, and those that scans have filled

A snapshot is immutable, so commits go on while it is saved, and a checkpoint yields to everything
else: other tasks run after each page. A step saves a bounded number of bytes with one call, so a
commit waits in the log for one step at most. The checkpointer then pauses in proportion to the
step's duration. The pauses shrink as the log behind the last checkpoint grows from the length that
makes one due to twice that. There, and while memory is short or the database closes, it hurries: it
does not pause, and its steps are larger. So it always catches up.

Only a durable checkpoint lets anything be forgotten. If saving fails, the log is whole without it:
the failure is reported and the checkpoint tried again later, while commits go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from math import inf
from typing import Final

import msgspec
import trio

from qserver.durability.branch_log import BranchLog
from qserver.durability.column_numbers import PENDING
from qserver.durability.kept import (
    KeptCheckpoint,
    RetentionRules,
    decode_numbers,
)
from qserver.durability.pinning import write_names
from qserver.durability.port import Log, StoredPage
from qserver.durability.recovery import MEMORY_OF_LOG, SHARE_OF_REPLAY, Recovered
from qserver.durability.saved_columns import (
    columns_of_loaded,
    filled_columns,
    loaded_pages,
    pending_after,
)
from qserver.durability.saved_pages import Save, SavedPages
from qserver.engine.mailbox import Reply
from qserver.engine.versions import Versions
from qserver.engine.world import Check, Compute, compute_here
from qserver.errors import DataCorrupted, LogFailed, OutOfMemory
from qserver.limits import (
    CHECKPOINT_LOG_BYTES,
    CHECKPOINT_PAGES_AT_ONCE,
    CHECKPOINT_PAUSE_SECONDS_MAX,
    CHECKPOINT_RETRY_SECONDS,
    CHECKPOINT_SECONDS,
    CHECKPOINT_STEP_BYTES,
    CHECKPOINT_TIME_SHARE,
)
from qserver.storage.page import Branch
from qserver.storage.snapshot import Snapshot
from qserver.values.schema import Table

RECORDS_FORGOTTEN_AT_ONCE: Final = 1000

ROOM_POLL_SECONDS: Final = 0.01
"""How often a commit that waits for room looks whether there is some."""

PAGES_IN_A_HURRY: Final = 16
"""How many pages are encoded before others run, in a hurry: half a millisecond."""

STEPS_IN_A_HURRY: Final = 8
"""How many steps become one, in a hurry."""


class CheckpointPolicy(msgspec.Struct, frozen=True):
    """When a checkpoint is due, and how small its steps are."""

    log_bytes: int = CHECKPOINT_LOG_BYTES
    seconds: float = CHECKPOINT_SECONDS
    pages_at_once: int = CHECKPOINT_PAGES_AT_ONCE
    step_bytes: int = CHECKPOINT_STEP_BYTES
    time_share: float = CHECKPOINT_TIME_SHARE
    history: float = 0.0
    """For how many seconds older versions are kept."""


class CheckpointerStatistics(msgspec.Struct, frozen=True):
    version: int
    log_bytes: int
    """Bytes of log behind the newest checkpoint."""
    pages: int
    checkpoints: int
    pages_saved: int
    bytes_saved: int
    pages_forgotten: int
    failures: int
    trouble: str | None
    """Why the last attempt failed, if it did."""


class Checkpointer:
    def __init__(
        self,
        log: Log,
        versions: Versions,
        recovered: Recovered,
        policy: CheckpointPolicy,
        report: Callable[[str, Exception], None],
        compute: Compute = compute_here,
    ) -> None:
        self.log = log
        self.versions = versions
        self.saved = recovered.saved
        self._policy = policy
        self.history = policy.history
        """For how many seconds older versions are kept."""
        self._report = report
        self._compute = compute
        self.logged = recovered.log_bytes
        self.ahead = recovered.ahead_bytes
        """How much of that made pages that are saved already."""
        self._all_forgotten = False
        """Whether nothing older is left; an earlier process may have stopped halfway."""
        self._news = trio.Event()
        self._asked: list[Reply[None]] = []
        self._changing = trio.Lock()
        """Held while kept checkpoints change."""
        self._hurries = False
        """Whether a caller waits for the end, so that no step pauses."""
        self.cache = self.saved.store.cache
        self._is_wanted = self.saved.is_pending
        """Whether a checkpoint is to begin soon."""
        self._must_save = False
        """Whether it is to pause nowhere: memory or disk is short."""
        self._must_copy = False
        """Whether a parent wants to forget the records that it lends."""
        self._trouble: LogFailed | DataCorrupted | None = None
        self._checkpoints = self._failures = 0
        self._pages_saved = self._bytes_saved = self._pages_forgotten = 0

    async def run(self) -> None:
        self.cache.note_unsaved(self, self._unsaved())
        while True:
            await self._wait_until_due()
            counted = self.logged, self.saved.store.copied
            await self.versions.wait_durable(self.versions.newest.version)  # all that is counted
            asked = self._asked.copy()
            first = self.versions.durable.version
            self.versions.renew(self.saved.store.new_lease(first))
            try:
                await self.checkpoint(self.versions.durable, *counted)
            except (LogFailed, DataCorrupted) as error:
                self._failures += 1
                self._trouble = error
                self._report("a checkpoint failed, and is tried again", error)
                for reply in asked:
                    reply.fail(error)
                del self._asked[: len(asked)]
                await trio.sleep(CHECKPOINT_RETRY_SECONDS)
            else:
                self._trouble = None
                for reply in asked:
                    reply.put(None)
                del self._asked[: len(asked)]

    async def _wait_until_due(self) -> None:
        with trio.move_on_after(self._policy.seconds):
            while not (self.logged >= self._policy.log_bytes or self._asked or self._is_wanted):
                self._news = trio.Event()
                await self._news.wait()

    def note_logged(self, size: int) -> None:
        """Count bytes by which the log has grown."""
        self.logged += size
        self.cache.note_unsaved(self, self._unsaved())
        if self.logged >= self._policy.log_bytes:
            self._news.set()

    def _unsaved(self) -> int:
        """Estimate the bytes of unsaved pages: new entries, and old ones beside them."""
        copied = self.saved.store.copied * self.cache.entry_bytes
        return int(MEMORY_OF_LOG * (self.logged - self.ahead) + copied)

    def save_soon(self, *, hurry: bool = True) -> None:
        """Begin a checkpoint soon; without pauses if it is to `hurry`."""
        self._is_wanted = True
        self._must_save = self._must_save or hurry
        self._news.set()

    async def wait_for_room(self) -> None:
        """Return when unsaved pages, of all databases, leave room for more.

        Raises OutOfMemory while they cannot be saved.
        """
        while self.cache.is_full:
            if self._trouble is not None:
                raise OutOfMemory(
                    "unsaved pages take all the memory that they may have, and cannot be saved",
                    detail=str(self._trouble),
                    hint="Make room on the disk; the database goes on by itself.",
                )
            self.cache.save_some()
            await trio.sleep(ROOM_POLL_SECONDS)

    async def save_now(self, *, hurry: bool = False) -> None:
        """Return when a checkpoint has everything durable now; raise LogFailed if it fails.

        `hurry` ends all pauses for good: this checkpoint is the last.
        """
        self._hurries = self._hurries or hurry
        reply = Reply[None]()
        self._asked.append(reply)
        self._news.set()
        await reply.wait()

    async def stop_borrowing(self) -> None:
        """Return when no record of the parent is needed, if this is a branch."""
        if isinstance(self.log, BranchLog) and self.log.base.borrows:
            self._must_copy = True
            await self.save_now()

    async def make_room_for_branch(self) -> None:
        """Save everything durable now, unless memory has room for twice what is unsaved.

        Not while checkpoints fail: the next attempt may take long to come.
        """
        if not self.cache.may_double(self._unsaved()) and self._trouble is None:
            self.save_soon()
            await self.save_now()

    def end(self, error: Exception) -> None:
        """Fail the waiters: no checkpoint will be saved any more."""
        self.cache.forget_unsaved(self)
        for reply in self._asked:
            reply.fail(error)

    # --- one checkpoint ---

    async def checkpoint(self, snapshot: Snapshot, logged: int, copied: int) -> None:
        """Save a durable snapshot, and forget what neither it nor history needs.

        `logged`, `copied`: what was counted of the log and the entries that it has.
        """
        await self._end_doubt()
        store, last_page = self.saved.store, self.saved.last_confirmed
        loaded = await self._loaded(snapshot)
        self.saved.is_pending = self.saved.is_pending or bool(loaded)
        if snapshot.version > self.saved.version:
            await self.save(self.saved.begin(snapshot), logged)
            self._checkpoints += 1
        self.logged -= logged
        self.ahead = 0
        store.copied -= copied
        self._is_wanted = self._must_save = False
        self.cache.note_unsaved(self, self._unsaved())
        await self._thin_out()
        behind = self.saved.log_start
        start = self.saved.cut_log(self.rules().horizon)
        store.trim(start)
        await self._end_borrowing(start)
        await self.forget(behind, start)
        if loaded:
            await self._compute(_load_modules)
        await self._write(self._columns(loaded, last_page))
        self.saved.columns_to = self.saved.last_confirmed
        if self.saved.is_pending:
            await self.log.forget(start, [PENDING])
            self.saved.is_pending = False

    async def _loaded(self, snapshot: Snapshot) -> list[tuple[Branch, Table]]:
        """Return the pages whose columns are to be made, after a start also those of before."""
        found = []
        for each in loaded_pages(snapshot, self.saved.has_columns, not self._hurries):
            if each is None:
                await trio.lowlevel.checkpoint()
            else:
                found.append(each)
        return found

    async def _end_borrowing(self, start: int) -> None:
        """Need the records of the parent no longer, if the log begins later, or if asked to."""
        log = self.log
        if not isinstance(log, BranchLog) or not log.base.borrows:
            return
        if start >= log.base.version:
            await log.drop_borrowed()
        elif self._must_copy:
            began, after = trio.current_time(), log.base.borrowed_after
            while after < log.base.version:
                after = await log.copy_borrowed(after)
                began = await self._pause(began)
            await log.end_borrowing()
        self._must_copy = False

    def rules(self) -> RetentionRules:
        """Return which checkpoints are to be kept now.

        The log between two of them is replayed in memory, so where that is small they are closer.
        """
        horizon = self.versions.now() - self.history if self.history else inf
        replayed = (self.cache.most >> SHARE_OF_REPLAY) // MEMORY_OF_LOG
        return RetentionRules(horizon, min(self._policy.log_bytes, replayed))

    async def settled(self) -> SavedPages:
        """Return what is saved, once the log is known to have exactly these checkpoints."""
        await self._end_doubt()
        return self.saved

    async def _end_doubt(self) -> None:
        """Ask the log for the outcome of the last change, if that failed or was cancelled."""
        async with self._changing:
            if self.saved.doubt is not None:
                outlines = await self.log.load_outlines()
                self.saved.resolve({version for version, _ in outlines})

    # --- pins ---

    async def pin(self, name: str, version: int) -> KeptCheckpoint | None:
        """Keep the checkpoint from which a version can be rebuilt, until `unpin`; return it.

        The records from there to the version are lent to the name, until `take_back`. None: the
        version cannot be rebuilt any more.
        """
        await self._end_doubt()
        async with self._changing:
            kept = self.saved.base_of(version)
            if kept is None:
                return None
            if name not in kept.names:  # from now on, however the next step ends
                kept.names = [*kept.names, name]
                if kept.version < version:
                    kept.lent = [*kept.lent, name]
                await self._name(kept)
            return kept

    async def take_back(self, name: str) -> None:
        """Lend no records to a name any more; what it has pinned stays."""
        await self._let_go(name, pinned=True)

    async def unpin(self, name: str) -> None:
        """Remove the pin of a name, if there is one, and lend it nothing."""
        await self._let_go(name, pinned=False)

    async def _let_go(self, name: str, *, pinned: bool) -> None:
        await self._end_doubt()
        async with self._changing:
            for kept in self.saved.kept:
                if name in kept.lent or (name in kept.names and not pinned):
                    lent = [each for each in kept.lent if each != name]
                    names = [each for each in kept.names if pinned or each != name]
                    await self._name(msgspec.structs.replace(kept, names=names, lent=lent))
                    kept.names, kept.lent = names, lent

    async def _name(self, kept: KeptCheckpoint) -> None:
        await write_names(self.log, kept, self.saved.version, self.versions.durable.shards)

    @property
    def held_by(self) -> list[str]:
        """To whom records are lent that nobody else needs."""
        return self.saved.held_by(self.rules().horizon)

    async def _thin_out(self) -> None:
        """Drop the kept checkpoints that history does not need, one after the other."""
        began = trio.current_time()
        while await self._drop_one():
            began = await self._pause(began)

    async def _drop_one(self) -> bool:
        saved = self.saved
        async with self._changing:
            at = saved.next_to_drop(self.rules())
            if at is None:
                return False
            drop = saved.drop(at, await self._gone(at), await self._gone(at + 1))
            saved.doubt = drop
            await self.log.change_checkpoints(*drop.stored())
            saved.dropped(drop)
            saved.doubt = None
            return True

    async def _gone(self, at: int) -> list[int]:
        """Return the pages of the previous kept checkpoint that this one lacks."""
        kept = self.saved.kept[at]
        if kept is self.saved.kept[-1]:
            return self.saved.gone
        parts = await self.log.load_parts(kept.version) if kept.gone else None
        return decode_numbers(kept.version, parts.gone or b"") if parts else []

    async def save(self, save: Save, logged: int = 0) -> None:
        note = [pending_after(self.saved.columns_to)] if self.saved.is_pending else []
        await self._write(chain(note, save.pages()))
        for _ in save.sort_out():
            await trio.lowlevel.checkpoint()
        async with self._changing:
            log_end = self.saved.kept[-1].log_end + logged
            row = save.stored(self.rules(), log_end)
            self.saved.doubt = save
            await self.log.save_checkpoint(save.snapshot.version, *row)
            self.saved.confirm(save)
            self.saved.doubt = None

    def _columns(
        self, loaded: list[tuple[Branch, Table]], last: int
    ) -> Iterator[StoredPage | None]:
        """Yield columns of pages that the newest checkpoint has: of those that were loaded for it,
        and those that scans have filled of pages up to a number, which it has left in place."""
        for page, table in sorted(loaded, key=lambda each: each[0].number):
            yield from columns_of_loaded(page, table)
            yield pending_after(page.number)
        first = self.log.base.last_page + 1 if isinstance(self.log, BranchLog) else 1
        for page in self.saved.pages_with_new_columns(last):
            if page.number >= first:
                yield from filled_columns(page)

    async def _write(self, pages: Iterator[StoredPage | None]) -> None:
        """Save pages, a few at a time; None takes as long as a page."""
        step: list[StoredPage] = []
        size = 0
        began = trio.current_time()
        for page in pages:
            if page is not None:
                step.append(page)
                size += len(page[1])
            hurries = self._patience() == 0
            times = STEPS_IN_A_HURRY if hurries else 1
            most = self._policy.pages_at_once, self._policy.step_bytes
            if len(step) >= times * most[0] or size >= times * most[1]:
                await self._save_pages(step, size)
                began = await self._pause(began)
                step, size = [], 0
            elif page is None or not (hurries and len(step) % PAGES_IN_A_HURRY):
                await trio.lowlevel.checkpoint()
        if step:
            await self._save_pages(step, size)

    async def _save_pages(self, pages: list[StoredPage], size: int) -> None:
        await self.log.save_pages(pages)
        self._pages_saved += len(pages)
        self._bytes_saved += size

    async def _pause(self, began: float) -> float:
        """Leave the loop and the log to others, for longer the longer the last step took.

        `began`: when that step did. Returns when the next one does.
        """
        patience = self._patience()
        if patience:
            took = trio.current_time() - began
            pause = took * (1 / self._policy.time_share - 1) * patience
            await trio.sleep(min(pause, CHECKPOINT_PAUSE_SECONDS_MAX))
        return trio.current_time()

    def _patience(self) -> float:
        """Return how much of its pauses the checkpointer takes: from all, 1, to none, 0.

        It is what a restart would replay that shortens them.
        """
        if self._hurries or self._must_save:
            return 0.0
        return min(max(2 - self.logged / self._policy.log_bytes, 0.0), 1.0)

    async def forget(self, behind: int, version: int) -> None:
        """Forget the log up to a version and all unreferenced pages, in small steps."""
        self._all_forgotten = self._all_forgotten and behind == version
        began = trio.current_time()
        some = self.saved.some_to_forget(self._policy.pages_at_once)
        while some or not self._all_forgotten:
            behind = min(behind + RECORDS_FORGOTTEN_AT_ONCE, version)
            await self.log.forget(behind, some)
            self.saved.forgotten(some)
            self._pages_forgotten += len(some)
            self._all_forgotten = behind == version
            some = self.saved.some_to_forget(self._policy.pages_at_once)
            if some or not self._all_forgotten:
                began = await self._pause(began)

    def statistics(self) -> CheckpointerStatistics:
        return CheckpointerStatistics(
            self.saved.version,
            self.logged,
            self.saved.count,
            self._checkpoints,
            self._pages_saved,
            self._bytes_saved,
            self._pages_forgotten,
            self._failures,
            None if self._trouble is None else str(self._trouble),
        )

    def __repr__(self) -> str:
        return f"the checkpointer after {self._checkpoints} checkpoints, with {self.saved!r}"


def _load_modules(check: Check) -> None:
    """Import the modules with numpy, which takes a tenth of a second."""
    import qserver.values.saved_vectors  # noqa: F401
