"""Organizations: the first one, signups, what they have, and their reset."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from qserver.control import SCOPES, MemoryLogs
from qserver.errors import (
    AlreadyExists,
    DatabaseUnavailable,
    Forbidden,
    InvalidRequest,
    UndefinedTable,
)
from qserver.limits import ORGANIZATIONS_MAX
from qserver.query.sql_database import Statement
from tests.control.planes import (
    FIRST_KEY,
    Opened,
    TroubledLogs,
    opened_plane,
    outcome_of,
    unopened_plane,
    until,
)


async def test_the_first_start_makes_an_organization_a_database_and_a_key() -> None:
    async with opened_plane(first_key=None) as opened:
        assert opened.new_key is not None and opened.new_key.startswith("svc_k_")
        overview = await opened.plane.organizations.overview(opened.grant)
        assert (overview.name, overview.tier) == ("default", "unlimited")
        assert overview.limits.requests_per_minute is None
        assert overview.id == opened.grant.organization_id and overview.id.startswith("org_")
        (key,), _ = await opened.plane.keys.list_page(opened.grant)
        assert key.scopes == SCOPES and key.databases is None and key.expires_at is None
        (database,), _ = await opened.plane.records.list_page(opened.grant)
        assert (database.name, database.state) == ("main", "ready")
        assert await opened.run(opened.grant, "select 1 + 1") == [(2,)]


async def test_a_first_key_that_is_given_is_used_and_not_told() -> None:
    async with opened_plane(first_key=FIRST_KEY) as opened:
        assert opened.new_key is None
        assert (await opened.plane.authenticate(FIRST_KEY)).has("admin")


@pytest.mark.parametrize("key", ["", "hunter2", "svc_k_short", "svc_s_0123456789abcdef"])
def test_a_malformed_first_key_is_refused(key: str) -> None:
    with pytest.raises(InvalidRequest, match="shape of a key"):
        unopened_plane(MemoryLogs(), first_key=key)


def test_an_unknown_tier_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="no tier 'gold'"):
        unopened_plane(MemoryLogs(), default_tier="gold")


async def test_the_use_of_an_organization_is_counted() -> None:
    async with opened_plane(default_tier="free") as opened:
        await opened.plane.records.create(opened.grant, "shop")
        await opened.limited("data:read")
        await opened.limited("data:read", expires_in=60)
        await opened.plane.sessions.create(opened.grant)
        for _ in range(3):
            opened.plane.take_request(opened.grant)
        overview = await opened.plane.organizations.overview(opened.grant)
        assert overview.limits.requests_per_minute == 200
        use = overview.use
        assert (use.requests_this_minute, use.databases, use.keys, use.sessions) == (3, 2, 3, 1)
        opened.world.time += 60
        assert (await opened.plane.organizations.overview(opened.grant)).use.keys == 2
        reader = await opened.limited("data:read")
        assert (await opened.plane.organizations.overview(reader)).name == "default"


async def test_signup_makes_an_organization_of_the_free_tier_that_works_at_once() -> None:
    async with opened_plane() as opened:
        organization, database, key, secret = await opened.plane.organizations.signup("acme")
        assert (organization.name, organization.tier) == ("acme", "free")
        assert (database.name, database.organization, database.state) == ("main", "acme", "ready")
        assert (key.organization_id, key.scopes) == (organization.id, SCOPES)
        assert secret not in repr((organization, database, key))
        grant = await opened.plane.authenticate(secret)
        assert (grant.organization, grant.tier) == ("acme", "free")
        assert await opened.run(grant, "select 1") == [(1,)]
        assert opened.plane.take_request(grant).limit == 200


@pytest.mark.parametrize("name", ["", "Acme", "acme inc", "x" * 64])
async def test_a_bad_name_of_an_organization_is_refused(name: str) -> None:
    async with opened_plane() as opened:
        with pytest.raises(InvalidRequest, match="name of an organization"):
            await opened.plane.organizations.signup(name)


async def test_a_name_is_given_to_one_organization_only() -> None:
    outcomes: list[Any] = []

    async def signup(opened: Opened, name: str) -> None:
        outcomes.append(await outcome_of(opened.plane.organizations.signup(name)))

    async with opened_plane() as opened:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(signup, opened, "acme")
            nursery.start_soon(signup, opened, "acme")
            nursery.start_soon(signup, opened, "default")
        assert sorted(type(each).__name__ for each in outcomes) == [
            "AlreadyExists",
            "AlreadyExists",
            "tuple",
        ]
        with pytest.raises(AlreadyExists, match="'acme'"):
            await opened.plane.organizations.signup("acme")


async def test_a_server_has_a_bounded_number_of_organizations() -> None:
    async with opened_plane() as opened:
        await opened.plane._store.write(
            Statement(
                "insert into organizations select 'org_' || n, 'o' || n, 'free', 'ready', now()"
                " from generate_series(2, $1) n",
                [ORGANIZATIONS_MAX],
            )
        )
        with pytest.raises(InvalidRequest, match="10000 organizations already"):
            await opened.plane.organizations.signup("more")


async def test_a_signup_that_fails_leaves_nothing_behind() -> None:
    logs = TroubledLogs()
    async with opened_plane(logs) as opened:
        logs.fail_open = True
        with pytest.raises(DatabaseUnavailable):
            await opened.plane.organizations.signup("acme")
        logs.fail_open = False
        await opened.plane.organizations.signup("acme")


async def test_a_signup_cut_short_is_undone_at_the_next_start() -> None:
    logs = TroubledLogs()
    async with opened_plane(logs) as opened:
        logs.hold()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(opened.plane.organizations.signup, "acme")
            await until(lambda: len(logs.openings) == 3)
            nursery.cancel_scope.cancel()
    logs.gate.set()
    async with opened_plane(logs) as opened:
        assert len(logs.names()) == 2
        await opened.plane.organizations.signup("acme")


async def test_a_first_start_cut_short_begins_anew() -> None:
    logs = TroubledLogs()
    plane = unopened_plane(logs)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(plane.run)
        await until(lambda: logs.openings == ["control"])
        await until(lambda: bool(plane.databases.statistics()))
        logs.hold()
        await until(lambda: len(logs.openings) == 2)
        nursery.cancel_scope.cancel()
    logs.gate.set()
    async with opened_plane(logs, first_key=None) as opened:
        assert opened.new_key is not None
        assert await opened.run(opened.grant, "select 1") == [(1,)]
        assert len(logs.names()) == 2


async def test_a_control_database_that_cannot_be_opened_stops_the_start_with_a_reason() -> None:
    logs = TroubledLogs()
    logs.fail_open = True
    with pytest.raises(DatabaseUnavailable, match="control") as refused:
        await unopened_plane(logs).run()
    assert refused.value.detail == "the disk is full"


async def test_a_reset_empties_every_database_and_keeps_the_rest() -> None:
    async with opened_plane() as opened:
        grant = opened.grant
        await opened.plane.records.create(grant, "shop")
        await opened.run(grant, "create table a (id serial primary key, b integer unique)")
        await opened.run(grant, "create table c (id integer primary key references a (id))")
        await opened.run(grant, "insert into a (b) values (1), (2), (3)")
        await opened.run(grant, "insert into c values (1)")
        await opened.run(grant, "create view v as select * from a")
        await opened.run(grant, "create sequence s")
        await opened.run(grant, "create type mood as enum ('good', 'bad')")
        await opened.run(grant, "create schema extra")
        await opened.run(grant, "create table extra.t (id integer primary key)")
        await opened.run(grant, "create table t (id integer primary key)", "shop")
        _, token = await opened.plane.sessions.create(grant)
        wiped = await opened.plane.reset(grant)
        assert (wiped.databases, wiped.tables_dropped, wiped.rows_deleted) == (2, 4, 4)
        for name in ("a", "c", "v", "extra.t"):
            with pytest.raises(UndefinedTable):
                await opened.run(grant, f"select * from {name}")
        for name in ("main", "shop"):
            _, facts = await opened.plane.records.find(grant, name)
            assert (facts.tables, facts.rows) == (0, 0)
        await opened.plane.authenticate(token)
        await opened.run(grant, "create type mood as enum ('new')")
        await opened.run(grant, "create table a (id serial primary key, b mood)")
        await opened.run(grant, "insert into a (b) values ('new')")
        assert await opened.run(grant, "select id, b from a") == [(1, "new")]
        again = await opened.plane.reset(grant)
        assert (again.tables_dropped, again.rows_deleted) == (1, 1)


async def test_a_reset_needs_admin_and_all_databases() -> None:
    async with opened_plane() as opened:
        lesser = await opened.limited("data:read", "data:write", "schema", "databases", "keys")
        limited = await opened.limited("admin", databases=["main"])
        for grant in (lesser, limited):
            with pytest.raises(Forbidden):
                await opened.plane.reset(grant)


async def test_what_was_reset_stays_so_after_a_restart() -> None:
    logs = MemoryLogs()
    async with opened_plane(logs) as opened:
        await opened.run(opened.grant, "create table t (id integer primary key)")
        await opened.run(opened.grant, "insert into t values (1)")
        await opened.plane.reset(opened.grant)
        await opened.run(opened.grant, "create table u (id integer primary key)")
    async with opened_plane(logs) as opened:
        assert await opened.run(opened.grant, "select * from u") == []
        with pytest.raises(UndefinedTable):
            await opened.run(opened.grant, "select * from t")


async def test_a_reset_passes_over_databases_that_are_deleted_meanwhile() -> None:
    async with opened_plane() as opened:
        for number in range(3):
            opened.world.time += 1
            await opened.plane.records.create(opened.grant, f"d{number}")
        outcomes: list[Any] = []

        async def reset() -> None:
            outcomes.append(await outcome_of(opened.plane.reset(opened.grant)))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(reset)
            nursery.start_soon(opened.plane.records.delete, opened.grant, "d2")
        (wiped,) = outcomes
        assert wiped.databases in (3, 4) and wiped.tables_dropped == 0
