"""Commits, checkpoints, drops, pins, failures, crashes and readers in any order, against a model
that keeps every version: no kept checkpoint lacks a page, and no page stays that nobody needs."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qserver.durability.check_history import HistoryCheck
from qserver.durability.checkpoint import Checkpoint, decode_checkpoint
from qserver.durability.kept import (
    KeptCheckpoint,
    RetentionRules,
    decode_numbers,
    decode_outline,
    encode_numbers,
    encode_outline,
    history_begins,
    is_needless,
)
from qserver.durability.loading import snapshot_of
from qserver.durability.memory import MemoryLog
from qserver.durability.page_cache import PageCache
from qserver.durability.page_store import LoggedPages
from qserver.durability.port import CheckpointParts
from qserver.durability.recovery import recover
from qserver.durability.saved_pages import SavedPages
from qserver.durability.sqlite import open_log
from qserver.durability.sqlite_file import SqliteFile
from qserver.errors import DataCorrupted
from qserver.storage.btree import children_of
from qserver.storage.page import Tree
from qserver.storage.snapshot import Snapshot
from tests.durability.histories import History, entries_of, run_step
from tests.sampling import examples

words = st.sampled_from([None, "ada", "bob"])
rows = st.lists(st.tuples(st.integers(0, 200), words), max_size=60)
events = st.one_of(
    st.tuples(st.just("write"), rows),
    st.tuples(st.just("delete"), rows),
    st.tuples(st.just("checkpoint"), st.sampled_from([0, 25, 1000])),
    st.tuples(st.just("checkpoint"), st.sampled_from([0, 25, 1000])),
    st.tuples(st.just("checkpoint fails"), st.booleans()),
    st.tuples(st.just("thin out"), st.sampled_from([0, 15, 40, 1000])),
    st.tuples(st.just("thinning fails"), st.booleans()),
    st.tuples(st.just("pin"), st.integers(0, 5)),
    st.tuples(st.just("unpin"), st.none()),
    st.tuples(st.just("read an old one"), st.integers(0, 5)),
    st.tuples(st.just("read the newest"), st.none()),
    st.tuples(st.just("end to read"), st.none()),
    st.tuples(st.just("restart"), st.none()),
)


class Machine:
    """What the checkpointer does, one step after the other, and some that come to nothing."""

    def __init__(self) -> None:
        self.log = MemoryLog()
        self.cache = PageCache(0)
        self.store = LoggedPages(self.log, self.cache)
        self.saved = SavedPages(self.store)
        self.history = History(1)
        self.entries: dict[int, Any] = {0: {}}
        self.pinned: set[int] = set()
        self.readers: list[Snapshot] = []

    async def do(self, what: str, how: Any) -> None:
        history, saved = self.history, self.saved
        if what in ("pin", "unpin", "read an old one"):
            await self._resolve()  # as the checkpointer does
        if what in ("write", "delete"):
            lease = history.snapshot.lease
            run_step(history, ("t", how, "rows" if what == "delete" else "nothing"))
            self._lease(lease)
            await history.append_to(self.log)
            self.entries[history.snapshot.version] = entries_of(history.snapshot)
        elif what.startswith("checkpoint"):
            await self._resolve()
            if history.snapshot.version > saved.version:
                await self._save(how, what == "checkpoint fails")
        elif what in ("thin out", "thinning fails"):
            await self._resolve()
            await self._thin_out(float(how), what == "thinning fails")
        elif what == "pin" and (rows := self._rows()):
            kept = rows[how % len(rows)]
            kept.names.append("a branch")
            self.pinned.add(kept.version)
            await self._write_outline(kept)
        elif what == "unpin" and self.pinned:
            version = self.pinned.pop()
            (kept,) = [each for each in saved.kept if each.version == version]
            kept.names.clear()
            await self._write_outline(kept)
        elif what == "read an old one" and (rows := self._rows()):
            self.readers.append(await self._load(rows[how % len(rows)]))
        elif what == "read the newest":
            self.readers.append(history.snapshot)
        elif what == "end to read" and self.readers:
            self._check(self.readers.pop(0))
        elif what == "restart":
            self.readers.clear()
            self.store = LoggedPages(self.log, self.cache)
            recovered = await recover(self.log, 1, self.store)
            history.snapshot, self.saved = recovered.snapshot, recovered.saved
            self._check(history.snapshot)
            await self.check_file()

    def _rows(self) -> list[KeptCheckpoint]:
        return [each for each in self.saved.kept if each.version]

    def _lease(self, lease: Any) -> None:
        old = self.history.snapshot
        self.history.snapshot = Snapshot(
            old.version, old.time, old.catalog, old.trees, old.shards, lease
        )

    async def _resolve(self) -> None:
        if self.saved.doubt is not None:
            self.saved.resolve({version for version, _ in await self.log.load_outlines()})

    async def _save(self, how: Any, fails: bool) -> None:
        """Save a checkpoint; the last one may go with it, by age or because the log is short."""
        snapshot = self.history.snapshot
        if snapshot.lease is not None:
            snapshot.lease.last = snapshot.version
        self._lease(self.store.new_lease(snapshot.version))
        snapshot = self.history.snapshot
        made = self.saved.begin(snapshot)
        await self.log.save_pages(list(made.pages()))
        rules = RetentionRules(snapshot.time - int(how), int(how))
        row = made.stored(rules, snapshot.version * 10)
        self.saved.doubt = made
        if not fails or how:
            await self.log.save_checkpoint(snapshot.version, *row)
        if not fails:
            self.saved.confirm(made)
            self.saved.doubt = None
        await self._forget()

    async def _thin_out(self, seconds: float, fails: bool) -> None:
        saved = self.saved
        horizon = self.history.snapshot.time - seconds
        while (at := saved.next_to_drop(RetentionRules(horizon, int(seconds)))) is not None:
            lists = [await self._gone(each) for each in (at, at + 1)]
            drop = saved.drop(at, *lists)
            saved.doubt = drop
            if drop.kept.version and not (fails and seconds):
                await self.log.change_checkpoints(*drop.stored())
            if fails:
                return
            saved.dropped(drop)
            saved.doubt = None
        await self.log.forget(saved.cut_log(horizon), [])
        await self._forget()

    async def _gone(self, at: int) -> list[int]:
        kept = self.saved.kept[at]
        if at == len(self.saved.kept) - 1:
            return self.saved.gone
        parts = await self.log.load_parts(kept.version)
        return [] if parts is None else decode_numbers(kept.version, parts.gone or b"")

    async def _forget(self) -> None:
        while some := self.saved.some_to_forget(7):
            await self.log.forget(self.saved.log_start, some)
            self.saved.forgotten(some)

    async def _write_outline(self, kept: KeptCheckpoint) -> None:
        await self._resolve()
        parts = CheckpointParts(encode_outline(kept))
        await self.log.change_checkpoints([], [(kept.version, parts)])

    async def _load(self, kept: KeptCheckpoint) -> Snapshot:
        stored = await self.log.load_checkpoint(kept.version)
        assert stored is not None
        checkpoint = decode_checkpoint(*stored)
        assert isinstance(checkpoint, Checkpoint)
        lease = self.store.new_lease(kept.version, kept.version)
        return snapshot_of(checkpoint, self.store, 1, lease)

    async def check_file(self) -> None:
        """Have `qserver check` look at what a crash would leave."""
        found = HistoryCheck(self.log, self.log, "data", set())
        async for _ in found.run():
            pass
        assert found.problems == []
        # What was pinned just now may be kept without its log, until the next checkpoint.
        assert [each for each in found.warnings if "nothing behind it" not in each] == []
        assert found.checkpoints == len(self._rows())

    def _check(self, snapshot: Snapshot) -> None:
        assert entries_of(snapshot) == self.entries[snapshot.version]


@pytest.mark.half
@settings(deadline=None, max_examples=examples(200))
@given(program=st.lists(events, max_size=30))
async def test_kept_checkpoints_lack_no_page_and_nothing_else_stays(
    program: list[tuple[str, Any]],
) -> None:
    machine = Machine()
    for event in program:
        await machine.do(*event)
    while machine.readers:
        machine._check(machine.readers.pop())
    await machine.do("restart", None)
    await machine.do("write", [(1, "ada")])
    await machine.do("checkpoint", 0)
    await machine.do("thin out", 1000)
    needed: set[int] = set()
    for kept in machine._rows():
        machine._check(await machine._load(kept))
        needed |= set(numbers_of(await machine._load(kept)))
    there = {number for number, _ in await machine.log.load_pages(0, 10_000)}
    assert there == needed, "every page of a kept checkpoint, and no other"
    assert {each.version for each in machine._rows()} >= machine.pinned
    start = machine.saved.log_start
    versions = [version for version, _ in await machine.log.read(0, 10_000)]
    assert versions == list(range(start + 1, machine.history.snapshot.version + 1))
    assert start in [each.version for each in machine.saved.kept]


def numbers_of(snapshot: Snapshot) -> list[int]:
    waiting = [root for _, tree in snapshot.trees.items() for root in tree.roots if len(root)]
    found: list[int] = []
    while waiting:
        page: Tree = waiting.pop()
        found.append(page.number)
        waiting += children_of(page)
    return found


def test_history_and_short_replays_decide_what_is_kept() -> None:
    kept = [
        KeptCheckpoint(version, 10.0 * version, version, 100 * version) for version in range(1, 8)
    ]
    assert history_begins(kept, 0.0, 1) == 0
    assert history_begins(kept, 35.0, 1) == 2, "version 3 was the newest then"
    assert history_begins(kept, 35.0, 5) == 4, "the log has nothing behind version 3"
    assert history_begins(kept, 1e9, 1) == 6

    def needless(log_bytes: int, log_start: int = 1) -> list[int]:
        rules = RetentionRules(35.0, log_bytes)
        return [at for at in range(6) if is_needless(kept, at, rules, log_start)]

    assert needless(0) == [0, 1]
    assert needless(200) == [0, 1, 3, 4, 5]
    assert needless(200, log_start=5) == [0, 1, 2, 3, 5]
    kept[0].names.append("a branch")
    assert needless(0) == [1]


def test_what_is_beside_a_checkpoint_has_a_checksum_and_its_place() -> None:
    outline = encode_outline(KeptCheckpoint(7, 70.0, 3, 11, 0, ["a"]))
    assert decode_outline(7, outline) == KeptCheckpoint(7, 70.0, 3, 11, 0, ["a"])
    numbers = encode_numbers(7, [1, 5, 1 << 40])
    assert decode_numbers(7, numbers) == [1, 5, 1 << 40]
    for position in range(len(outline)):
        with pytest.raises(DataCorrupted):
            decode_outline(7, _flipped(outline, position))
    with pytest.raises(DataCorrupted, match="version 8"):
        decode_numbers(8, numbers)


def _flipped(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 0x41]) + data[position + 1 :]


OLD_TABLE = (
    "CREATE TABLE checkpoint (only INTEGER PRIMARY KEY CHECK (only = 1),"
    " version INTEGER NOT NULL, data BLOB NOT NULL)"
)


def old_file(path: Path, version: int, data: bytes) -> None:
    """Make a file as releases before kept checkpoints did."""
    with_tables = SqliteFile(path)
    with_tables.open()
    with_tables.append([(each, b"record") for each in range(1, version + 2)])
    with_tables.close()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN")
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(
        "UPDATE sqlite_schema SET name = 'checkpoint', tbl_name = 'checkpoint', sql = ?"
        " WHERE name = 'checkpoints'",
        (OLD_TABLE,),
    )
    connection.execute("PRAGMA writable_schema = RESET")
    connection.execute("INSERT INTO checkpoint VALUES (1, ?, ?)", (version, data))
    connection.execute("PRAGMA user_version = 1")
    connection.execute("COMMIT")
    connection.close()


async def test_a_file_with_room_for_one_checkpoint_is_opened_and_has_room_for_more(
    tmp_path: Path,
) -> None:
    old_file(tmp_path / "data", 3, b"three" * 5000)
    for _ in range(2):
        async with await open_log(tmp_path / "data") as log:
            assert await log.load_checkpoint() == (3, b"three" * 5000)
            assert await log.load_outlines() == [(3, b"")]
            assert len(await log.read(0, 100)) == 4
            assert await log.troubles() == []
    async with await open_log(tmp_path / "data") as log:
        await log.save_checkpoint(4, b"four", after=3)
        assert [version for version, _ in await log.load_outlines()] == [3, 4]
    again = sqlite3.connect(tmp_path / "data")
    assert again.execute("PRAGMA user_version").fetchone() == (2,)
    again.close()


async def test_an_upgrade_that_fails_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_file(tmp_path / "data", 3, b"three")
    broken = ("checkpoints", 4, "CREATE TABLE checkpoints (")
    monkeypatch.setattr("qserver.durability.sqlite_connection.TABLES", (broken,))
    with pytest.raises(DataCorrupted):
        await open_log(tmp_path / "data")
    monkeypatch.undo()
    async with await open_log(tmp_path / "data") as log:
        assert await log.load_checkpoint() == (3, b"three")
