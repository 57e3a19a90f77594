"""Finds what is wrong with a snapshot: whole bytes that do not fit together.

    trees        pages in order and equally deep, keys ascending, each in its range
    tables       rows as wide as the table, filed under their keys
    indexes      one entry for each row, and no others

Everything here is a generator, which yields a problem, or None where the caller may pause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from qserver.limits import PAGE_ENTRIES_MAX
from qserver.storage.page import EMPTY, Leaf, Tree
from qserver.storage.ranges import RangedTree
from qserver.storage.snapshot import Snapshot
from qserver.storage.writes import ENGINE_TREES
from qserver.values.keys import Bound
from qserver.values.schema import Index, Table


def problems_of(
    snapshot: Snapshot, enter: Callable[[Tree], bool] = lambda page: True
) -> Iterator[str | None]:
    """Yield what is wrong with a snapshot; `enter`: see `tree_problems`."""
    owned = set(ENGINE_TREES)
    for table in snapshot.catalog.tables.values():
        owned |= {table.id, *(index.id for index in table.indexes)}
    for number, tree in snapshot.trees.items():
        name = snapshot.catalog.name_of_tree(number)
        if number not in owned:
            yield f"{name} belongs to no table"
            continue
        yield from _range_problems(tree, name, snapshot.shards)
        yield from pages_problems(tree, name, enter)
    for _, table in sorted(snapshot.catalog.tables.items()):  # or hashes would decide the order
        yield from _row_problems(snapshot, table)
        for index in table.indexes:
            yield from _index_problems(snapshot, table, index)


def pages_problems(
    tree: RangedTree, name: str, enter: Callable[[Tree], bool]
) -> Iterator[str | None]:
    """Yield what is wrong with the pages of a tree; `enter`: see `tree_problems`."""
    for each, root in zip(tree.ranges, tree.roots, strict=True):
        if root is not EMPTY:  # a range may be empty, a page below its root may not
            yield from tree_problems(root, name, enter, each.low, each.high)


def tree_problems(
    page: Tree,
    name: str,
    enter: Callable[[Tree], bool] = lambda page: True,
    low: Bound = None,
    high: Bound = None,
) -> Iterator[str | None]:
    """Yield keys that do not ascend or are outside of their branch's bounds, and uneven pages.

    A page that `enter` returns False for is left out, and everything below it.
    """
    if not enter(page):
        return
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
        yield from tree_problems(child, name, enter, below, above)


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
