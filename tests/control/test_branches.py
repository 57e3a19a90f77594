"""Branches: what they share, what they cost, and what is left when one of a family is deleted."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from qserver.control.branches import Branches, Origin
from qserver.control.logs import Logs, MemoryLogs
from qserver.durability.data_folder import DataFolder
from qserver.errors import AlreadyExists, Forbidden, HistoryTooOld, NotFound
from tests.control.planes import Opened, opened_plane

TABLE = "create table t (id integer primary key, n integer)"
FILL = "insert into t select n, n from generate_series({}, {}) n"
SUM = "select count(*), sum(n) from t"


@pytest.fixture(params=["files", "memory"])
def logs(request: pytest.FixtureRequest, tmp_path: Path) -> Logs:
    return DataFolder(tmp_path) if request.param == "files" else MemoryLogs()


async def branch(opened: Opened, name: str, of: str = "main") -> str:
    return (await opened.plane.records.create(opened.grant, name, Origin(of))).id


async def checkpoint(opened: Opened, database: str = "main") -> None:
    with await opened.plane.database(opened.grant, database) as used:
        await used.database.checkpoint()


async def close(opened: Opened, database: str) -> None:
    """Close a database as one is that nobody uses."""
    with await opened.plane.database(opened.grant, database) as used:
        host = opened.plane.databases._hosts[used.id]
    opened.plane.databases._begin_close(host)
    await host.closed.wait()


async def test_a_branch_and_its_parent_change_apart(logs: Logs) -> None:
    async with opened_plane(logs) as opened:
        run, grant = opened.run, opened.grant
        await run(grant, TABLE)
        await run(grant, FILL.format(1, 1000))
        await checkpoint(opened)
        await run(grant, "update t set n = 0 where id <= 10")
        await branch(opened, "trial")
        first = await run(grant, SUM)
        assert await run(grant, SUM, "trial") == first
        await run(grant, "delete from t where id > 500", "trial")
        await run(grant, "insert into t values (5000, 7)")
        for _ in range(2):
            await checkpoint(opened)
            await checkpoint(opened, "trial")
            assert await run(grant, SUM) == [(1001, first[0][1] + 7)]
            assert (await run(grant, SUM, "trial"))[0][0] == 500
            await run(grant, "update t set n = n")
            await run(grant, "update t set n = n", "trial")


@pytest.mark.half
async def test_a_branch_loads_pages_of_a_parent_that_is_closed_or_restarted(logs: Logs) -> None:
    async with opened_plane(logs) as opened:
        await opened.run(opened.grant, TABLE)
        await opened.run(opened.grant, FILL.format(1, 2000))
        await checkpoint(opened)
        await branch(opened, "one")
        await branch(opened, "two", of="one")
        await opened.run(opened.grant, "update t set n = 0 where id % 2 = 0")
        await close(opened, "main")
        await close(opened, "two")
        assert await opened.run(opened.grant, SUM, "two") == [(2000, 2001000)]
        await opened.run(opened.grant, "delete from t where id > 100", "two")
    async with opened_plane(logs) as opened:
        assert await opened.run(opened.grant, SUM, "one") == [(2000, 2001000)]
        assert await opened.run(opened.grant, SUM, "two") == [(100, 5050)]
        assert await opened.run(opened.grant, SUM) == [(2000, 1000000)]


@pytest.mark.half
async def test_a_branch_outlives_its_parent_whose_name_is_free(logs: Logs) -> None:
    async with opened_plane(logs) as opened:
        plane, grant = opened.plane, opened.grant
        await opened.run(grant, TABLE)
        await opened.run(grant, FILL.format(1, 1000))
        await checkpoint(opened)
        trial = await branch(opened, "trial")
        main = (await plane.records.find(grant, "main"))[0].id
        await opened.run(grant, FILL.format(10_001, 12_000))
        await checkpoint(opened)
        before = await pages_of(opened, main)
        await plane.records.delete(grant, "main")
        with pytest.raises(NotFound):
            await plane.database(grant, main)
        assert [each.name for each in (await plane.records.list_page(grant))[0]] == ["trial"]
        assert 0 < await pages_of(opened, main) < before
        await plane.records.create(grant, "main")
        assert await opened.run(
            grant, "select count(*) from information_schema.tables where table_schema = 'public'"
        ) == [(0,)]
        assert await opened.run(grant, SUM, "trial") == [(1000, 500500)]
    async with opened_plane(logs) as opened:
        plane, grant = opened.plane, opened.grant
        assert await opened.run(grant, SUM, "trial") == [(1000, 500500)]
        assert (await plane.records.find(grant, "trial"))[0].branch_of == main
        await plane.records.delete(grant, "trial")
        assert not {main, trial} & set(logs.names())  # type: ignore[attr-defined]


@pytest.mark.long
async def test_a_deleted_parent_keeps_no_history(tmp_path: Path) -> None:
    async with opened_plane(DataFolder(tmp_path)) as opened:
        plane, grant = opened.plane, opened.grant
        await opened.run(grant, TABLE)
        await checkpoint(opened)
        await branch(opened, "trial")
        main = (await plane.records.find(grant, "main"))[0].id
        await plane.records.keep_history(grant, "main", 3600.0)
        await opened.run(grant, FILL.format(1, 20_000))
        await checkpoint(opened)
        await opened.run(grant, "update t set n = n + 1")
        await checkpoint(opened)
        assert await records_of(opened, main) == 2
        await plane.records.delete(grant, "main")
        assert await records_of(opened, main) == 0


@pytest.mark.half
async def test_a_branch_keeps_history_as_its_parent_does(logs: Logs) -> None:
    async with opened_plane(logs, history=60.0) as opened:
        plane, grant = opened.plane, opened.grant
        await branch(opened, "default")
        await plane.records.keep_history(grant, "main", 3600.0)
        await branch(opened, "longer")
        await branch(opened, "of-that", "longer")
        await plane.records.keep_history(grant, "longer", 0.0)
        expected = {"default": 60, "main": 3600, "longer": 0, "of-that": 3600}
        assert await histories(opened, expected) == expected
    async with opened_plane(logs, history=60.0) as opened:
        assert await histories(opened, expected) == expected


async def histories(opened: Opened, names: Iterable[str]) -> dict[str, int]:
    return {
        name: (await opened.plane.records.find(opened.grant, name))[1].history for name in names
    }


async def test_a_branch_of_a_branch_begins_before_that_was_made(logs: Logs) -> None:
    async with opened_plane(logs, history=3600.0) as opened:
        run, grant, plane = opened.run, opened.grant, opened.plane
        await run(grant, TABLE)
        await run(grant, FILL.format(1, 100))
        with await plane.database(grant, "main") as used:
            old = (await used.database.wait_durable_snapshot()).version
        first = await run(grant, SUM)
        await checkpoint(opened)
        await run(grant, FILL.format(101, 300))
        await checkpoint(opened)
        await branch(opened, "middle")
        await run(grant, "delete from t", "middle")
        record = await plane.records.create(grant, "late", Origin("middle", old))
        assert (record.branch_of, record.branch_version) == ("main", old), "who has that version"
        assert await run(grant, SUM, "late") == first
        await plane.records.delete(grant, "middle")
        await run(grant, "insert into t values (5000, 7)", "late")
        await close(opened, "late")
        assert await run(grant, "select count(*) from t", "late") == [(101,)]
        await plane.records.delete(grant, "late")
        assert [each.name for each in (await plane.records.list_page(grant))[0]] == ["main"]


async def test_a_version_that_only_the_branch_had_is_not_taken_from_its_parent(
    logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = Branches._written

    async def trimmed_meanwhile(self: Branches, branch: str, parent: Any, wanted: Any) -> Any:
        if parent.id == middle:
            raise HistoryTooOld("the version is no longer kept")
        return await written(self, branch, parent, wanted)

    async with opened_plane(logs, history=3600.0) as opened:
        run, grant, plane = opened.run, opened.grant, opened.plane
        await run(grant, TABLE)
        middle = await branch(opened, "middle")
        for number in range(3):
            await run(grant, f"insert into t values ({number}, 1)")
            await run(grant, f"insert into t values ({number}, 2)", "middle")
        with await plane.database(grant, "middle") as used:
            newest = (await used.database.wait_durable_snapshot()).version
        monkeypatch.setattr(Branches, "_written", trimmed_meanwhile)
        with pytest.raises(HistoryTooOld):
            await plane.records.create(grant, "late", Origin("middle", newest - 1))
        names = {each.name for each in (await plane.records.list_page(grant))[0]}
        assert names == {"main", "middle"}


@pytest.mark.half
async def test_a_deleted_branch_frees_what_only_it_needed(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    async with opened_plane(folder) as opened:
        plane, grant = opened.plane, opened.grant
        await opened.run(grant, TABLE)
        await opened.run(grant, FILL.format(1, 20_000))
        await checkpoint(opened)
        main = (await plane.records.find(grant, "main"))[0].id
        pages = await pages_of(opened, main)
        await branch(opened, "trial")
        await opened.run(grant, "update t set n = n + 1")
        await checkpoint(opened)
        assert await pages_of(opened, main) > 1.9 * pages
        await plane.records.delete(grant, "trial")
        await checkpoint(opened)
        assert await pages_of(opened, main) < 1.1 * pages


async def records_of(opened: Opened, database_id: str) -> int:
    """How many records a file has, of the first hundred."""
    with await opened.plane.databases.use(database_id) as used:
        return len(await used.database.log.read(0, 100))


async def pages_of(opened: Opened, database_id: str) -> int:
    """How many pages a file has."""
    with await opened.plane.databases.use(database_id) as used:
        found = await used.database.log.load_pages(0, 10**9)
        count = 0
        while found:
            count += len(found)
            found = await used.database.log.load_pages(found[-1][0], 10**9)
        return count


async def test_what_a_branch_needs_of_its_caller(logs: Logs) -> None:
    async with opened_plane(logs) as opened:
        plane = opened.plane
        await opened.run(opened.grant, TABLE)
        reader = await opened.limited("databases")
        with pytest.raises(Forbidden):
            await plane.records.create(reader, "trial", Origin("main"))
        with pytest.raises(NotFound):
            await plane.records.create(opened.grant, "trial", Origin("nothing"))
        with pytest.raises(NotFound):
            await plane.records.create(await opened.stranger(), "trial", Origin("nothing"))
        await branch(opened, "trial")
        with pytest.raises(AlreadyExists):
            await branch(opened, "trial")


async def test_a_branch_that_nobody_keeps_is_deleted(logs: Logs) -> None:
    async with opened_plane(logs) as opened:
        plane, grant = opened.plane, opened.grant
        await opened.run(grant, TABLE)
        for name in ("kept", "not-kept"):
            made = await plane.records.create(grant, name, Origin("main", seconds=3600))
            assert made.expires_at is not None
        assert (await plane.records.keep(grant, "kept")).expires_at is None
        opened.world.time += 3601
        await plane.sweep()
        names = [each.name for each in (await plane.records.list_page(grant))[0]]
        assert sorted(names) == ["kept", "main"]
