"""The continuous backup of a folder: a target that is away, logs that are cut, old generations."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from math import inf
from pathlib import Path

import pytest

from qserver.archive.continuous import Options
from qserver.archive.folder_objects import FolderObjects
from qserver.archive.layout import ranges_of
from qserver.archive.objects import MARK, OWNER, TargetAway
from qserver.archive.rebuilding import Goal
from qserver.archive.status import StatusFile, statuses_in
from qserver.durability.data_folder import DataFolder
from qserver.errors import DataCorrupted, DataInUse
from tests.archive.databases import Database, MemoryObjects, records_of
from tests.archive.running import DAY, Running
from tests.durability.small_disks import small_disk


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A target that is away is tried again soon."""
    monkeypatch.setattr("qserver.archive.continuous.PAUSE_SECONDS", 0.01)
    monkeypatch.setattr("qserver.archive.continuous.PAUSE_SECONDS_MAX", 0.02)


@pytest.mark.parametrize("is_listed", [False, True])
async def test_what_is_committed_while_the_target_is_away_comes_when_it_is_back(
    tmp_path: Path, is_listed: bool
) -> None:
    """Also where the task that removes old generations has met the same."""
    data, objects = tmp_path / "data", MemoryObjects()
    one = Database(data, "one")
    await one.commit(2)
    running = Running(data, objects)
    async with running.run():
        await running.saved()
        objects.is_away = True
        if is_listed:
            running.continuous._listed_at = -inf
            running.continuous._news.set()
            await running.eventually(lambda: "copies" in running.continuous._troubles)
        await one.commit(3)
        attempts = objects.attempts
        await running.eventually(lambda: objects.attempts > attempts + 5)
        (status,) = statuses_in(data)
        assert status.trouble == "memory is away. Wait." and status.until < status.written
        await one.commit(1)
        objects.is_away = False
        await running.saved()
        await running.eventually(lambda: running.continuous.status().trouble is None)
    assert len([line for line in running.said if line == "memory is away. Wait."]) == 1
    assert any("the target is there again" in line for line in running.said)
    await running.rebuilt(tmp_path / "new")
    assert await records_of(tmp_path / "new", "one") == await records_of(data, "one")


async def test_a_target_that_is_away_at_the_start_is_an_error(tmp_path: Path) -> None:
    await Database(tmp_path, "one").commit(1)
    objects = MemoryObjects()
    objects.is_away = True
    with pytest.raises(ExceptionGroup) as caught:
        async with Running(tmp_path, objects).run():
            pass
    assert isinstance(caught.value.exceptions[0], TargetAway)


async def test_a_log_that_was_cut_while_the_target_was_away_is_copied_anew(tmp_path: Path) -> None:
    data, objects = tmp_path / "data", MemoryObjects()
    one, two = Database(data, "one"), Database(data, "two")
    await one.commit(2)
    await two.commit(2)
    running = Running(data, objects)
    async with running.run():
        await running.saved()
        covered = running.continuous.status().until
    await one.commit(3)
    await two.commit(1)
    await one.forget(4)
    running.later += 1000
    async with running.run():
        await running.saved()
        await running.eventually(lambda: not running.continuous.status().copied_anew)
        await one.commit(1)
        await running.saved()
    assert any("copied anew" in line and "are forgotten" in line for line in running.said)
    assert len(running.generations()) == 1, "the others go on where they were"
    built = await running.rebuilt(tmp_path / "new")
    assert built.ends == {"one": 6, "two": 3} and not built.lost
    assert await records_of(tmp_path / "new", "one") == await records_of(data, "one")
    built = await running.rebuilt(tmp_path / "before", Goal(covered))
    assert built.ends["one"] == 2 and not built.lost
    built = await running.rebuilt(tmp_path / "between", Goal(covered + 900))
    assert built.ends["one"] == 2 and covered <= built.lost["one"] < covered + 900


async def test_a_process_that_is_killed_is_followed_by_one_that_goes_on(tmp_path: Path) -> None:
    data, objects = tmp_path / "data", MemoryObjects()
    one = Database(data, "one")
    running = Running(data, objects)
    for _ in range(4):
        await one.commit(2)
        async with running.run(is_killed=True):
            await running.saved()
            await one.commit(1)
    async with running.run():
        await running.saved()
    assert len(running.generations()) == 1
    await running.rebuilt(tmp_path / "new")
    assert await records_of(tmp_path / "new", "one") == await records_of(data, "one")


async def test_of_two_segments_of_one_number_the_one_counts_that_is_gone_on_with(
    tmp_path: Path,
) -> None:
    """The first was on its way to the target when its process was killed."""
    data, objects = tmp_path / "data", MemoryObjects()
    one = Database(data, "one")
    await one.commit(1)
    running = Running(data, objects)
    async with running.run():
        await running.saved()
    before = dict(objects.stored)
    await one.commit(1)
    async with running.run():
        await running.saved()
    late = {name: data for name, data in objects.stored.items() if name not in before}
    objects.stored = before
    await one.commit(1)
    async with running.run():
        await running.saved()
        await one.commit(1)
        await running.saved()
    first = min(late)
    objects.stored[first] = late[first]
    numbers = running.generations()[-1].segments
    assert sorted(map(len, numbers.values()))[-1] == 2
    await running.rebuilt(tmp_path / "new")
    assert await records_of(tmp_path / "new", "one") == await records_of(data, "one")


def has_begun(running: Running, since: float) -> bool:
    return running.continuous.status().begins >= since


def has_removed(running: Running, count: int) -> bool:
    return sum(line.startswith("removed") for line in running.said) == count


async def test_generations_follow_each_other_without_a_hole_and_old_ones_go(tmp_path: Path) -> None:
    data = tmp_path / "data"
    objects = FolderObjects(tmp_path / "target")
    one = Database(data, "one")
    await one.commit(1)
    running = Running(data, objects, Options(0.02, 2 * DAY, DAY))
    counts = []
    for day in range(6):
        begins_today = partial(has_begun, running, running.now())
        async with running.run():
            await running.saved()
            await one.commit(1)
            await running.eventually(begins_today)
            await running.saved()
            gone = max(0, day - 2)
            await running.eventually(partial(has_removed, running, gone))
        found = running.generations()
        counts.append(len(found))
        assert all(old.until >= new.begins for old, new in pairwise(found)), day
        running.later += 1.01 * DAY
    assert counts[0] == 1 and max(counts) == counts[-1] == 3
    left = {name.partition("/")[0] for name, _ in objects.keys()} - {MARK, OWNER}  # noqa: SIM118
    assert left == {each.name for each in running.generations()}
    assert {each.name for each in (tmp_path / "target").iterdir()} == {MARK, OWNER, *left}
    built = await running.rebuilt(tmp_path / "new")
    assert built.ends == {"one": 7}


async def test_one_process_at_a_time_backs_a_folder_up_to_a_target(tmp_path: Path) -> None:
    await Database(tmp_path, "one").commit(1)
    first = StatusFile(tmp_path, "memory")
    with pytest.raises(DataInUse, match="another process backs"):
        StatusFile(tmp_path, "memory")
    StatusFile(tmp_path, "another place").close()
    first.close()
    StatusFile(tmp_path, "memory").close()


async def test_a_generation_that_lost_an_object_is_followed_by_a_new_one(tmp_path: Path) -> None:
    data, objects = tmp_path / "data", MemoryObjects()
    one = Database(data, "one")
    await one.commit(1)
    running = Running(data, objects)
    async with running.run():
        for _ in range(3):
            await one.commit(1)
            await running.saved()
    segments = [name for name in objects.stored if "/segments/" in name]
    del objects.stored[sorted(segments)[1]]
    running.later += 60
    async with running.run():
        await running.saved()
    assert any("is missing: a new generation begins" in line for line in running.said)
    assert len(running.generations()) == 2
    assert (await running.rebuilt(tmp_path / "new")).ends == {"one": 4}


async def test_a_target_that_somebody_has_emptied_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qserver.archive.continuous.COPY_PAUSE_SECONDS_MAX", 0.05)
    monkeypatch.setattr("qserver.archive.continuous.LISTED_SECONDS", 0.0)
    data, objects = tmp_path / "data", MemoryObjects()
    one = Database(data, "one")
    await one.commit(1)
    running = Running(data, objects)
    async with running.run():
        await running.saved()
        first = running.generations()[0].name
        for name in [name for name in objects.stored if name != MARK]:
            del objects.stored[name]
        await one.commit(1)
        running.later += 10.0  # another generation gets another name
        await running.eventually(running.generations)
        await running.saved()
        assert running.generations()[0].name != first
        objects.stored.pop(MARK)
        await running.eventually(lambda: running.continuous.status().trouble)
    assert "has no qserver-backup any more" in running.said[-1]
    async with running.run():
        await running.saved()
    assert (await running.rebuilt(tmp_path / "new")).ends == {"one": 2}


async def test_a_full_temporary_folder_is_told_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qserver.archive.continuous.COPY_PAUSE_SECONDS", 0.01)
    one = Database(tmp_path / "data", "one")
    await one.commit(100)
    with small_disk(tmp_path / "small", "1m") as small:
        monkeypatch.setattr("tempfile.tempdir", str(small))
        size = DataFolder(tmp_path / "data").file_of("one").stat().st_size
        for left in (0, 4096, size // 2, size):
            running = Running(tmp_path / "data", MemoryObjects())
            filled = small / "filled"
            filled.write_bytes(b"x" * ((1 << 20) - left))
            async with running.run():
                await running.eventually(lambda: running.continuous.status().trouble)  # noqa: B023
                filled.unlink()
                await running.saved()
            told = [line for line in running.said if str(small) in line]
            assert len(told) == 1, running.said
            assert running.continuous.status().trouble is None
            assert list(small.iterdir()) == []


def test_what_a_kill_has_left_goes_with_its_generation(tmp_path: Path) -> None:
    objects = FolderObjects(tmp_path)
    objects.save(MARK, b"mark")
    objects.save("g/segments/1", b"text")
    left = tmp_path / "g" / "segments" / "2.unfinished"
    left.write_bytes(b"te")
    assert [key.name for key in objects.keys()] == ["g/segments/1", MARK]  # noqa: SIM118
    objects.remove(["g/segments/1"])
    assert [path.name for path in tmp_path.iterdir()] == [MARK]


def test_a_folder_that_takes_nothing_is_away(tmp_path: Path) -> None:
    objects = FolderObjects(tmp_path)
    objects.save(MARK, b"mark")
    (tmp_path / "g").write_bytes(b"in the way")
    with pytest.raises(TargetAway, match="cannot be used"):
        objects.save("g/segments/1", b"text")


def test_a_disk_that_is_not_mounted_is_not_written(tmp_path: Path) -> None:
    target = tmp_path / "target"
    objects = FolderObjects(target)
    objects.save(MARK, b"mark")
    objects.save("a/b", b"text")
    target.rename(tmp_path / "unmounted")
    target.mkdir()
    with pytest.raises(TargetAway, match="has no qserver-backup any more"):
        objects.save("a/c", b"text")
    assert list(target.iterdir()) == []
    with pytest.raises(DataCorrupted, match="is not there"):
        objects.load("a/b")


async def test_another_database_in_the_place_of_one_that_was_gone_is_another(
    tmp_path: Path,
) -> None:
    data, objects = tmp_path / "data", MemoryObjects()
    one, two = Database(data, "one"), Database(data, "two")
    await one.commit(3)
    await two.commit(1)
    running = Running(data, objects)
    async with running.run():
        await running.saved()
        await DataFolder(data).remove("one")
        two.path.rename(tmp_path / "two")
        await running.saved()
        other = Database(data, "one")
        await other.commit(2, "other")
        (tmp_path / "two").rename(two.path)
        await two.commit(1)
        await running.saved()
    built = await running.rebuilt(tmp_path / "new")
    assert built.ends == {"one": 2, "two": 2}
    for name in built.ends:
        assert await records_of(tmp_path / "new", name) == await records_of(data, name)


async def test_a_backup_that_ends_while_a_generation_begins_leaves_no_hole(tmp_path: Path) -> None:
    data = tmp_path / "data"
    one = Database(data, "one")
    await one.commit(1)
    running = Running(data, MemoryObjects())
    async with running.stepped() as first:
        await first.copy()
        await first.send()
        running.later += DAY
        await first.copy()
        running.later += 10.0
        first.stop()
        await first.send()
    running.later += 10.0
    async with running.stepped() as second:
        await second.send()
    assert len(running.generations()) == 2 and len(ranges_of(running.generations())) == 1


async def test_another_folder_is_refused_while_a_process_backs_up_and_if_nothing_is_common(
    tmp_path: Path,
) -> None:
    objects = MemoryObjects()
    await Database(tmp_path / "a", "one").commit(1)
    await Database(tmp_path / "b", "two").commit(1)
    here, there = Running(tmp_path / "a", objects), Running(tmp_path / "b", objects, chance="0e")
    async with here.run():
        await here.saved()
        stored = dict(objects.stored)
        with pytest.raises(DataInUse, match="another process backs up to memory: a test"):
            async with there.stepped():
                pass
    with pytest.raises(DataInUse, match="has the backup of other databases"):
        async with there.stepped():
            pass
    assert stored.items() <= {**objects.stored, OWNER: stored[OWNER]}.items()
    async with here.run():
        await here.saved()
    assert len(here.generations()) == 1


async def test_a_restored_folder_follows_when_the_process_before_has_ended(tmp_path: Path) -> None:
    objects = MemoryObjects()
    one = Database(tmp_path / "a", "one")
    await one.commit(2)
    here, there = Running(tmp_path / "a", objects), Running(tmp_path / "b", objects, chance="0e")
    async with here.run(is_killed=True):
        await here.saved()
    await here.rebuilt(tmp_path / "b")
    with pytest.raises(DataInUse, match="another process backs up to memory"):
        async with there.stepped():
            pass
    there.later += 100.0
    async with there.stepped() as backup:
        await backup.send()
    assert "going on with" in there.said[-1]


async def test_a_process_that_another_has_followed_writes_nothing_more(tmp_path: Path) -> None:
    """Such as one whose machine was stopped, and whose disk has gone on with another one."""
    objects, data = MemoryObjects(), tmp_path / "data"
    one = Database(data, "one")
    await one.commit(1)
    first, second = Running(data, objects), Running(data, objects, chance="0e")
    async with first.stepped() as before:
        await before.copy()
        await before.send()
    async with second.stepped() as after:
        await one.commit(1)
        await after.send()
        segments = [name for name in objects.stored if "/segments/" in name]
        with pytest.raises(DataInUse, match="another process has taken over memory"):
            await before.send()
        assert segments == [name for name in objects.stored if "/segments/" in name]
    assert (await second.rebuilt(tmp_path / "new")).ends == {"one": 2}
