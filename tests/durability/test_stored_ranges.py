"""Ranges in a checkpoint: as they were, or refused; and checkpoints from before there were any."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qserver.durability.check_snapshot import problems_of
from qserver.durability.checkpoint import decode_checkpoint
from qserver.durability.memory import MemoryLog
from qserver.durability.pages import BRANCH, encode_page
from qserver.durability.recovery import recover
from qserver.durability.saved_pages import SavedPages
from qserver.durability.seal import sealed
from qserver.errors import DataCorrupted
from qserver.storage.btree import children_of
from qserver.storage.catalog import changes_to_plain
from qserver.storage.page import Key, Tree
from qserver.storage.snapshot import Snapshot
from qserver.values.encoding import encode_columns
from tests.durability.histories import History, entries_of, run_step, same, save
from tests.storage.databases import ranges_of
from tests.storage.trees import build

sizes = st.sampled_from([(1, 0), (4, 2), (9, 4), (50_000, 5_000)])


def filled(rows: int = 60, shards: int = 3) -> History:
    history = History(shards)
    run_step(history, ("t", [(number, f"word {number}") for number in range(rows)], "nothing"))
    run_step(history, ("u", [(number, None) for number in range(5)], "nothing"))
    return history


def check_sound(snapshot: Snapshot) -> None:
    assert [problem for problem in problems_of(snapshot) if problem] == []


# --- as they were --------------------------------------------------------------------------------


@settings(deadline=None, max_examples=30)
@given(rows=st.integers(0, 60), size=sizes, gone=st.integers(0, 60), shards=st.integers(1, 5))
async def test_ranges_are_back_as_they_were_on_any_number_of_shards(
    rows: int, size: tuple[int, int], gone: int, shards: int
) -> None:
    log, saved = MemoryLog(), SavedPages()
    with ranges_of(*size):
        history = filled(rows)
        await save(log, saved, history.snapshot)
        run_step(history, ("t", [(number, None) for number in range(gone)], "rows"))
        history.records.clear()
        await save(log, saved, history.snapshot)
        recovered = await recover(log, shards)
    assert same(recovered.snapshot, history.snapshot)
    assert recovered.snapshot.shards == shards
    check_sound(recovered.snapshot)
    for number, tree in history.snapshot.trees.items():
        assert recovered.snapshot.trees.tree(number).lows == tree.lows
    assert list(recovered.saved.begin(recovered.snapshot).pages()) == [], "all pages count as saved"


async def test_a_cut_writes_only_pages_along_it() -> None:
    log, saved = MemoryLog(), SavedPages()
    history = filled(2000)
    first = await save(log, saved, history.snapshot)
    with ranges_of(1200, 100):
        run_step(history, ("t", [(7, "word 7")], "nothing"))
    table = history.snapshot.catalog.tables["t"].id
    assert len(history.snapshot.trees.tree(table).ranges) == 2
    assert first > 100
    assert await save(log, saved, history.snapshot) <= 4 * (3 + 3)


# --- refused -------------------------------------------------------------------------------------


async def a_checkpoint(change: Any) -> MemoryLog:
    """A log with a checkpoint whose bytes are whole, but whose ranges someone has changed."""
    log = MemoryLog()
    with ranges_of(20, 5):
        history = filled()
        await save(log, SavedPages(), history.snapshot)
    version, data = (await log.load_checkpoint()) or (0, b"")
    plain = msgspec.msgpack.decode(
        msgspec.msgpack.encode(decode_checkpoint(version, data)), strict=False
    )
    table = history.snapshot.catalog.tables["t"].id
    assert len(plain[5][table][1]) == 3
    change(plain[5][table])
    await log.save_checkpoint(version, sealed(msgspec.msgpack.encode(plain)))
    return log


def stored(*keys: Key) -> bytes:
    return encode_columns(list(keys), [None] * len(keys))


@pytest.mark.parametrize(
    ("bounds", "roots"),
    [
        pytest.param(stored((40,), (20,)), 3, id="not in order"),
        pytest.param(stored((20,), (20,)), 3, id="twice the same"),
        pytest.param(stored((20,)), 3, id="a bound is missing"),
        pytest.param(stored((20,), (40,), (50,)), 3, id="a bound too many"),
        pytest.param(stored((20,), (40,)), 2, id="a root is missing"),
        pytest.param(stored(), 0, id="no root at all"),
        pytest.param(stored((20,), ("b",)), 3, id="of two types"),
        pytest.param(b"\xc1", 3, id="no bounds"),
        pytest.param(stored((20,), (40,))[:-2], 3, id="cut off"),
    ],
)
async def test_a_damaged_table_of_ranges_is_refused(bounds: bytes, roots: int) -> None:
    def change(tree: list[Any]) -> None:
        tree[0], tree[1] = bounds, tree[1][:roots]

    log = await a_checkpoint(change)
    with pytest.raises(DataCorrupted, match=r"ranges of tree \d+|cannot decode"):
        await recover(log, 3)


async def test_a_range_whose_root_is_missing_is_refused() -> None:
    def change(tree: list[Any]) -> None:
        tree[1][2] = 99_999

    snapshot = (await recover(await a_checkpoint(change), 3)).snapshot
    with pytest.raises(DataCorrupted, match="page 99999"):
        entries_of(snapshot)


async def test_bounds_that_are_in_order_and_wrong_are_found_by_a_check() -> None:
    def change(tree: list[Any]) -> None:
        tree[0] = stored((19,), (40,))

    snapshot = (await recover(await a_checkpoint(change), 3)).snapshot
    assert any("do not belong there" in problem for problem in problems_of(snapshot) if problem)


# --- from before there were ranges ---------------------------------------------------------------


def old_partition(key: Key, hashed: int, partitions: int) -> int:
    """As releases that wrote format 1 found the partition of a key, for integers and texts."""
    return crc32(msgspec.msgpack.encode(key[:hashed], enc_hook=str)) % partitions


def hashed_of(snapshot: Snapshot) -> dict[int, int]:
    found: dict[int, int] = {}
    for table in snapshot.catalog.tables.values():
        found[table.id] = len(table.primary_key)
        found |= {index.id: len(index.columns) for index in table.indexes}
    return found


async def save_by_hash(log: MemoryLog, snapshot: Snapshot, partitions: int) -> int:
    """A checkpoint of format 1; the number of its last page."""
    roots: list[dict[int, int]] = [{} for _ in range(partitions)]
    number_of: dict[Tree, int] = {}
    pages: list[tuple[int, bytes]] = []

    def store(page: Tree) -> int:
        for child in children_of(page):
            store(child)
        number_of[page] = number = len(number_of) + 1
        pages.append((number, encode_page(page, number, number_of.__getitem__)))
        return number

    for tree, hashed in hashed_of(snapshot).items():
        parts: list[dict[Key, Any]] = [{} for _ in range(partitions)]
        for key, value in entries_of(snapshot).get(tree, ()):
            parts[old_partition(key, hashed, partitions)][key] = value
        for partition, entries in enumerate(parts):
            keys = sorted(entries)
            root = build(keys, [entries[key] for key in keys])
            if entries:
                roots[partition][tree] = store(root)
            elif partition % 2:
                roots[partition][tree] = 0
    await log.save_pages(pages)
    catalog = snapshot.catalog
    definitions = changes_to_plain({**catalog.tables, **catalog.others})
    record = [
        1,
        snapshot.version,
        snapshot.time,
        catalog.trees_used,
        definitions,
        roots,
        len(pages),
    ]
    await log.save_checkpoint(snapshot.version, sealed(msgspec.msgpack.encode(record)))
    return len(pages)


@pytest.mark.parametrize("partitions", [1, 2, 3, 4])
@pytest.mark.parametrize("size", [(10, 4), (50_000, 5_000)], ids=["tiny", "real"])
async def test_a_checkpoint_of_format_1_is_read_and_the_next_is_of_format_3(
    partitions: int, size: tuple[int, int]
) -> None:
    log, history = MemoryLog(), filled(300)
    await history.append_to(log)
    old_pages = await save_by_hash(log, history.snapshot, partitions)
    run_step(history, ("t", [(number, None) for number in range(250, 310)], "nothing"))
    await history.append_to(log)
    with ranges_of(*size):
        recovered = await recover(log, 3)
    snapshot = recovered.snapshot
    assert same(snapshot, history.snapshot)
    assert snapshot.shards == 3
    check_sound(snapshot)
    assert max(len(root) for _, tree in snapshot.trees.items() for root in tree.roots) <= size[0]

    nobody_reads_what_was_before(snapshot)
    await save(log, recovered.saved, snapshot)
    version, data = (await log.load_checkpoint()) or (0, b"")
    assert (version, decode_checkpoint(version, data).format) == (snapshot.version, 3)
    left = [number for number, _ in await log.load_pages(0, 100_000)]
    assert min(left) > old_pages, "all pages of the old one are forgotten"
    assert same((await recover(log, 2)).snapshot, history.snapshot)


async def test_a_missing_page_of_a_checkpoint_of_format_1_is_refused() -> None:
    log, history = MemoryLog(), filled(300)
    pages = await save_by_hash(log, history.snapshot, 2)
    await log.forget(history.snapshot.version, [pages])
    with pytest.raises(DataCorrupted, match=f"page {pages}"):
        await recover(log, 3)


# --- from before pages were loaded on demand -----------------------------------------------------


def nobody_reads_what_was_before(snapshot: Snapshot) -> None:
    """Begin a new lease with a snapshot, as `Versions.renew` does."""
    assert snapshot.lease is not None
    snapshot.lease.first = snapshot.version


async def save_of_numbers(log: MemoryLog, snapshot: Snapshot) -> None:
    """A checkpoint of format 2: branches without lengths, roots without lengths and heights."""
    made = SavedPages().begin(snapshot)
    pages = []
    for number, data in made.pages():
        body = data[4:]
        if body[:1] == BRANCH:
            body = BRANCH + msgspec.msgpack.encode(msgspec.msgpack.decode(body[1:])[:2])
        pages.append((number, sealed(body, number)))
    await log.save_pages(pages)
    plain = msgspec.msgpack.decode(made.stored()[0][4:], strict=False)
    plain[0], plain[5] = 2, {tree: stored[:2] for tree, stored in plain[5].items()}
    await log.save_checkpoint(snapshot.version, sealed(msgspec.msgpack.encode(plain[:7])))


@pytest.mark.parametrize("size", [(10, 4), (50_000, 5_000)], ids=["tiny", "real"])
async def test_a_checkpoint_of_format_2_is_read_whole_and_the_next_is_of_format_3(
    size: tuple[int, int],
) -> None:
    with ranges_of(*size):
        log, history = MemoryLog(), filled(300)
        await history.append_to(log)
        await save_of_numbers(log, history.snapshot)
        run_step(history, ("t", [(number, None) for number in range(0, 300, 100)], "nothing"))
        await history.append_to(log)
        recovered = await recover(log, 3)
        assert same(recovered.snapshot, history.snapshot)
        check_sound(recovered.snapshot)
        old = {number for number, _ in await log.load_pages(0, 100_000)}
        nobody_reads_what_was_before(recovered.snapshot)
        written = await save(log, recovered.saved, recovered.snapshot)
    version, data = (await log.load_checkpoint()) or (0, b"")
    assert (version, decode_checkpoint(version, data).format) == (recovered.snapshot.version, 3)
    left = {number for number, _ in await log.load_pages(0, 100_000)}
    assert left & old, "leaves that have not changed stay"
    assert len(left) == recovered.saved.count == len(left & old) + written
    again = (await recover(log, 2)).snapshot
    assert same(again, history.snapshot)


async def test_a_missing_page_of_a_checkpoint_of_format_2_is_refused() -> None:
    log, history = MemoryLog(), filled(300)
    await save_of_numbers(log, history.snapshot)
    await log.forget(history.snapshot.version, [1])
    with pytest.raises(DataCorrupted, match=r"page 1 of tree \d is missing"):
        await recover(log, 3)
