"""Checks a data file: reads everything, and compares everything.

    the file     SQLite's own structure
    the log      the newest checkpoint and the records after it, with their checksums
    contents     trees, tables and indexes, see `check_snapshot`
    history      older checkpoints, their records, the parent's pages, leaked pages, saved columns,
                 see `check_history`

A database does the first half when it opens, and refuses damaged files. The second half reads every
row, and finds what checksums cannot: intact bytes with wrong contents.

A problem is damage: stored data cannot be read, or will be lost. A warning is wasted space.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
import trio

from qserver.durability.branch_files import open_with_parents
from qserver.durability.branch_log import BranchLog
from qserver.durability.check_history import HistoryCheck
from qserver.durability.check_snapshot import problems_of
from qserver.durability.data_folder import SUFFIX, name_of
from qserver.durability.port import Log
from qserver.durability.recovery import Recovered, recover
from qserver.durability.sqlite import SqliteLog
from qserver.errors import DataCorrupted, PageUnreadable
from qserver.limits import SHARDS_DEFAULT
from qserver.storage.page import Leaf, Tree

PROBLEMS_MAX: Final = 20
"""More are of no use, and a damaged index has one for each row."""
STEPS_BEFORE_YIELDING: Final = 2000

Note = Callable[[float], None]
"""Told the share of the work that is done, now and then."""


class Report(msgspec.Struct, frozen=True):
    version: int = 0
    checkpoint: int = 0
    """The version of the newest checkpoint; 0 if there is none."""
    log_bytes: int = 0
    """Of the log behind it."""
    pages: int = 0
    """Of the newest checkpoint."""
    ranges: int = 0
    rows: dict[str, int] = {}
    """By table."""
    checkpoints: int = 0
    """How many are kept."""
    branch_of: str | None = None
    """The name of the log whose pages it shares."""
    leaked_bytes: int = 0
    """What pages take that nobody needs."""
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def is_sound(self) -> bool:
        return not self.problems

    def __str__(self) -> str:
        rows = sum(self.rows.values())
        found = "no problem" if self.is_sound else "\n".join(self.problems)
        return (
            f"version {self.version}, {len(self.rows)} tables, {rows:,} rows, {self.ranges} ranges;"
            f" a checkpoint of version {self.checkpoint} with {self.pages:,} pages,"
            f" and {self.log_bytes:,} bytes of log behind it\n{found}"
        )


async def check(log: Log, own: SqliteLog, note: Note = lambda share: None) -> Report:
    """Check a log that no database is open on; `own`: its own file, without its parents."""
    return await Check(log, own, note).run()


async def check_file(path: Path, note: Note = lambda share: None) -> Report:
    """Check an existing file. Raises as `open_log` does if it cannot be opened."""
    if not await trio.Path(path).exists():
        raise DataCorrupted(f"{path} does not exist", hint="Name a data file of qserver.")
    async with open_with_parents(path) as opened:
        return await check(opened.log, opened.own, note)


class Check:
    def __init__(self, log: Log, own: SqliteLog, note: Note) -> None:
        self._log = log
        self._own = own
        self._note = note
        self._problems: list[str] = []
        self._steps = 0
        self._steps_expected = 1

    async def run(self) -> Report:
        troubles = await self._own.troubles()
        self._problems += [f"the file: {trouble}" for trouble in troubles]
        if isinstance(self._log, BranchLog) and await self._log.load_checkpoint() is None:
            return Report(
                branch_of=self._log.base.parent,
                problems=tuple(self._problems),
                warnings=("a branch that was not made to its end; the next start removes it",),
            )
        try:
            recovered = await recover(self._log, SHARDS_DEFAULT)
        except DataCorrupted as error:
            self._problems.append(f"{error}. {error.detail or ''}".strip())
            return Report(problems=tuple(self._problems))
        self._steps_expected = _steps_of(recovered)
        leaves: set[int] = set()
        await self._check_contents(recovered, leaves)
        path = self._own.path
        history = HistoryCheck(self._log, self._own, name_of(path), leaves, _beside(path))
        await self._check_history(history)
        snapshot = recovered.snapshot
        return Report(
            snapshot.version,
            recovered.saved.version,
            recovered.log_bytes,
            recovered.saved.count,
            sum(len(tree.ranges) for _, tree in snapshot.trees.items()),
            {table.key: snapshot.count(table.id) for table in snapshot.catalog.tables.values()},
            history.checkpoints,
            self._log.base.parent if isinstance(self._log, BranchLog) else None,
            history.leaked_bytes,
            tuple(self._problems),
            tuple(history.warnings),
        )

    async def _check_contents(self, recovered: Recovered, leaves: set[int]) -> None:
        """Check the newest snapshot, and collect the numbers of the leaves read."""

        def enter(page: Tree) -> bool:
            if isinstance(page, Leaf):
                leaves.add(page.number)
            return True

        try:
            for problem in problems_of(recovered.snapshot, enter):
                if problem is not None:
                    self._problems.append(problem)
                if self._has_enough():
                    break
                await self._step()
        except DataCorrupted as error:
            self._problems.append(f"{error}. {error.detail or ''}".strip())
        except PageUnreadable as error:
            if not self._problems:  # which may be nothing but the disk
                raise
            self._problems.append(str(error))
        except (TypeError, ValueError, ArithmeticError, LookupError) as error:
            self._problems.append(f"there are values that do not belong where they are: {error}")

    async def _check_history(self, history: HistoryCheck) -> None:
        if self._has_enough():
            return
        async for _ in history.run():
            await self._step()
        self._problems += history.problems
        if len(self._problems) > PROBLEMS_MAX:
            del self._problems[PROBLEMS_MAX:]
            self._has_enough()

    def _has_enough(self) -> bool:
        """Return whether there are too many problems to go on; report that once."""
        if len(self._problems) == PROBLEMS_MAX:
            self._problems.append("there may be more; these were enough")
        return len(self._problems) > PROBLEMS_MAX

    async def _step(self) -> None:
        self._steps += 1
        if self._steps % STEPS_BEFORE_YIELDING == 0:
            self._note(min(self._steps / self._steps_expected, 1.0))
            await trio.lowlevel.checkpoint()


def _beside(path: Path) -> Callable[[str], bool]:
    """Return a function that tells whether the folder of a log has a file of a given name."""
    return lambda name: path.with_name(f"{name}{SUFFIX}").exists()


def _steps_of(recovered: Recovered) -> int:
    """Estimate the steps of the whole check: pages, rows, entries."""
    snapshot, saved = recovered.snapshot, recovered.saved
    rows = sum(
        snapshot.count(table.id) * (1 + len(table.indexes))
        for table in snapshot.catalog.tables.values()
    )
    return 1 + rows + 2 * saved.count + sum(each.gone for each in saved.kept)
