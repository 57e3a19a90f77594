"""Checks a data file: reads everything, and compares everything.

    the file     SQLite's own structure
    the log      the checkpoint and the records behind it, with their checksums
    trees        pages in order and equally deep, keys ascending, each in its range
    tables       rows as wide as the table, filed under their keys
    indexes      one entry for each row, and no others

A database does the first half when it opens and refuses what is damaged. The second half takes as
long as reading every row, and finds what checksums cannot: bytes that are whole and wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

import msgspec
import trio

from qserver.durability.branch_files import open_with_parents
from qserver.durability.port import Log
from qserver.durability.recovery import Recovered, recover
from qserver.durability.sqlite import SqliteLog
from qserver.errors import DataCorrupted
from qserver.limits import PAGE_ENTRIES_MAX, SHARDS_DEFAULT
from qserver.storage.page import EMPTY, Key, Leaf, Tree
from qserver.storage.ranges import RangedTree
from qserver.storage.snapshot import Snapshot
from qserver.storage.writes import ENGINE_TREES
from qserver.values.schema import Index, Table

PROBLEMS_MAX: Final = 20
"""More are of no use, and a damaged index has one for each row."""
ENTRIES_BEFORE_YIELDING: Final = 2000


class Report(msgspec.Struct, frozen=True):
    version: int
    checkpoint: int
    """The version of the checkpoint; 0 if there is none."""
    log_bytes: int
    pages: int
    ranges: int
    rows: dict[str, int]
    """By table."""
    problems: tuple[str, ...]

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


async def check(log: Log, own: SqliteLog) -> Report:
    """Check a log that no database is open on; `own`: its file, without those of its parents."""
    problems = [f"the file: {trouble}" for trouble in await own.troubles()]
    try:
        recovered = await recover(log, SHARDS_DEFAULT)
    except DataCorrupted as error:
        problems.append(f"{error}. {error.detail or ''}".strip())
        return Report(0, 0, 0, 0, 0, {}, tuple(problems))
    try:
        for count, problem in enumerate(problems_of(recovered.snapshot)):
            if problem is not None:
                problems.append(problem)
            if len(problems) >= PROBLEMS_MAX:
                problems.append("there may be more; these were enough")
                break
            if count % ENTRIES_BEFORE_YIELDING == 0:
                await trio.lowlevel.checkpoint()
    except DataCorrupted as error:
        problems.append(f"{error}. {error.detail or ''}".strip())
    except (TypeError, ValueError, ArithmeticError, LookupError) as error:
        problems.append(f"there are values that do not belong where they are: {error}")
    return _report(recovered, problems)


async def check_file(path: Path) -> Report:
    """Check an existing file. Raises as `open_log` does if it cannot be opened."""
    if not await trio.Path(path).exists():
        raise DataCorrupted(f"{path} does not exist", hint="Name a data file of qserver.")
    async with open_with_parents(path) as opened:
        return await check(opened.log, opened.own)


def _report(recovered: Recovered, problems: list[str]) -> Report:
    snapshot = recovered.snapshot
    return Report(
        snapshot.version,
        recovered.saved.version,
        recovered.log_bytes,
        recovered.saved.count,
        sum(len(tree.ranges) for _, tree in snapshot.trees.items()),
        {table.key: snapshot.count(table.id) for table in snapshot.catalog.tables.values()},
        tuple(problems),
    )


# --- snapshots ---------------------------------------------------------------------------------


def problems_of(snapshot: Snapshot) -> Iterator[str | None]:
    """Yield what is wrong with a snapshot, and None now and then, where the caller may pause."""
    owned = set(ENGINE_TREES)
    for table in snapshot.catalog.tables.values():
        owned |= {table.id, *(index.id for index in table.indexes)}
    for number, tree in snapshot.trees.items():
        name = snapshot.catalog.name_of_tree(number)
        if number not in owned:
            yield f"{name} belongs to no table"
            continue
        yield from _range_problems(tree, name, snapshot.shards)
        for each, root in zip(tree.ranges, tree.roots, strict=True):
            if root is not EMPTY:  # a range may be empty, a page below its root may not
                yield from _page_problems(root, name, each.low, each.high)
    for table in snapshot.catalog.tables.values():
        yield from _row_problems(snapshot, table)
        for index in table.indexes:
            yield from _index_problems(snapshot, table, index)


def _page_problems(
    page: Tree, name: str, low: Key | None = None, high: Key | None = None
) -> Iterator[str | None]:
    """Yield keys that do not ascend or are outside of their branch's bounds, and uneven pages."""
    keys = page.keys if isinstance(page, Leaf) else page.separators
    if any(not one < other for one, other in pairwise(keys)):
        yield f"{name}: keys do not ascend"
    if keys and ((low is not None and keys[0] < low) or (high is not None and keys[-1] >= high)):
        yield f"{name}: a page has keys that do not belong there"
    if isinstance(page, Leaf):
        if not page.length == len(keys) == len(page.values):
            counted = f"{page.length} are counted, and {len(page.values)} values"
            yield f"{name}: a page has {len(keys)} entries where {counted}"
        yield from _size_problems(len(keys), name)
        yield None
        return
    children = page.children
    yield from _size_problems(len(children), name)
    if len(children) != len(keys) + 1:
        yield f"{name}: {len(keys)} keys part {len(children)} pages"
        return
    if page.length != sum(map(len, children)):
        yield f"{name}: {page.length} entries are counted, {sum(map(len, children))} are there"
    if any(child.height != page.height - 1 for child in children):
        yield f"{name}: pages are not equally deep"
    for child, below, above in zip(children, [low, *keys], [*keys, high], strict=True):
        yield from _page_problems(child, name, below, above)


def _range_problems(tree: RangedTree, name: str, shards: int) -> Iterator[str | None]:
    """Yield ranges that leave gaps, or that are on no shard."""
    lows, highs = [each.low for each in tree.ranges], [each.high for each in tree.ranges]
    if lows != [None, *tree.lows] or highs != [*tree.lows, None]:
        yield f"{name}: ranges leave gaps"
    if any(not one < other for one, other in pairwise(tree.lows)):
        yield f"{name}: ranges are not in order"
    if any(not 0 <= each.shard < shards for each in tree.ranges):
        yield f"{name}: a range belongs to no shard"
    yield None


def _size_problems(size: int, name: str) -> Iterator[str]:
    if size > PAGE_ENTRIES_MAX:
        yield f"{name}: a page has {size} entries, and {PAGE_ENTRIES_MAX} are the most"
    if not size:
        yield f"{name}: a page is empty"


def _row_problems(snapshot: Snapshot, table: Table) -> Iterator[str | None]:
    for keys, rows in snapshot.pages(table.id):
        for key, row in zip(keys, rows, strict=True):
            if len(row) != len(table.columns):
                yield f"{table.name}: row {key} has {len(row)} values, not {len(table.columns)}"
            elif table.key_of(row) != key:
                yield f"{table.name}: a row with key {table.key_of(row)} is filed under {key}"
            yield None


def _index_problems(snapshot: Snapshot, table: Table, index: Index) -> Iterator[str | None]:
    expected = 0
    for _, rows in snapshot.pages(table.id):
        for row in rows:
            if len(row) == len(table.columns):
                expected += 1
                key, primary_key = table.entries(index, row)
                if snapshot.get_entry(index.id, key) != primary_key:
                    yield f"{index.name}: there is no entry for row {primary_key}"
            yield None
    if snapshot.count(index.id) != expected:
        yield f"{index.name}: {snapshot.count(index.id)} entries for {expected} rows"
