"""Checks what a log keeps besides its newest snapshot: older checkpoints, records, and pages.

    kept          k1 ────────── k2 ──────── k3 ─────────── newest
    checked       its pages     its pages   its pages      its pages       each page once
                  without k2's  without k3's

The check walks checkpoints from the newest to the oldest, and reads a page in the first one that
has it. So `_place` tells the newest checkpoint that needs each page, which the lists beside the
checkpoints must match (see `kept`): no listed page, gone or dead, is still needed, and every
unneeded page is listed, so that it is forgotten some day. A page that is neither needed nor listed
is *leaked*: it wastes its bytes. So are columns of such a page; those of others are compared with
their rows (see `check_columns`).

A branch needs pages of its parent, which keeps those of the checkpoint pinned for it and no others.
So every parent page of the branch must belong to that checkpoint.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from itertools import groupby
from typing import Protocol

import msgspec

from qserver.durability.branch_log import BASE_PAGE, BranchLog
from qserver.durability.check_columns import ColumnsCheck
from qserver.durability.check_snapshot import pages_problems
from qserver.durability.checkpoint import (
    FORMAT,
    AnyCheckpoint,
    Checkpoint,
    decode_checkpoint,
    roots_of,
)
from qserver.durability.column_numbers import page_of
from qserver.durability.kept import KeptCheckpoint, decode_numbers, decode_outline
from qserver.durability.loading import snapshot_of
from qserver.durability.page_store import LoggedPages
from qserver.durability.pages import StoredChildren, decode_page
from qserver.durability.port import NO_PARTS, Log
from qserver.durability.records import decode_record
from qserver.errors import DataCorrupted
from qserver.storage.page import Leaf, Tree

RECORDS_READ_AT_ONCE = 1000
PAGES_COUNTED_AT_ONCE = 10_000
PAGES_LOADED_AT_ONCE = 32
NUMBERS_BEGIN = -(1 << 63)


class File(Protocol):
    async def page_sizes(self, after: int, most: int) -> list[tuple[int, int]]:
        """Return the next pages with a number greater than `after`, each with its size in bytes."""


class StoredCheckpoint(msgspec.Struct):
    """What a log stores about a checkpoint that it keeps."""

    kept: KeptCheckpoint
    checkpoint: AnyCheckpoint
    gone: list[int]
    dead: list[int]

    @property
    def can_be_walked(self) -> bool:
        return isinstance(self.checkpoint, Checkpoint) and self.checkpoint.format == FORMAT


class HistoryCheck:
    def __init__(
        self,
        log: Log,
        own: File,
        name: str,
        checked: set[int],
        is_there: Callable[[str], bool] = lambda name: True,
    ) -> None:
        """`name`: that of the log; `checked`: leaves that need not be read again.

        `is_there` tells whether a log of a given name exists.
        """
        self.problems: list[str] = []
        self.warnings: list[str] = []
        self.checkpoints = 0
        self.leaked_bytes = 0
        self._log = log
        self._own = own
        self._name = name
        self._checked = checked
        self._is_there = is_there
        self._store = LoggedPages(log)
        self._rows: list[StoredCheckpoint] = []
        self._place: dict[int, int] = {}
        """Of each page that is needed, the position of the newest checkpoint that has it."""
        self._lengths: dict[int, int] = {}
        self._is_whole = True
        """Whether all pages that are needed are known."""

    async def run(self) -> AsyncIterator[None]:
        """Check everything; yield where the caller may pause."""
        await self._read_rows()
        for at in reversed(range(len(self._rows))):
            for _ in self._walk(at):
                yield
        self._compare_lists()
        async for _ in self._read_log():
            yield
        if self._is_whole:
            if isinstance(self._log, BranchLog):
                await self._check_parent(self._log)
            async for _ in self._find_leaks():
                yield

    # --- checkpoints ---

    async def _read_rows(self) -> None:
        for version, outline in await self._log.load_outlines():
            try:
                self._rows.append(await self._row(version, outline))
            except DataCorrupted as error:
                self._problem(version, str(error))
        self.checkpoints = len(self._rows)
        for row in self._rows:
            self.warnings += [
                f"a checkpoint of version {row.kept.version} is kept for the branch {name}, which"
                " is not there"
                for name in row.kept.names
                if not self._is_there(name)
            ]

    async def _row(self, version: int, outline: bytes) -> StoredCheckpoint:
        stored = await self._log.load_checkpoint(version)
        if stored is None:
            raise DataCorrupted("it is listed, and not there")
        checkpoint = decode_checkpoint(*stored)
        parts = await self._log.load_parts(version) or NO_PARTS
        kept = (
            decode_outline(version, outline)
            if outline
            else KeptCheckpoint(version, checkpoint.time, checkpoint.last_page, 0)
        )
        row = StoredCheckpoint(
            kept,
            checkpoint,
            decode_numbers(version, parts.gone or b""),
            decode_numbers(version, parts.dead or b""),
        )
        if isinstance(checkpoint, Checkpoint):
            row.dead += checkpoint.dead
        if (kept.version, kept.last_page) != (version, checkpoint.last_page):
            self._problem(version, "what is kept beside it belongs to another one")
        if kept.gone != len(row.gone):
            self._problem(version, f"{kept.gone} pages are counted as gone, {len(row.gone)} named")
        return row

    def _problem(self, version: int, text: str) -> None:
        self._is_whole = False
        self.problems.append(f"the checkpoint of version {version}: {text}")

    def _walk(self, at: int) -> Iterator[None]:
        """Read the pages of a checkpoint that no newer one has."""
        row = self._rows[at]
        version = row.kept.version
        if not row.can_be_walked:  # an earlier release wrote it; only as the newest it is read
            newer = self._rows[at + 1].gone if at + 1 < len(self._rows) else []
            self._place.update(dict.fromkeys(newer, at))
            self._is_whole = False
            return
        assert isinstance(row.checkpoint, Checkpoint)
        snapshot = snapshot_of(row.checkpoint, self._store, 1)

        def enter(page: Tree) -> bool:
            if self._lengths.setdefault(page.number, page.length) != page.length:
                self._problem(version, f"page {page.number} has another number of entries")
            if page.number in self._place:
                return False
            self._place[page.number] = at
            return not (isinstance(page, Leaf) and page.number in self._checked)

        for number, tree in snapshot.trees.items():
            name = snapshot.catalog.name_of_tree(number)
            try:
                for problem in pages_problems(tree, name, enter):
                    if problem is not None:
                        self._problem(version, problem)
                    yield
            except DataCorrupted as error:
                self._problem(version, f"{name}: {error}")

    def _compare_lists(self) -> None:
        """Compare the pages listed as gone or dead with those that are needed."""
        if not self._is_whole:
            return
        for at, row in enumerate(self._rows):
            gone = {page for page, place in self._place.items() if place == at - 1}
            named = set(row.gone)
            if lost := [page for page in named - gone if page in self._place]:
                text = f"{_pages(len(lost))} that count as gone are needed"
                self._problem(row.kept.version, text)
            if left := gone - named:
                self.warnings.append(
                    f"{_pages(len(left))} of the checkpoint of version"
                    f" {self._rows[at - 1].kept.version} will stay when it is dropped"
                )
        if self._rows and (lost := [page for page in self._rows[-1].dead if page in self._place]):
            text = f"{_pages(len(lost))} that count as dead are needed"
            self._problem(self._rows[-1].kept.version, text)

    # --- records ---

    async def _read_log(self) -> AsyncIterator[None]:
        """Read the records of all versions that can be read."""
        first = last = 0
        while records := await self._log.read(last, RECORDS_READ_AT_ONCE):
            for version, data in records:
                first = first or version
                if last and version != last + 1:
                    self.problems.append(
                        f"the log: version {version} follows {last}, and what is between is missing"
                    )
                last = version
                try:
                    found = decode_record(data).version
                except DataCorrupted as error:
                    self.problems.append(f"the log: {error}")
                else:
                    if found != version:
                        self.problems.append(f"the log: version {found} is filed as {version}")
                yield
        if not first:
            return
        for row in self._rows[:-1]:
            if row.kept.version < first - 1 and not row.kept.names:
                self.warnings.append(
                    f"a checkpoint of version {row.kept.version} is kept, and the log begins with"
                    f" version {first}: nothing behind it can be read"
                )
        newest = self._rows[-1].kept.version if self._rows else 0
        if first > newest + 1:
            self.problems.append(
                f"the log: it begins with version {first}, and {newest + 1} is missing"
            )

    # --- the parent of a branch ---

    async def _check_parent(self, log: BranchLog) -> None:
        base, parent = log.base, log.parent
        needed = {page for page in self._place if page <= base.last_page}
        for version, outline in await parent.load_outlines():
            if outline and self._name in (kept := decode_outline(version, outline)).names:
                break
        else:
            self.problems.append(
                f"{base.parent}, of which it is a branch, keeps no checkpoint for it:"
                f" it may forget {_pages(len(needed))}"
            )
            return
        if kept.last_page != base.last_page:
            self.problems.append(
                f"{base.parent}, of which it is a branch, keeps another checkpoint for it,"
                f" that of version {version}"
            )
        if base.borrows and self._name not in kept.lent:
            self.problems.append(
                f"{base.parent}, of which it is a branch, does not keep its log for it: it may"
                f" forget versions {base.borrowed_after + 1} to {base.version}"
            )
        stored = await parent.load_checkpoint(version)
        held = set() if stored is None else pages_of(parent, decode_checkpoint(*stored))
        if needed - held:
            self.problems.append(
                f"{base.parent}, of which it is a branch, does not hold"
                f" {_pages(len(needed - held))} that it needs"
            )

    # --- leaked pages, and columns ---

    async def _find_leaks(self) -> AsyncIterator[None]:
        if not self._rows:
            return
        named = {
            BASE_PAGE,
            *self._rows[-1].dead,
            *(page for row in self._rows for page in row.gone),
        }
        last_page = self._rows[-1].kept.last_page
        after, count = NUMBERS_BEGIN, 0
        columns = ColumnsCheck(self._log, self._store)
        while sizes := await self._own.page_sizes(after, PAGES_COUNTED_AT_ONCE):
            for page, some in groupby(sizes, lambda each: page_of(each[0])):
                if page in self._place:
                    saved = [number for number, _ in some if number != page]
                    for _ in columns.check(page, self._lengths[page], saved) if saved else ():
                        yield
                elif BASE_PAGE <= page <= last_page and page not in named:
                    leaked = [size for _, size in some]
                    count += len(leaked)
                    self.leaked_bytes += sum(leaked)
            after = sizes[-1][0]
            yield
        self.problems += columns.problems
        if columns.damaged:
            self.warnings.append(
                f"{columns.damaged:,} saved columns are damaged, and scans read the rows of their"
                " pages instead: something has changed the file, or the disk is failing"
            )
        if count:
            self.warnings.append(
                f"{_pages(count)} with {self.leaked_bytes:,} bytes are needed by nobody, and will"
                " never be forgotten"
            )


def pages_of(log: Log, checkpoint: AnyCheckpoint) -> set[int]:
    """Return the numbers of all pages of a checkpoint, without reading its leaves."""
    if not isinstance(checkpoint, Checkpoint) or checkpoint.format != FORMAT:
        return set()
    roots = [
        (root, height)
        for tree in checkpoint.trees.values()
        for root, height in zip(tree.roots, tree.heights, strict=True)
        if root
    ]
    found = roots_of(checkpoint)
    branches = [(page, height) for page, height in roots if height]
    while branches:
        some, branches = branches[:PAGES_LOADED_AT_ONCE], branches[PAGES_LOADED_AT_ONCE:]
        loaded = log.load([page for page, _ in some])
        for page, height in some:
            children = decode_page(page, loaded.get(page, b""))
            if isinstance(children, StoredChildren):
                found.update(children.numbers)
                if height > 1:
                    branches += [(child, height - 1) for child in children.numbers]
    return found


def _pages(count: int) -> str:
    return "one page" if count == 1 else f"{count:,} pages"
