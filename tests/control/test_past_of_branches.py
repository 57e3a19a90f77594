"""A branch reads its parent's past from before it was made, for as long as the parent keeps it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from qserver.control.branches import Origin
from qserver.control.logs import Logs, MemoryLogs
from qserver.durability.data_folder import DataFolder
from qserver.errors import HistoryTooOld, InvalidRequest
from qserver.storage.snapshot import Snapshot
from tests.control.planes import Opened, opened_plane
from tests.control.test_branches import branch, checkpoint, close

MANY = 1000
"""Rows in pages that no reader has touched before."""

TABLE = "create table t (id integer primary key, n integer)"


@pytest.fixture(params=["files", "memory"])
def logs(request: pytest.FixtureRequest, tmp_path: Path) -> Logs:
    return DataFolder(tmp_path) if request.param == "files" else MemoryLogs()


class Family:
    """A database with versions 4 to 12, and a branch of version 10."""

    def __init__(self, opened: Opened) -> None:
        self.opened = opened
        self.times: dict[int, float] = {}

    async def make(self) -> None:
        opened = self.opened
        await opened.plane.records.keep_history(opened.grant, "main", 0.0)
        await opened.run(opened.grant, TABLE)
        await self.write(2, 4)  # history begins with the checkpoint of version 4
        await opened.plane.records.keep_history(opened.grant, "main", 1000.0)
        await self.write(5, 10)
        await branch(opened, "trial")
        await opened.plane.records.keep_history(opened.grant, "trial", 1000.0)
        await self.write(11, 12)
        opened.world.time += 10
        await opened.run(opened.grant, "insert into t values (1000, 0)", "trial")

    async def write(self, first: int, last: int) -> None:
        """Make versions, each with one row more, ten seconds apart, and checkpoints of some."""
        for version in range(first, last + 1):
            self.opened.world.time += 10
            self.times[version] = self.opened.world.time
            text = f"insert into t values ({version}, 0)"
            if version in (2, 8):  # so that older pages are nobody else's
                text = (
                    f"insert into t select {version}, 0 union all select g, {version} from"
                    f" generate_series(10001, {10000 + MANY}) h (g)"
                    f" on conflict (id) do update set n = {version}"
                )
            await self.opened.run(self.opened.grant, text)
            if version in (4, 7, 9):
                await checkpoint(self.opened)

    async def at(self, as_of: float, database: str = "trial") -> Snapshot:
        with await self.opened.plane.database(self.opened.grant, database) as used:
            return await used.database.snapshot_at(as_of)


def ids(snapshot: Snapshot) -> list[int]:
    table = snapshot.catalog.tables["t"]
    found = [row[0] for _, rows in snapshot.pages(table.id) for row in rows]
    if found:
        assert found[-MANY:] == list(range(10001, 10001 + MANY))
    return found[:-MANY]


@pytest.mark.half
async def test_a_branch_reads_versions_and_times_of_its_parent_before_it(logs: Logs) -> None:
    async with opened_plane(logs) as opened:
        family = Family(opened)
        await family.make()
        for again in range(2):
            for version in range(4, 11):
                rows = list(range(2, version + 1))
                assert ids(await family.at(version)) == rows
                assert ids(await family.at(family.times[version] + 5)) == rows
            assert ids(await family.at(11)) == [*range(2, 11), 1000], "not the parent's"
            assert ids(await family.at(family.times[12] + 5)) == list(range(2, 11))
            with pytest.raises(InvalidRequest):
                await family.at(12)
            assert ids(await family.at(12, "main")) == list(range(2, 13))
            if not again:
                await close(opened, "main")
                await checkpoint(opened, "trial")


@pytest.mark.half
async def test_versions_differences_and_changes_reach_back_before_the_branch(logs: Logs) -> None:
    async with opened_plane(logs) as opened:
        family = Family(opened)
        await family.make()
        with await opened.plane.database(opened.grant, "trial") as used:
            database = used.database
            listed = await database.history.versions(None, 100)
            assert [each.version for each in listed] == list(range(11, 4, -1))
            assert all(each.tables == ["t"] for each in listed)
            some = await database.history.versions(9, 3)
            assert [each.version for each in some] == [8, 7, 6]
            fed = [each.version async for each in database.catch_up.after(5)]
            assert fed == list(range(6, 12))
            await database.restore_version(5)
            assert ids(await database.wait_durable_snapshot()) == [2, 3, 4, 5]
        assert ids(await family.at(12, "main")) == list(range(2, 13))


@pytest.mark.half
async def test_a_branch_of_a_branch_reads_back_to_the_first(logs: Logs) -> None:
    async with opened_plane(logs) as opened:
        family = Family(opened)
        await family.make()
        await branch(opened, "second", of="trial")
        await opened.plane.records.keep_history(opened.grant, "second", 1000.0)
        await opened.run(opened.grant, "delete from t", "second")
        for version in range(4, 11):
            assert ids(await family.at(version, "second")) == list(range(2, version + 1))
        assert ids(await family.at(11, "second")) == [*range(2, 11), 1000]
        assert ids(await family.at(12, "second")) == []


@pytest.mark.half
async def test_what_the_parent_does_not_keep_any_more_is_too_old(logs: Logs) -> None:
    async with opened_plane(logs) as opened:
        family = Family(opened)
        await family.make()
        reader = await family.at(5)
        await opened.plane.records.keep_history(opened.grant, "main", 30.0)
        for _ in range(2):
            await opened.run(opened.grant, "update t set n = n + 1")
            await checkpoint(opened)
        assert ids(reader) == [2, 3, 4, 5], "pages stay while somebody reads them"
        del reader
        with await opened.plane.database(opened.grant, "trial") as used:
            used.database.history.yield_memory()
        await opened.run(opened.grant, "update t set n = n + 1")
        await checkpoint(opened)
        with pytest.raises(HistoryTooOld):
            await family.at(5)
        assert ids(await family.at(10)) == list(range(2, 11)), "that is its own"


@pytest.mark.half
async def test_a_parent_that_is_deleted_takes_its_past_along(logs: Logs) -> None:
    async with opened_plane(logs) as opened:
        family = Family(opened)
        await family.make()
        reader = await family.at(5)
        await opened.plane.records.delete(opened.grant, "main")
        assert ids(reader) == [2, 3, 4, 5]
        with pytest.raises(HistoryTooOld):
            await family.at(6)
        assert ids(await family.at(9)) == list(range(2, 10)), "its log begins with that"
        assert ids(await family.at(10)) == list(range(2, 11))


@pytest.mark.half
async def test_a_branch_without_history_reads_nothing_older(logs: Logs) -> None:
    async with opened_plane(logs) as opened:
        family = Family(opened)
        await family.make()
        await opened.plane.records.keep_history(opened.grant, "trial", 0.0)
        with pytest.raises(HistoryTooOld):
            await family.at(5)
        await opened.plane.records.keep_history(opened.grant, "trial", 60.0)
        with pytest.raises(HistoryTooOld):
            await family.at(5)
        with await opened.plane.database(opened.grant, "trial") as used:
            newest = await used.database.wait_durable_snapshot(float("inf"))
        await opened.run(opened.grant, "insert into t values (2000, 0)", "trial")
        assert ids(await family.at(newest.version)) == ids(newest), "it is kept from now on"


async def test_a_branch_of_an_older_version_has_the_past_of_that(logs: Logs) -> None:
    async with opened_plane(logs) as opened:
        family = Family(opened)
        await family.make()
        made: Any = await opened.plane.records.create(opened.grant, "old", Origin("main", 6))
        await opened.plane.records.keep_history(opened.grant, "old", 1000.0)
        await opened.run(opened.grant, "insert into t values (2000, 0)", "old")
        assert made.branch_of is not None
        for version in range(4, 7):
            assert ids(await family.at(version, "old")) == list(range(2, version + 1))
        assert ids(await family.at(7, "old")) == [*range(2, 7), 2000]
