"""A checkpoint and the log behind it are the snapshot, whatever was saved, lost or left half
done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qserver.durability.checkpoint import decode_checkpoint, encode_checkpoint
from qserver.durability.memory import MemoryLog
from qserver.durability.pages import decode_page
from qserver.durability.recovery import Recovered, recover, recover_from
from qserver.durability.saved_pages import SavedPages
from qserver.durability.seal import sealed
from qserver.durability.sqlite import open_log
from qserver.errors import DataCorrupted, DataUnknown
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from tests.durability.histories import History, entries_of, run_step, same, save
from tests.sampling import examples

words = st.sampled_from([None, "ada", "bob", "cleo", ""])
steps = st.tuples(
    st.sampled_from("tu"),
    st.lists(st.tuples(st.integers(0, 400), words), max_size=150),
    st.sampled_from(["nothing", "nothing", "rows", "table"]),
)
events = st.one_of(
    st.tuples(st.just("commit"), steps),
    st.tuples(st.just("commit"), steps),
    st.tuples(st.just("checkpoint"), st.just(None)),
    st.tuples(st.just("fails after pages"), st.integers(0, 20)),
    st.tuples(st.just("crashes before it forgets"), st.just(None)),
    st.tuples(st.just("is told that it failed"), st.just(None)),
    st.tuples(st.just("crash"), st.just(None)),
)


class Machine:
    """A log, the history that it should tell, and what a process knows of both."""

    def __init__(self, shards: int) -> None:
        self.log = MemoryLog()
        self.history = History(shards)
        self.saved = SavedPages()
        self.shards = shards

    async def do(self, what: str, how: Any) -> None:
        if what == "commit":
            run_step(self.history, how)
            await self.history.append_to(self.log)
        elif what == "crash":
            await self.restart()
        elif self.history.snapshot.version == self.saved.version:
            return
        elif what == "checkpoint":
            await save(self.log, self.saved, self.history.snapshot)
        else:
            await self.save_in_part(what, how)

    async def save_in_part(self, what: str, how: Any) -> None:
        snapshot = self.history.snapshot
        made = self.saved.begin(snapshot)
        pages = list(made.pages())
        if what == "fails after pages":
            await self.log.save_pages(pages[:how])
            return
        await self.log.save_pages(pages)
        await self.log.save_checkpoint(snapshot.version, *made.stored())
        if what == "crashes before it forgets":
            self.saved.confirm(made)
            await self.log.forget(snapshot.version - 1, self.saved.some_to_forget(1000)[::2])
            await self.restart()

    async def restart(self) -> None:
        recovered = await recover(self.log, self.shards + 1)
        assert same(recovered.snapshot, self.history.snapshot)
        if recovered.saved.version:
            assert recovered.snapshot.shards == self.shards + 1
            self.history.snapshot, self.saved = recovered.snapshot, recovered.saved


@pytest.mark.half
@settings(deadline=None, max_examples=examples(150))
@given(program=st.lists(events, max_size=20), shards=st.integers(1, 3))
async def test_whatever_is_saved_or_fails_or_crashes_recovery_tells_the_same_history(
    program: list[tuple[str, Any]], shards: int
) -> None:
    machine = Machine(shards)
    for event in program:
        await machine.do(*event)
    await machine.do("crash", None)
    if machine.saved.version:  # and nothing is kept that is not needed
        await machine.do("commit", ("t", [(1, "ada")], "nothing"))
        await machine.do("checkpoint", None)
        there = [number for number, _ in await machine.log.load_pages(0, 1000)]
        assert len(there) == machine.saved.count == pages_in(machine.history.snapshot)


async def test_pages_of_a_checkpoint_that_may_be_there_are_not_overwritten() -> None:
    machine = Machine(1)
    await machine.do("commit", ("t", [(number, "ada") for number in range(100)], "nothing"))
    await machine.do("is told that it failed", None)
    await machine.do("commit", ("t", [(number, "bob") for number in range(100)], "nothing"))
    await machine.do("fails after pages", 3)
    await machine.do("crash", None)
    assert machine.saved.version == 1


def pages_in(snapshot: Snapshot) -> int:
    fresh = SavedPages().begin(snapshot)
    return sum(1 for _ in fresh.pages())


def filled(rows: int, shards: int = 1) -> History:
    history = History(shards)
    run_step(history, ("t", [(number, f"word {number}") for number in range(rows)], "nothing"))
    return history


async def test_only_pages_that_are_new_since_the_last_checkpoint_are_written() -> None:
    history, log, saved = filled(2000), MemoryLog(), SavedPages()
    first = await save(log, saved, history.snapshot)
    assert first > 100
    table = history.snapshot.catalog.tables["t"]
    transaction = Transaction(history.snapshot)
    transaction.put(table, (1000, "word 1000", "another"))
    history.commit(transaction)
    second = await save(log, saved, history.snapshot)
    assert second <= 4 * 3, "in each tree the pages from one or two leaves to the root"
    assert saved.count == first == len(await log.load_pages(0, 10_000))
    assert await save(log, saved, history.snapshot) == 0


async def test_pages_are_back_as_they_were_and_count_as_saved() -> None:
    history, log = filled(500, shards=3), MemoryLog()
    await history.append_to(log)
    await save(log, SavedPages(), history.snapshot)
    recovered = await recover(log, 7)
    assert same(recovered.snapshot, history.snapshot)
    assert (recovered.snapshot.shards, recovered.log_bytes) == (7, 0)
    run_step(history, ("u", [], "nothing"))
    again = recovered.saved.begin(recovered.snapshot)
    assert list(again.pages()) == []


async def test_recovery_may_begin_with_what_is_known_already() -> None:
    history, log = filled(100), MemoryLog()
    await history.append_to(log)
    known = Recovered(history.snapshot, SavedPages(), 77)
    run_step(history, ("t", [(5, "five")], "nothing"))
    await history.append_to(log)
    recovered = await recover_from(known, log)
    assert same(recovered.snapshot, history.snapshot)
    assert recovered.log_bytes > 77


async def test_a_file_gives_the_same_as_memory(tmp_path: Path) -> None:
    history = filled(300, shards=2)
    async with await open_log(tmp_path / "data") as log:
        await history.append_to(log)
        await save(log, SavedPages(), history.snapshot)
        run_step(history, ("t", [(7, None)], "rows"))
        await history.append_to(log)
    async with await open_log(tmp_path / "data") as log:
        recovered = await recover(log, 5)
        assert same(recovered.snapshot, history.snapshot)


# --- damage --------------------------------------------------------------------------------------


async def checkpointed(rows: int = 120) -> MemoryLog:
    history, log = filled(rows), MemoryLog()
    await history.append_to(log)
    await save(log, SavedPages(), history.snapshot)
    return log


async def test_a_missing_page_is_refused() -> None:
    for missing, _ in await (await checkpointed()).load_pages(0, 1000):
        log = await checkpointed()
        await log.forget(0, [missing])
        snapshot = (await recover(log, 1)).snapshot
        with pytest.raises(DataCorrupted, match=f"page {missing} is missing"):
            entries_of(snapshot)


async def test_a_page_under_the_number_of_another_is_refused() -> None:
    log = await checkpointed()
    (one, _), (other, data), *_ = await log.load_pages(0, 1000)
    await log.save_pages([(one, data)])
    snapshot = (await recover(log, 1)).snapshot
    with pytest.raises(DataCorrupted, match=f"page {one} does not match its checksum"):
        entries_of(snapshot)
    decode_page(other, data)


async def test_damage_to_any_byte_of_a_page_or_of_the_checkpoint_is_refused() -> None:
    log = await checkpointed(rows=3)
    stored = await log.load_checkpoint()
    assert stored is not None
    for number, data in await log.load_pages(0, 1000):
        for position in range(len(data)):
            await log.save_pages([(number, flipped(data, position))])
            snapshot = (await recover(log, 1)).snapshot
            with pytest.raises(DataCorrupted):
                entries_of(snapshot)
        await log.save_pages([(number, data)])
    for position in range(len(stored[1])):
        await log.save_checkpoint(stored[0], flipped(stored[1], position))
        with pytest.raises(DataCorrupted):
            await recover(log, 1)


def flipped(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 0x41]) + data[position + 1 :]


def test_a_page_of_an_unknown_kind_is_refused() -> None:
    for body in (b"", b"X", b"L\xc1", b"B\xc1", b"B\x90"):
        with pytest.raises(DataCorrupted):
            decode_page(5, sealed(body, 5))


def test_a_checkpoint_of_another_release_is_refused_with_a_hint() -> None:
    import msgspec

    body = msgspec.msgpack.encode([99, "whatever it is then"])
    with pytest.raises(DataUnknown, match="format 99") as caught:
        decode_checkpoint(1, sealed(body))
    assert "release" in (caught.value.hint or "")
    with pytest.raises(DataCorrupted, match="cannot be decoded"):
        decode_checkpoint(1, sealed(b"\xc1"))


def test_a_checkpoint_under_another_version_is_refused() -> None:
    history = filled(3)
    data = encode_checkpoint(history.snapshot, {}, 0)
    assert decode_checkpoint(1, data).trees_used == history.snapshot.catalog.trees_used
    with pytest.raises(DataCorrupted, match="version 1 is filed as 2"):
        decode_checkpoint(2, data)


async def test_what_is_left_of_a_first_checkpoint_is_forgotten_by_the_next() -> None:
    history, log = filled(200), MemoryLog()
    await history.append_to(log)
    await log.save_pages(list(SavedPages().begin(history.snapshot).pages())[:3])
    recovered = await recover(log, 1)
    assert same(recovered.snapshot, history.snapshot)
    assert recovered.saved.numbers_of_dead() == [1, 2, 3]
    await save(log, recovered.saved, recovered.snapshot)
    assert len(await log.load_pages(0, 1000)) == recovered.saved.count
    assert entries_of((await recover(log, 1)).snapshot) == entries_of(history.snapshot)
    assert repr(recovered.saved) == f"{recovered.saved.count} saved pages of version 1"
