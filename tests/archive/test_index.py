"""A restore of one database reads the segments that have something of it, and few others."""

from __future__ import annotations

from math import inf
from pathlib import Path

import msgspec
import pytest

from qserver.archive.layout import generations_in, segment_name
from qserver.archive.rebuilding import Goal
from qserver.archive.segments import Segment, decode_segment, digest_of, encode_segment
from qserver.errors import DataCorrupted
from tests.archive.databases import Database, MemoryObjects, records_of
from tests.archive.running import Running

pytestmark = pytest.mark.long

PROCESSES, SEGMENTS_OF_EACH, STATE_SEGMENTS = 2, 24, 6
OF_ONE = {9, 33}
"""The segments that have something of the database `one`."""
ONE = frozenset({"one"})


class CountedObjects(MemoryObjects):
    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []

    def load(self, name: str) -> bytes:
        self.loads.append(name)
        return super().load(name)

    def loaded(self) -> set[int]:
        """The numbers of the segments that were loaded since the last call."""
        names, self.loads = self.loads, []
        return {int(name.split("/")[2][:12]) for name in names if "/segments/" in name}

    def names(self) -> dict[int, str]:
        (generation,) = generations_in(self.keys())
        return {number: some[0].name for number, some in generation.segments.items()}

    def segment(self, number: int) -> Segment:
        name = self.names()[number]
        return decode_segment(self.stored[name], name)


@pytest.fixture
async def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Running:
    monkeypatch.setattr("qserver.archive.continuous.STATE_SEGMENTS", STATE_SEGMENTS)
    one, two = Database(tmp_path / "data", "one"), Database(tmp_path / "data", "two")
    await one.commit(1)
    await two.commit(1)
    running = Running(tmp_path / "data", CountedObjects())
    for _ in range(PROCESSES):
        async with running.stepped() as backup:
            await backup.copy()
            for _ in range(SEGMENTS_OF_EACH):
                await two.commit(1)
                if backup.status().segments + 1 in OF_ONE:
                    await one.commit(1)
                running.later += 1.0
                await backup.send()
    objects_of(running).loaded()
    return running


def objects_of(running: Running) -> CountedObjects:
    assert isinstance(running.objects, CountedObjects)
    return running.objects


def states_of(objects: CountedObjects) -> list[int]:
    return [number for number in objects.names() if objects.segment(number).state is not None]


async def test_of_others_only_segments_with_an_index_are_read(
    running: Running, tmp_path: Path
) -> None:
    objects = objects_of(running)
    states = states_of(objects)
    objects.loaded()
    await running.rebuilt(tmp_path / "new", Goal(names=ONE))
    assert await records_of(tmp_path / "new", "one") == await records_of(tmp_path / "data", "one")
    tail = set(range(max(states), PROCESSES * SEGMENTS_OF_EACH + 1))
    assert objects.loaded() == OF_ONE | set(states) | tail
    assert len(states) < 3 * PROCESSES * SEGMENTS_OF_EACH / STATE_SEGMENTS / 2
    await running.rebuilt(tmp_path / "both")
    assert len(objects.loaded()) == PROCESSES * SEGMENTS_OF_EACH


async def test_what_is_damaged_counts_only_where_it_is_wanted(
    running: Running, tmp_path: Path
) -> None:
    objects = objects_of(running)
    names, states = objects.names(), states_of(objects)
    records = await records_of(tmp_path / "data", "one")
    until = objects.segment(20).until
    for number in (22, states[5], 40):
        objects.stored[names[number]] += b"x"
    await running.rebuilt(tmp_path / "new", Goal(names=ONE))
    assert await records_of(tmp_path / "new", "one") == records
    objects.stored[names[33]] += b"x"
    with pytest.raises(DataCorrupted, match="is damaged"):
        await running.rebuilt(tmp_path / "newest", Goal(names=ONE))
    await running.rebuilt(tmp_path / "before", Goal(until, ONE))
    assert await records_of(tmp_path / "before", "one") == records[:2]


async def test_a_segment_that_was_replaced_is_noticed(running: Running, tmp_path: Path) -> None:
    objects = objects_of(running)
    name = objects.names()[33]
    segment = objects.segment(33)
    data = encode_segment(msgspec.structs.replace(segment, changes=segment.changes[1:]))
    del objects.stored[name]
    generation = name.partition("/")[0]
    objects.stored[segment_name(generation, 33, segment.until, digest_of(data))] = data
    with pytest.raises(DataCorrupted, match=r"segment 33 of .* does not follow"):
        await running.rebuilt(tmp_path / "new", Goal(inf, ONE))


async def test_a_backup_without_an_index_is_read_as_a_whole(
    running: Running, tmp_path: Path
) -> None:
    """Older releases made none."""
    objects = objects_of(running)
    (generation,) = generations_in(objects.keys())
    previous = objects.segment(1).previous
    for number, name in objects.names().items():
        segment = objects.segment(number)
        data = encode_segment(msgspec.structs.replace(segment, index=None, previous=previous))
        del objects.stored[name]
        previous = digest_of(data)
        objects.stored[segment_name(generation.name, number, segment.until, previous)] = data
    await running.rebuilt(tmp_path / "new", Goal(names=ONE))
    assert await records_of(tmp_path / "new", "one") == await records_of(tmp_path / "data", "one")
    async with running.stepped() as backup:
        await Database(tmp_path / "data", "three").commit(1)
        running.later += 1.0
        await backup.send()
    await running.rebuilt(tmp_path / "later", Goal(names=frozenset({"three"})))
    assert len(await records_of(tmp_path / "later", "three")) == 1
