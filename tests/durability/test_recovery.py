"""What is recovered is what was published, whatever shards and ranges there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from qserver.durability import pauses
from qserver.durability.check_snapshot import problems_of
from qserver.durability.memory import MemoryLog
from qserver.durability.records import FORMAT, LogRecord, encode_record_in_pieces
from qserver.durability.recovery import RECORDS_READ_AT_ONCE, Replay, recover, recover_from
from qserver.durability.seal import PIECE_BYTES
from qserver.errors import DataCorrupted
from qserver.storage.snapshot import empty_snapshot
from qserver.storage.writes import CHANGES_AT_ONCE, Writes
from qserver.values.steps import at_once
from tests.durability.histories import History, entries_of, run_step, stored
from tests.storage.databases import ranges_of

Stored = tuple[int, bytes]


async def log_of(records: Sequence[Stored]) -> MemoryLog:
    log = MemoryLog()
    await log.append(records)
    return log


words = st.sampled_from([None, "ada", "bob", "cleo", ""])
steps = st.tuples(
    st.sampled_from("tu"),
    st.lists(st.tuples(st.integers(0, 40), words), max_size=12),
    st.sampled_from(["nothing", "nothing", "rows", "table"]),
)


sizes = st.sampled_from([(1, 0), (4, 2), (9, 4), (50_000, 5_000)])
"""At which ranges are cut and joined."""


@settings(deadline=None)
@given(
    program=st.lists(steps, max_size=12),
    before=st.integers(1, 5),
    after=st.integers(1, 9),
    size=sizes,
    later=sizes,
)
async def test_recovery_gives_the_published_snapshot_over_any_number_of_shards(
    program: list[Any], before: int, after: int, size: tuple[int, int], later: tuple[int, int]
) -> None:
    history = History(before)
    with ranges_of(*size):
        for step in program:
            run_step(history, step)
    published = history.snapshot

    with ranges_of(*later):
        recovered = (await recover(await log_of(history.records), after)).snapshot
    assert (recovered.version, recovered.time) == (published.version, published.time)
    assert dict(recovered.catalog.tables) == dict(published.catalog.tables)
    assert recovered.catalog.trees_used == published.catalog.trees_used
    assert recovered.shards == after
    assert entries_of(recovered) == entries_of(published)
    assert [problem for problem in problems_of(recovered) if problem] == []
    for tree, entries in entries_of(recovered).items():
        for key, value in entries:
            assert recovered.get_entry(tree, key) is value, "where a reader looks for it"


async def test_trees_of_a_dropped_table_are_gone_and_their_numbers_are_not_used_again() -> None:
    history = History(3)
    run_step(history, ("t", [(1, "ada"), (2, "bob")], "nothing"))
    first = history.snapshot.catalog.tables["t"]
    run_step(history, ("t", [], "table"))
    recovered = (await recover(await log_of(history.records), 3)).snapshot
    assert list(recovered.trees.items()) == []
    assert "t" not in recovered.catalog.tables

    run_step(history, ("t", [(1, "cleo")], "nothing"))
    recovered = (await recover(await log_of(history.records), 3)).snapshot
    again = recovered.catalog.tables["t"]
    old = {first.id, *(index.id for index in first.indexes)}
    assert old.isdisjoint({again.id, *(index.id for index in again.indexes)})
    assert entries_of(recovered) == entries_of(history.snapshot)


async def test_an_empty_log_is_version_0_of_an_empty_database() -> None:
    recovered = (await recover(MemoryLog(), 4)).snapshot
    assert (recovered.version, recovered.shards) == (0, 4)
    assert entries_of(recovered) == {}


async def test_a_log_longer_than_one_reading_is_read_to_its_end() -> None:
    count = 2 * RECORDS_READ_AT_ONCE + 1
    records = [(n, stored(n, 0.0, 0, {0: {(n,): (n,)}})) for n in range(1, count + 1)]
    recovered = (await recover(await log_of(records), 2)).snapshot
    assert (recovered.version, recovered.count(0)) == (count, count)


def simple_record(version: int) -> bytes:
    return stored(version, 0.0, 0, {0: {(version,): (version,)}})


@pytest.mark.parametrize(
    ("filed", "message"),
    [
        pytest.param(
            [(1, 1), (3, 3)],
            "the log has version 3 (filed as 3) where 2 must follow",
            id="one is missing",
        ),
        pytest.param(
            [(2, 2)],
            "the log has version 2 (filed as 2) where 1 must follow",
            id="the first is missing",
        ),
        pytest.param(
            [(1, 1), (1, 1)],
            "the log has version 1 (filed as 1) where 2 must follow",
            id="one is there twice",
        ),
        pytest.param(
            [(1, 1), (2, 3)],
            "the log has version 3 (filed as 2) where 2 must follow",
            id="one is filed under another number",
        ),
        pytest.param(
            [(1, 1), (3, 2)],
            "the log has version 2 (filed as 3) where 2 must follow",
            id="one has the right number and is filed under another",
        ),
    ],
)
def test_versions_that_do_not_follow_each_other_are_refused(
    filed: list[tuple[int, int]], message: str
) -> None:
    replay = Replay(empty_snapshot(1))
    with pytest.raises(DataCorrupted) as caught:
        for version, written in filed:
            at_once(replay.apply((version, simple_record(written))))
    assert str(caught.value) == message
    assert caught.value.hint == "A part of the log is missing. Restore a backup."


def _one_long_record(rows: int) -> Stored:
    writes: Writes = {3: {(at,): (at, "x" * 500) for at in range(rows)}}
    record = LogRecord(FORMAT, 1, 1.5, 9, [], (), {})
    return 1, at_once(encode_record_in_pieces(record, writes))


async def test_others_run_while_a_long_record_is_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pauses, "STEP_SECONDS", 0.0)  # each piece is a step
    rows = 20_000
    stored = _one_long_record(rows)
    steps: list[str] = []

    async def others() -> None:
        while True:
            steps.append("others")
            await trio.lowlevel.checkpoint()

    replay = Replay(empty_snapshot(2))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(others)
        await replay.read(stored, trio.lowlevel.checkpoint)
        read = len(steps)
        recovered = await recover(await log_of([stored]), 2)
        nursery.cancel_scope.cancel()
    assert read >= rows // CHANGES_AT_ONCE + len(stored[1]) // PIECE_BYTES
    assert len(steps) - read > 2 * read - 10, "the trees are made in pieces, too"
    assert len(entries_of(recovered.snapshot)[3]) == rows


async def test_a_damaged_record_ends_recovery_and_nothing_is_left_out() -> None:
    damaged = bytearray(simple_record(2))
    damaged[-1] ^= 1
    log = await log_of([(1, simple_record(1)), (2, bytes(damaged)), (3, simple_record(3))])
    with pytest.raises(DataCorrupted, match="does not match its checksum"):
        await recover(log, 4)


class GivesLess(MemoryLog):
    """A log that gives only the first records, some of them late."""

    gives = 2
    gives_late = 0

    async def read(self, after: int, most: int) -> list[Stored]:
        records = await super().read(after, most)
        return [each for each in records if each[0] <= self.gives]

    async def fence(self, version: int) -> bool:
        ends = await super().fence(version)
        self.gives += self.gives_late
        return ends


async def test_a_log_that_does_not_give_all_it_has_is_refused() -> None:
    log = GivesLess()
    await log.append([(version, simple_record(version)) for version in range(1, 6)])
    with pytest.raises(DataCorrupted, match="more than version 2 and does not give it"):
        await recover(log, 1)
    log.gives_late = 1
    assert (await recover(log, 1)).snapshot.version == 5


class HasHole(MemoryLog):
    """A log that has lost one record."""

    hole = 0

    async def read(self, after: int, most: int) -> list[Stored]:
        return [each for each in self._records.items() if each[0] > after and each[0] != self.hole]


@pytest.mark.parametrize("hole", range(1, 6))
async def test_a_log_with_a_hole_is_refused_wherever_the_hole_is(hole: int) -> None:
    log = HasHole()
    log.hole = hole
    await log.append([(version, simple_record(version)) for version in range(1, 6)])
    with pytest.raises(DataCorrupted) as caught:
        await recover(log, 1)
    assert caught.value.hint == "A part of the log is missing. Restore a backup."


async def test_a_log_that_lost_what_is_known_to_be_durable_is_refused() -> None:
    records = [(version, simple_record(version)) for version in range(1, 6)]
    known = await recover(await log_of(records), 1)
    with pytest.raises(DataCorrupted, match="ends with version 3, and 5 was durable"):
        await recover_from(known, await log_of(records[:3]))
