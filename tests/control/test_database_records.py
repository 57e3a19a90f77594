"""Databases are made, listed, renamed and deleted, and a crash in between loses nothing."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from qserver.control import DatabaseFacts, MemoryLogs
from qserver.errors import (
    AlreadyExists,
    DatabaseUnavailable,
    DiskFull,
    Forbidden,
    InvalidRequest,
    LogFailed,
    NotFound,
    Unauthorized,
)
from qserver.limits import DATABASES_OF_ORGANIZATION_MAX, SWEEP_SECONDS
from qserver.query.sql_database import Statement
from tests.control.planes import (
    ControlLogs,
    Opened,
    TroubledLogs,
    opened_plane,
    outcome_of,
    until,
)


async def names(opened: Opened) -> list[str]:
    records, _ = await opened.plane.records.list_page(opened.grant)
    return sorted(record.name for record in records)


async def states(opened: Opened) -> dict[str, str]:
    records, _ = await opened.plane.records.list_page(opened.grant)
    return {record.name: record.state for record in records}


async def test_a_new_database_is_ready_and_empty_and_can_be_used() -> None:
    async with opened_plane() as opened:
        record = await opened.plane.records.create(opened.grant, "shop")
        assert (record.name, record.organization, record.state) == ("shop", "default", "ready")
        assert record.id.startswith("db_")
        assert record.created_at.tzinfo is not None
        assert record.created_at.timestamp() == opened.world.time
        found, facts = await opened.plane.records.find(opened.grant, "shop")
        assert found == record
        assert (facts.version, facts.tables, facts.rows) == (0, 0, 0)
        await opened.run(opened.grant, "create table t (id integer primary key)", "shop")
        await opened.run(opened.grant, "insert into t values (1), (2)", "shop")
        same, facts = await opened.plane.records.find(opened.grant, record.id)
        assert same == record
        assert (facts.version, facts.tables, facts.rows) == (2, 1, 2)
        assert facts.size_bytes > 0


async def test_a_name_is_taken_once() -> None:
    async with opened_plane() as opened:
        with pytest.raises(AlreadyExists, match="'main'"):
            await opened.plane.records.create(opened.grant, "main")
        assert await names(opened) == ["main"]


async def test_of_two_creations_of_one_name_at_once_one_wins() -> None:
    outcomes: list[Any] = []

    async def create(opened: Opened) -> None:
        outcomes.append(await outcome_of(opened.plane.records.create(opened.grant, "shop")))

    async with opened_plane() as opened:
        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(create, opened)
        refused = [each for each in outcomes if isinstance(each, AlreadyExists)]
        assert len(refused) == 3 and len(outcomes) == 4
        assert await names(opened) == ["main", "shop"]


async def test_a_bad_name_is_refused() -> None:
    async with opened_plane() as opened:
        for name in ("", "Shop", "a b", "x" * 64, "1a"):
            with pytest.raises(InvalidRequest):
                await opened.plane.records.create(opened.grant, name)
            with pytest.raises(InvalidRequest):
                await opened.plane.records.rename(opened.grant, "main", name)
        assert await names(opened) == ["main"]


async def test_lists_come_in_pages() -> None:
    async with opened_plane() as opened:
        for number in range(5):
            opened.world.time += 1
            await opened.plane.records.create(opened.grant, f"d{number}")
        seen: list[str] = []
        cursor: str | None = None
        for length in (2, 2, 2):
            records, cursor = await opened.plane.records.list_page(opened.grant, cursor, 2)
            assert len(records) == length
            seen += [record.name for record in records]
        assert cursor is None
        assert seen == ["main", "d0", "d1", "d2", "d3", "d4"]
        with pytest.raises(InvalidRequest, match="cursor"):
            await opened.plane.records.list_page(opened.grant, "garbage")
        with pytest.raises(InvalidRequest, match="limit"):
            await opened.plane.records.list_page(opened.grant, None, 0)


async def test_a_cursor_stays_good_when_its_record_is_gone() -> None:
    async with opened_plane() as opened:
        for number in range(3):
            opened.world.time += 1
            await opened.plane.records.create(opened.grant, f"d{number}")
        _, cursor = await opened.plane.records.list_page(opened.grant, None, 2)
        await opened.plane.records.delete(opened.grant, "d0")
        records, _ = await opened.plane.records.list_page(opened.grant, cursor, 2)
        assert [record.name for record in records] == ["d1", "d2"]


async def test_rename_keeps_the_id_and_refuses_a_taken_name() -> None:
    async with opened_plane() as opened:
        record = await opened.plane.records.create(opened.grant, "shop")
        renamed = await opened.plane.records.rename(opened.grant, "shop", "store")
        assert (renamed.id, renamed.name) == (record.id, "store")
        with pytest.raises(AlreadyExists):
            await opened.plane.records.rename(opened.grant, record.id, "main")
        with pytest.raises(NotFound):
            await opened.plane.records.rename(opened.grant, "shop", "other")
        same = await opened.plane.records.rename(opened.grant, "store", "store")
        assert same == renamed


async def test_delete_takes_the_database_and_its_log() -> None:
    async with opened_plane() as opened:
        assert isinstance(opened.logs, MemoryLogs)
        before = opened.logs.names()
        await opened.plane.records.create(opened.grant, "shop")
        await opened.run(opened.grant, "create table t (id integer primary key)", "shop")
        await opened.plane.records.delete(opened.grant, "shop")
        assert opened.logs.names() == before
        assert await names(opened) == ["main"]
        for call in (opened.plane.records.find, opened.plane.records.delete):
            with pytest.raises(NotFound):
                await call(opened.grant, "shop")
        await opened.plane.records.create(opened.grant, "shop")
        assert await opened.run(opened.grant, "select 1", "shop") == [(1,)]
        with pytest.raises(Exception, match='relation "t" does not exist'):
            await opened.run(opened.grant, "select * from t", "shop")


async def test_main_may_be_deleted_and_made_again() -> None:
    async with opened_plane() as opened:
        await opened.plane.records.delete(opened.grant, "main")
        with pytest.raises(NotFound, match="main"):
            await opened.plane.database(opened.grant, None)
        await opened.plane.records.create(opened.grant, "main")
        assert await opened.run(opened.grant, "select 1") == [(1,)]


async def test_the_scope_databases_is_needed() -> None:
    async with opened_plane() as opened:
        plane = opened.plane
        grant = await opened.limited("data:read", "data:write", "schema", "keys")
        for call in (
            plane.records.list_page(grant),
            plane.records.create(grant, "shop"),
            plane.records.find(grant, "main"),
            plane.records.rename(grant, "main", "core"),
            plane.records.delete(grant, "main"),
        ):
            with pytest.raises(Forbidden, match="scope databases"):
                await call
        assert await names(opened) == ["main"]
        enough = await opened.limited("databases")
        await plane.records.create(enough, "shop")


async def test_a_limited_key_sees_and_changes_its_own_and_makes_none() -> None:
    async with opened_plane() as opened:
        plane = opened.plane
        await plane.records.create(opened.grant, "shop")
        grant = await opened.limited("databases", databases=["shop"])
        records, _ = await plane.records.list_page(grant)
        assert [record.name for record in records] == ["shop"]
        for call in (
            plane.records.create(grant, "more"),
            plane.records.find(grant, "main"),
            plane.records.rename(grant, "main", "core"),
            plane.records.delete(grant, "main"),
        ):
            with pytest.raises(Forbidden):
                await call
        await plane.records.rename(grant, "shop", "store")
        await plane.records.delete(grant, "store")
        assert await names(opened) == ["main"]


async def test_an_organization_has_a_bounded_number_of_databases() -> None:
    async with opened_plane() as opened:
        insertions = [
            opened.plane.records.insertion(opened.grant.organization_id, "default", f"d{number}")
            for number in range(DATABASES_OF_ORGANIZATION_MAX - 1)
        ]
        statements = [statement for statement, _ in insertions]
        await opened.plane._store.write(*statements)
        await opened.plane._store.write(Statement("update databases set state = 'ready'"))
        with pytest.raises(DiskFull, match="at most 1000 databases"):
            await opened.plane.records.create(opened.grant, "more")


async def test_a_caller_that_hangs_up_does_not_leave_half_a_database() -> None:
    logs = TroubledLogs()
    async with opened_plane(logs) as opened:
        logs.hold()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(opened.plane.records.create, opened.grant, "shop")
            await until(lambda: len(logs.openings) == 3)
            nursery.cancel_scope.cancel()
        assert await states(opened) == {"main": "ready", "shop": "creating"}
        with pytest.raises(DatabaseUnavailable, match="being made"):
            await opened.plane.database(opened.grant, "shop")
        _, facts = await opened.plane.records.find(opened.grant, "shop")
        assert facts == DatabaseFacts()
        for call in (
            opened.plane.records.delete(opened.grant, "shop"),
            opened.plane.records.rename(opened.grant, "shop", "other"),
        ):
            with pytest.raises(DatabaseUnavailable, match="still being made"):
                await call
        logs.gate.set()
        with trio.fail_after(240):
            while (await states(opened))["shop"] != "ready":
                await trio.lowlevel.checkpoint()
        assert await opened.run(opened.grant, "select 1", "shop") == [(1,)]


async def test_an_organization_makes_one_database_at_a_time_and_another_need_not_wait() -> None:
    logs = TroubledLogs()
    async with opened_plane(logs) as opened:
        stranger = await opened.stranger()
        before = len(logs.openings)
        logs.hold()
        async with trio.open_nursery() as nursery:
            for name in ("a", "b", "c"):
                nursery.start_soon(opened.plane.records.create, opened.grant, name)
            nursery.start_soon(opened.plane.records.create, stranger, "other")
            await until(lambda: len(logs.openings) == before + 2)
            await trio.testing.wait_all_tasks_blocked(0.01)
            assert len(logs.openings) == before + 2, "one of each organization"
            logs.gate.set()
        assert set((await states(opened)).values()) == {"ready"}


async def test_a_database_whose_users_end_late_does_not_hold_up_others() -> None:
    async with opened_plane() as opened:
        records = opened.plane.records
        await records.create(opened.grant, "used")
        async with trio.open_nursery() as nursery:
            with await opened.plane.database(opened.grant, "used"):
                nursery.start_soon(records.delete, opened.grant, "used")
                await until(lambda: not opened.is_open("used"))
                await records.create(opened.grant, "other")
                assert (await states(opened))["used"] == "deleting"


async def test_a_database_that_cannot_be_opened_is_not_made() -> None:
    logs = TroubledLogs()
    async with opened_plane(logs) as opened:
        logs.fail_open = True
        with pytest.raises(DatabaseUnavailable) as refused:
            await opened.plane.records.create(opened.grant, "shop")
        assert refused.value.detail == "the disk is full"
        assert await names(opened) == ["main"]
        logs.fail_open = False
        await opened.plane.records.create(opened.grant, "shop")


async def test_a_creation_cut_short_is_finished_at_the_next_start() -> None:
    logs = TroubledLogs()
    async with opened_plane(logs) as opened:
        logs.hold()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(opened.plane.records.create, opened.grant, "shop")
            await until(lambda: len(logs.openings) == 3)
            nursery.cancel_scope.cancel()
    logs.gate.set()
    async with opened_plane(logs) as opened:
        assert await states(opened) == {"main": "ready", "shop": "ready"}
        assert await opened.run(opened.grant, "select 1", "shop") == [(1,)]


async def test_a_deletion_cut_short_is_finished_at_the_next_start() -> None:
    logs = TroubledLogs()
    async with opened_plane(logs) as opened:
        await opened.plane.records.create(opened.grant, "shop")
        logs.hold_removals()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(opened.plane.records.delete, opened.grant, "shop")
            with trio.fail_after(240):
                while (await states(opened))["shop"] != "deleting":
                    await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        for call in (
            opened.plane.database(opened.grant, "shop"),
            opened.plane.records.delete(opened.grant, "shop"),
            opened.plane.records.rename(opened.grant, "shop", "other"),
        ):
            with pytest.raises(NotFound):
                await call
        with pytest.raises(AlreadyExists):
            await opened.plane.records.create(opened.grant, "shop")
    assert len(logs.names()) == 3
    logs.remove_gate.set()
    async with opened_plane(logs) as opened:
        assert await states(opened) == {"main": "ready"}
        assert len(logs.names()) == 2


async def test_what_a_disk_has_held_up_is_tried_again_by_the_sweep(
    autojump_clock: trio.testing.MockClock,
) -> None:
    logs = TroubledLogs()
    async with opened_plane(logs) as opened:
        await opened.plane.records.create(opened.grant, "shop")
        logs.fail_remove = True
        with pytest.raises(LogFailed):
            await opened.plane.records.delete(opened.grant, "shop")
        await trio.sleep(SWEEP_SECONDS + 1)
        assert await states(opened) == {"main": "ready", "shop": "deleting"}
        assert any("stays deleting" in report for report in opened.world.reports)
        logs.fail_remove = False
        await trio.sleep(SWEEP_SECONDS + 1)
        assert await states(opened) == {"main": "ready"}


async def test_the_sweep_leaves_alone_what_is_under_way() -> None:
    logs = TroubledLogs()
    async with opened_plane(logs) as opened, trio.open_nursery() as nursery:
        logs.hold()
        nursery.start_soon(opened.plane.records.create, opened.grant, "shop")
        await until(lambda: len(logs.openings) == 3)
        await opened.plane.sweep()
        assert (await states(opened))["shop"] == "creating"
        logs.gate.set()


async def test_a_key_that_was_revoked_meanwhile_changes_nothing() -> None:
    async with opened_plane() as opened:
        record, secret = await opened.plane.keys.create(opened.grant, "test")
        grant = await opened.plane.authenticate(secret)
        await opened.plane.keys.revoke(opened.grant, record.id)
        for call in (
            opened.plane.records.create(grant, "shop"),
            opened.plane.records.rename(grant, "main", "core"),
            opened.plane.records.delete(grant, "main"),
        ):
            with pytest.raises(Unauthorized, match="meanwhile"):
                await call
        assert await names(opened) == ["main"]


async def test_requests_during_a_deletion_end_in_an_error_and_open_nothing_again() -> None:
    async with opened_plane() as opened:
        assert isinstance(opened.logs, MemoryLogs)
        outcomes: list[Any] = []
        for _ in range(10):
            await opened.plane.records.create(opened.grant, "shop")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_ask, opened, outcomes)
                nursery.start_soon(_ask, opened, outcomes)
                nursery.start_soon(opened.plane.records.delete, opened.grant, "shop")
                nursery.start_soon(_ask, opened, outcomes)
        assert len(outcomes) == 30
        kinds = {type(each) for each in outcomes}
        assert kinds <= {list, NotFound, DatabaseUnavailable}
        assert len(opened.logs.names()) == 2, "the control database and main"


async def _ask(opened: Opened, outcomes: list[Any]) -> None:
    outcomes.append(await outcome_of(opened.run(opened.grant, "select 1", "shop")))


async def test_a_stop_of_the_service_is_told_to_those_who_wait() -> None:
    logs = TroubledLogs()
    outcomes: list[Any] = []
    async with trio.open_nursery() as outside:
        async with opened_plane(logs) as opened:
            logs.hold()

            async def create() -> None:
                outcomes.append(await outcome_of(opened.plane.records.create(opened.grant, "shop")))

            outside.start_soon(create)
            await until(lambda: len(logs.openings) == 3)
    assert [type(each) for each in outcomes] == [DatabaseUnavailable]
    assert "stopping" in str(outcomes[0])
    with pytest.raises(DatabaseUnavailable, match="stopping"):
        await opened.plane.records.create(opened.grant, "shop")


async def test_a_sweep_that_fails_is_reported_and_the_next_one_comes(
    autojump_clock: trio.testing.MockClock,
) -> None:
    logs = ControlLogs()
    async with opened_plane(logs) as opened:
        await opened.plane.keys.create(opened.grant, "k", expires_in=1)
        opened.world.time += 400 * 86_400
        logs.control.fails_before_append = True
        await trio.sleep(SWEEP_SECONDS + 1)
        logs.control.fails_before_append = False
        assert any("sweep" in report for report in opened.world.reports)
        await trio.sleep(SWEEP_SECONDS + 1)
        assert len((await opened.plane.keys.list_page(opened.grant))[0]) == 1
