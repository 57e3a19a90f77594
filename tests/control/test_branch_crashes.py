"""A crash after any write to any log, while branches are made and deleted: nothing is lost.

The logs are copied after each change of any of them, as a disk would be found after a crash at that
moment. The plane is started on every copy.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import pytest

from qserver.control.branches import Origin
from qserver.control.logs import MemoryLogs, SizedLog
from qserver.durability.branch_log import BORROWED, read_base
from qserver.durability.memory import CheckpointRows
from qserver.durability.page_cache import PageCache
from tests.control.planes import Opened, opened_plane, started_logs
from tests.control.test_branch_model import check_pins
from tests.sampling import NIGHTLY, drawn

CHANGES = (
    "append",
    "save_records",
    "save_pages",
    "save_checkpoint",
    "change_checkpoints",
    "forget",
)


class CopiedLogs(MemoryLogs):
    """Keeps a copy of itself from after each change."""

    def __init__(self, logs: MemoryLogs) -> None:
        super().__init__()
        self.copies: list[MemoryLogs] = []
        for name, log in logs._logs.items():
            self._logs[name] = watched(log, self._copy)

    async def _open_one(self, name: str, may_make: bool) -> SizedLog:
        if name not in self._logs:
            self._logs[name] = watched(await super()._open_one(name, may_make), self._copy)
        return self._logs[name]

    async def remove(self, name: str) -> None:
        await super().remove(name)
        self._copy()

    def _copy(self) -> None:
        other = MemoryLogs()
        for name, log in self._logs.items():
            made = other._logs[name] = SizedLog()
            made._records, made._pages = dict(log._records), dict(log._pages)
            made._checkpoints = CheckpointRows()
            made._checkpoints._rows = copy(log._checkpoints._rows)
            made._last = log._last
        self.copies.append(other)


def watched(log: SizedLog, changed: Callable[[], None]) -> SizedLog:
    for name in CHANGES:
        setattr(log, name, watching(getattr(log, name), changed))
    return log


def watching(call: Callable[..., Any], changed: Callable[[], None]) -> Callable[..., Any]:
    async def change(*arguments: Any) -> None:
        await call(*arguments)
        changed()

    return change


ADDED = {"main": 1, "one": 10, "two": 100}
"""What a change adds to each row: pages of one number differ from database to database."""


async def live(opened: Opened) -> None:
    """Make and delete branches, and change what they share."""
    plane, grant = opened.plane, opened.grant

    async def change(database: str) -> None:
        await opened.run(grant, f"update t set v = v + {ADDED[database]}", database)
        with await plane.database(grant, database) as used:
            await used.database.checkpoint()

    await plane.records.create(grant, "one", Origin("main"))
    await change("main")
    await plane.records.create(grant, "two", Origin("one"))
    await change("one")
    await plane.records.delete(grant, "one")
    await plane.records.delete(grant, "main")
    await change("two")
    await plane.records.delete(grant, "two")


BY_DAY = 7
"""Writes after which a crash is tried. At night all are."""


@pytest.mark.long
async def test_a_crash_at_any_write_leaves_no_pin_and_no_branch_alone() -> None:
    logs = CopiedLogs(await started_logs())
    async with opened_plane(logs) as opened:
        await opened.run(opened.grant, "create table t (k integer primary key, v integer)")
        await opened.run(opened.grant, "insert into t select k, 0 from generate_series(1, 200) k")
        with await opened.plane.database(opened.grant, "main") as used:
            await used.database.checkpoint()
        logs.copies.clear()
        await live(opened)
        copies = list(logs.copies)
    assert len(copies) > 40
    for number in range(len(copies)) if NIGHTLY else drawn(range(len(copies)), BY_DAY):
        each = copies[number]
        async with opened_plane(each, cache=PageCache(0)) as opened:
            plane, grant = opened.plane, opened.grant
            states = await plane._store.rows("select id, state, branch_of from databases")
            parents = {parent for _, _, parent in states}
            for name, state, _ in states:
                assert state == "ready" or (state == "deleted" and name in parents), number
            assert each.names() == sorted(["control", *(name for name, _, _ in states)]), number
            check_pins(each)
            for record in (await plane.records.list_page(grant))[0]:
                rows = await opened.run(grant, "select distinct v from t", record.name)
                assert rows in ([(0,)], [(ADDED[record.name],)]), number
                assert await opened.run(grant, "select count(*) from t", record.name) == [(200,)]
            assert opened.world.reports == []


CONTENTS = "select sum(v), count(*) from t"


async def lend(opened: Opened) -> dict[str, int]:
    """Branch a long log, go on in both, and have the parent take its records back.

    Returns the version of each database before the last change, and asserts what is lent.
    """
    plane, grant = opened.plane, opened.grant
    await plane.records.create(grant, "one", Origin("main"))
    await opened.run(grant, "update t set v = v + 1 where k = 7", "one")
    await plane.records.create(grant, "two", Origin("one"))
    await opened.run(grant, "update t set v = v + 1 where k = 8")
    await plane.records.keep_history(grant, "main", 0)
    with await plane.database(grant, "main") as main:
        await main.database.checkpoint()
        assert len(main.database.held_by) == 1, "the branch borrows, the parent needs nothing"
        await plane.sweep()
        await main.database.checkpoint()
        assert main.database.held_by == []
        saved = await main.database.history._saved()
        assert saved.log_start == saved.version, "what was lent is forgotten"
    versions = {}
    for name in ("one", "two"):
        with await plane.database(grant, name) as used:
            versions[name] = (await used.database.wait_durable_snapshot()).version
        await opened.run(grant, "update t set v = v + 1 where k = 9", name)
    return versions


@pytest.mark.long
@pytest.mark.parametrize(("history", "saves"), [(0.0, True), (3600.0, False)])
async def test_a_crash_at_any_write_loses_no_borrowed_record(history: float, saves: bool) -> None:
    """With history the branches copy what they borrow, else a checkpoint takes its place."""
    logs = CopiedLogs(await started_logs())
    async with opened_plane(logs, history=history) as opened:
        grant = opened.grant
        await opened.run(grant, "create table t (k integer primary key, v integer)")
        await opened.run(grant, "insert into t select k, 0 from generate_series(1, 200) k")
        if saves:
            with await opened.plane.database(grant, "main") as used:
                await used.database.checkpoint()
        for key in range(1, 7):
            await opened.run(grant, f"update t set v = v + 1 where k = {key}")
        logs.copies.clear()
        versions = await lend(opened)
        copies = list(logs.copies)
        if history:
            for name, version in versions.items():
                with await opened.plane.database(grant, name) as used:
                    await used.database.snapshot_at(version)
    assert len(copies) > 25
    for number in range(len(copies)) if NIGHTLY else drawn(range(len(copies)), BY_DAY):
        each = copies[number]
        for log in each._logs.values():
            base = read_base(log)
            is_made = log._checkpoints.newest is not None
            borrows = base is not None and base.borrows
            assert borrows or not is_made or BORROWED not in log._records.values(), number
        async with opened_plane(each, history=history, cache=PageCache(0)) as opened:
            check_pins(each)
            for record in (await opened.plane.records.list_page(grant))[0]:
                ((total, count),) = await opened.run(grant, CONTENTS, record.name)
                least = {"main": 6, "one": 6, "two": 7}[record.name]
                assert count == 200 and least <= total <= least + 2, (number, record.name)
            assert opened.world.reports == []
