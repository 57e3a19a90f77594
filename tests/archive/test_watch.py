"""What a look at a data folder finds, while its files change, are cut, replaced and removed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from shutil import copytree, rmtree

import pytest

from qserver.archive.basing import families_in
from qserver.archive.segments import Changes, State
from qserver.archive.watch import Found, Watch
from qserver.durability import live_log
from qserver.durability.branch_log import begin_branch
from qserver.durability.kept import empty
from qserver.durability.live_log import LiveLog
from qserver.durability.log_over import LogOver
from qserver.durability.pinning import pin_in_log
from qserver.durability.port import Log, StoredPage, StoredRecord
from qserver.durability.sqlite import open_log
from qserver.storage.transaction import Transaction
from tests.archive.databases import Database
from tests.durability.histories import History, create

NOTHING = State({}, {}, [])
MUCH = 1 << 20


def versions(changes: Sequence[Changes]) -> dict[str, list[int]]:
    return {each.database: [version for version, _ in each.records] for each in changes}


def look(watch: Watch, most: int = MUCH) -> Found:
    found = watch.look(most)
    assert not found.troubles
    return found


def saved(watch: Watch, most: int = MUCH) -> dict[str, list[int]]:
    found = look(watch, most)
    watch.confirm(found)
    return versions(found.changes)


async def test_each_record_is_found_once_and_again_until_it_is_saved(tmp_path: Path) -> None:
    one, two = Database(tmp_path, "one"), Database(tmp_path, "two")
    watch = Watch(tmp_path, NOTHING)
    await one.commit(3)
    await two.commit(1)
    assert versions(look(watch).changes) == {"one": [1, 2, 3], "two": [1]}
    assert saved(watch) == {"one": [1, 2, 3], "two": [1]}
    assert not look(watch)
    await one.commit(1)
    assert saved(watch) == {"one": [4]}


async def test_a_look_ends_when_it_has_enough_and_says_so(tmp_path: Path) -> None:
    for name in ("one", "two"):
        await Database(tmp_path, name).commit(5)
    watch, found = Watch(tmp_path, NOTHING), Found(is_all=False)
    seen: dict[str, list[int]] = {"one": [], "two": []}
    looks = 0
    while not found.is_all:
        found = look(watch, 400)
        watch.confirm(found)
        for name, numbers in versions(found.changes).items():
            seen[name] += numbers
        looks += 1
    assert looks > 2 and seen == {"one": [1, 2, 3, 4, 5], "two": [1, 2, 3, 4, 5]}


async def test_the_next_process_goes_on_from_the_state(tmp_path: Path) -> None:
    one = Database(tmp_path, "one")
    await one.commit(3)
    watch = Watch(tmp_path, NOTHING)
    found = look(watch)
    state = watch.state_behind(found)
    assert state.ends["one"].version == 3
    await one.commit(2)
    assert saved(Watch(tmp_path, state)) == {"one": [4, 5]}


async def test_a_log_that_was_cut_up_to_where_the_copy_ends_goes_on(tmp_path: Path) -> None:
    one = Database(tmp_path, "one")
    await one.commit(3)
    watch = Watch(tmp_path, NOTHING)
    saved(watch)
    state = watch.state_behind(Found())
    await one.forget(3)
    assert not look(watch) and not look(Watch(tmp_path, state)), "its checkpoint proves it"
    await one.commit(1)
    assert saved(Watch(tmp_path, state)) == {"one": [4]}


@pytest.mark.parametrize("forgotten", [4, 5])
async def test_a_log_that_was_cut_behind_the_copy_is_lost(tmp_path: Path, forgotten: int) -> None:
    one = Database(tmp_path, "one")
    await one.commit(3)
    watch = Watch(tmp_path, NOTHING)
    saved(watch)
    await one.commit(2)
    await one.forget(forgotten)
    found = look(watch)
    assert list(found.lost) == ["one"] and "are forgotten" in found.lost["one"]
    assert not found.changes
    watch.confirm(found)
    await one.commit(1)
    assert not look(watch), "nothing is found before its files are copied again"
    assert watch.state_behind(Found()).lost == ["one"]


async def test_an_older_or_another_file_in_its_place_is_noticed(tmp_path: Path) -> None:
    data, older = tmp_path / "data", tmp_path / "older"
    data.mkdir()
    one = Database(data, "one")
    await one.commit(3)
    copytree(data, older)
    history = one.history.snapshot
    await one.commit(2)
    watch = Watch(data, NOTHING)
    saved(watch)
    state = watch.state_behind(Found())
    rmtree(data)
    copytree(older, data)
    for each in (watch, Watch(data, state)):
        assert "ends with version 3" in look(each).lost["one"]
    other = History(2, history)
    for number in range(2):
        transaction = Transaction(other.snapshot)
        create(transaction, f"another_way_{number}")
        other.commit(transaction)
    async with await open_log(one.path) as log:
        await other.append_to(log)
    assert "version 5 is not the one" in look(Watch(data, state)).lost["one"]


async def test_a_branch_begins_when_the_version_of_its_parent_was_found(tmp_path: Path) -> None:
    above = Database(tmp_path, "b-above")
    await above.commit(3)
    watch = Watch(tmp_path, NOTHING)
    saved(watch)
    await above.commit(1)
    below = Database(tmp_path, "a-below", History(2, above.history.snapshot))
    async with await open_log(above.path) as parent, await open_log(below.path) as own:
        kept = await pin_in_log(parent, "a-below", 4)
        assert kept is not None and kept.version == empty().version
        await begin_branch(own, parent, "b-above", kept, 4)
    await below.commit(2)
    found = look(watch)
    assert [(each.database, each.parent, each.version) for each in found.changes] == [
        ("b-above", None, 3),
        ("a-below", "b-above", 4),
    ], "parents come first"
    assert versions(found.changes) == {"b-above": [4], "a-below": [5, 6]}
    watch.confirm(found)
    assert watch.root_of("a-below") == "b-above"
    below.path.unlink()
    found = look(watch)
    assert found.removed == ["a-below"]
    watch.confirm(found)
    assert not look(watch)


class LookedAt(LogOver):
    """A log that somebody looks at after each write."""

    def __init__(self, own: Log, look: Callable[[], None]) -> None:
        super().__init__(own)
        self._look = look

    async def save_pages(self, pages: Sequence[StoredPage]) -> None:
        await self.own.save_pages(pages)
        self._look()

    async def save_records(self, records: Sequence[StoredRecord]) -> None:
        await self.own.save_records(records)
        self._look()


async def test_a_branch_that_is_being_made_is_left_alone_until_it_is_one(tmp_path: Path) -> None:
    """What holds the place of lent records is not a log that was cut."""
    above, below = Database(tmp_path, "above"), Database(tmp_path, "below")
    await above.commit(4)
    watch = Watch(tmp_path, NOTHING)
    saved(watch)
    seen = []

    def look_meanwhile() -> None:
        found = look(watch)
        watch.confirm(found)
        seen.append((bool(found), watch.lost, families_in(tmp_path)))

    async with await open_log(above.path) as parent, await open_log(below.path) as own:
        kept = await pin_in_log(parent, "below", 4)
        assert kept is not None
        await begin_branch(LookedAt(own, look_meanwhile), parent, "above", kept, 4)
    assert seen == [(False, set(), {"above": ["above"]})] * 2
    (found,) = look(watch).changes
    assert (found.database, found.parent, found.version) == ("below", "above", 4)
    assert families_in(tmp_path) == {"above": ["above", "below"]}


async def test_a_file_that_cannot_be_read_does_not_keep_the_others(tmp_path: Path) -> None:
    one, two = Database(tmp_path, "one"), Database(tmp_path, "two")
    await one.commit(1)
    await two.commit(1)
    one.path.write_bytes(b"damaged" * 1000)
    found = Watch(tmp_path, NOTHING).look(MUCH)
    assert list(found.troubles) == ["one"] and not found.is_all
    assert versions(found.changes) == {"two": [1]}


async def test_a_write_is_found_that_leaves_times_and_sizes_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of a file system ticks rarely, and a write-ahead log is written over."""
    seen = live_log._seen
    *_, began = seen(tmp_path)

    def seen_coarsely(path: Path) -> tuple[int, int, int]:
        number, size, _ = seen(path)
        return number, size // 1_000_000, began

    monkeypatch.setattr(live_log, "_seen", seen_coarsely)
    monkeypatch.setattr(live_log, "TICK_NS", 3_600 * 10**9)
    one = Database(tmp_path, "one")
    watch = Watch(tmp_path, NOTHING)
    for number in range(1, 6):
        await one.commit(1)
        assert saved(watch) == {"one": [number]}


async def test_a_file_that_nobody_writes_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await Database(tmp_path, "one").commit(1)
    watch = Watch(tmp_path, NOTHING)
    monkeypatch.setattr(live_log, "TICK_NS", -(10**18))
    assert saved(watch) == {"one": [1]}
    monkeypatch.setattr(LiveLog, "read", None)
    assert not look(watch)


async def test_an_older_folder_in_its_place_is_noticed_with_its_write_ahead_log(
    tmp_path: Path,
) -> None:
    """Both logs have the same head, so what is known of the one must not count for the other."""
    data, older = tmp_path / "data", tmp_path / "older"
    data.mkdir()
    one = Database(data, "one")
    await one.commit(1)
    watch = Watch(data, NOTHING)
    async with await open_log(one.path) as log:
        for number in range(6):
            transaction = Transaction(one.history.snapshot)
            create(transaction, f"more{number}")
            one.history.commit(transaction)
            await one.history.append_to(log)
            if number == 1:
                copytree(data, older)
        assert saved(watch) == {"one": [1, 2, 3, 4, 5, 6, 7]}
    rmtree(data)
    copytree(older, data)
    assert "ends with version 3" in look(watch).lost["one"]


async def test_a_family_that_is_lost_and_removed_is_waited_for_no_more(tmp_path: Path) -> None:
    """Its log was cut before anybody looked, so nothing of it was ever copied."""
    one = Database(tmp_path, "one")
    await one.commit(2)
    await one.forget(2)
    watch = Watch(tmp_path, NOTHING)
    found = look(watch)
    watch.confirm(found)
    assert watch.lost == {"one"} and not watch.ends
    state = watch.state_behind(Found())
    one.path.unlink()
    for each in (watch, Watch(tmp_path, state)):
        found = look(each)
        assert found.removed == ["one"]
        each.confirm(found)
        assert not each.lost and not look(each)
