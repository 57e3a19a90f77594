"""Databases of one family are compared, whichever pages they share, and wherever these are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from qserver.control.logs import Logs, MemoryLogs
from qserver.durability.data_folder import DataFolder
from qserver.durability.page_cache import STEPS_OF_LOAD
from qserver.errors import InvalidRequest, NotFound
from qserver.storage.snapshot_changes import snapshot_changes, snapshot_counts
from qserver.web.routes.comparing import drop_shared_of
from tests.control.planes import Opened, opened_plane
from tests.control.test_branches import FILL, TABLE, branch, checkpoint, close

ROWS = "select id, n from t order by id"


@pytest.fixture(params=["files", "memory"])
def logs(request: pytest.FixtureRequest, tmp_path: Path) -> Logs:
    return DataFolder(tmp_path) if request.param == "files" else MemoryLogs()


class Counted:
    """Whose work is counted: pages loaded, and entries decoded."""

    work = 0


async def found_between(opened: Opened, one: str, other: str) -> dict[int, tuple[Any, Any]]:
    """Each row that differs, as it is in both."""
    use = opened.plane.database
    with await use(opened.grant, one) as begun, await use(opened.grant, other) as ended:
        first = await begun.database.wait_durable_snapshot()
        last = await ended.database.wait_durable_snapshot()
        drop_shared = drop_shared_of(begun, ended)
        found = [each for each in snapshot_changes(first, last, None, None, drop_shared) if each]
        counts = [each for each in snapshot_counts(first, last, None, drop_shared) if each]
        assert sum(each.insert + each.update + each.delete for each in counts) == len(found)
    return {key[0]: (each.before, each.after) for _, key, each in found if key is not None}


async def check(opened: Opened, one: str, other: str) -> int:
    """Compare both ways; how many rows differ."""
    rows = []
    for name in (one, other):
        rows.append({row[0]: row for row in await opened.run(opened.grant, ROWS, name)})
    keys = rows[0].keys() | rows[1].keys()
    wanted = {
        key: (rows[0].get(key), rows[1].get(key))
        for key in keys
        if rows[0].get(key) != rows[1].get(key)
    }
    assert await found_between(opened, one, other) == wanted
    assert await found_between(opened, other, one) == {
        key: pair[::-1] for key, pair in wanted.items()
    }
    return len(wanted)


async def save_and_close(opened: Opened, *names: str) -> None:
    for name in names:
        await checkpoint(opened, name)
        await close(opened, name)


@pytest.mark.half
async def test_pages_of_one_number_are_not_taken_for_one(logs: Logs) -> None:
    """Both save the same number of pages after the branch was made, so their numbers meet."""
    async with opened_plane(logs) as opened:
        run, grant = opened.run, opened.grant
        await run(grant, TABLE)
        await run(grant, FILL.format(1, 3000))
        await checkpoint(opened)
        await branch(opened, "one")
        await branch(opened, "two")
        for name, value in (("main", 1), ("one", 2), ("two", 3)):
            await run(grant, f"update t set n = -{value} where id % 100 = 0", name)
            await checkpoint(opened, name)
        for one, other in (("main", "one"), ("one", "two"), ("two", "main")):
            assert await check(opened, one, other) == 30
        assert await check(opened, "one", "one") == 0


@pytest.mark.half
async def test_relatives_of_any_degree_are_compared_after_all_were_closed(logs: Logs) -> None:
    async with opened_plane(logs) as opened:
        run, grant = opened.run, opened.grant
        await run(grant, TABLE)
        await run(grant, FILL.format(1, 2000))
        await branch(opened, "child")  # of what no checkpoint has
        await run(grant, "delete from t where id <= 5", "child")
        await checkpoint(opened, "child")
        await branch(opened, "grandchild", of="child")
        await run(grant, "insert into t values (9000, null)", "grandchild")
        await branch(opened, "nephew")
        await run(grant, "update t set n = null where id = 2000", "nephew")
        for _ in range(2):
            assert await check(opened, "main", "child") == 5
            assert await check(opened, "main", "grandchild") == 6
            assert await check(opened, "child", "grandchild") == 1
            assert await check(opened, "nephew", "grandchild") == 7
            await save_and_close(opened, "main", "child", "grandchild", "nephew")
        await opened.plane.records.delete(grant, "main")
        assert await check(opened, "nephew", "grandchild") == 7


@pytest.mark.half
async def test_shared_pages_are_not_loaded(tmp_path: Path) -> None:
    async with opened_plane(DataFolder(tmp_path)) as opened:
        run, grant = opened.run, opened.grant
        await run(grant, TABLE)
        await run(grant, FILL.format(1, 50_000))
        await checkpoint(opened)
        await branch(opened, "trial")
        await run(grant, "update t set n = 0 where id = 30000", "trial")
        await save_and_close(opened, "main", "trial")
        use = opened.plane.database
        with await use(grant, "main") as main, await use(grant, "trial") as trial:
            assert len(await found_between(opened, "main", "trial")) == 1
            loads = [each.database.pages.loads for each in (main, trial)]
            assert max(loads) < 20, loads


async def test_strangers_and_what_is_not_there_are_not_compared(logs: Logs) -> None:
    async with opened_plane(logs) as opened:
        plane, grant = opened.plane, opened.grant
        await plane.records.create(grant, "stranger")
        await branch(opened, "trial")
        await plane.access.check_related(grant, "trial", "main", "trial")
        with pytest.raises(InvalidRequest, match="share no history"):
            await plane.access.check_related(grant, "main", "stranger")
        with pytest.raises(NotFound):
            await plane.access.check_related(grant, "main", "nothing")


@pytest.mark.half
async def test_leaves_that_were_saved_apart_are_not_decoded(tmp_path: Path) -> None:
    """The branch begins with rows that its parent has not saved: both save them, each by itself."""
    async with opened_plane(DataFolder(tmp_path)) as opened:
        run, grant = opened.run, opened.grant
        await run(grant, TABLE)
        await run(grant, FILL.format(1, 20_000))
        await branch(opened, "trial")
        await run(grant, "update t set n = 0 where id = 9000", "trial")
        await save_and_close(opened, "main", "trial")
        use = opened.plane.database
        with await use(grant, "main") as main, await use(grant, "trial") as trial:
            stores = [each.database.pages for each in (main, trial)]
            counted = stores[0].cache.worker = Counted()
            assert len(await found_between(opened, "main", "trial")) == 1
            assert min(each.loads for each in stores) > 300
            decoded = counted.work - STEPS_OF_LOAD * sum(each.loads for each in stores)
            assert 0 < decoded < 500, "of 40,000 entries"


@pytest.mark.long
@pytest.mark.parametrize(("few", "many"), [(1, 1000), (0, 1000), (10, 20_000), (1000, 20_000)])
async def test_trees_of_any_two_heights_are_compared(few: int, many: int) -> None:
    async with opened_plane(MemoryLogs()) as opened:
        await opened.run(opened.grant, TABLE)
        await opened.run(opened.grant, FILL.format(1, few))
        await branch(opened, "trial")
        await opened.run(opened.grant, FILL.format(few + 1, many), "trial")
        assert await check(opened, "main", "trial") == many - few
