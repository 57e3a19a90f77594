"""What the control plane knew before a restart it knows after it."""

from __future__ import annotations

from collections.abc import Collection

import msgspec
import pytest
import trio

from qserver.control import MemoryLogs
from qserver.control.plane import Gone
from qserver.control.schema import MIGRATIONS
from qserver.errors import DatabaseUnavailable, RateLimited, Unauthorized
from qserver.query.sql_database import Statement
from tests.control.planes import FIRST_KEY, opened_plane, unopened_plane

OTHER_KEY = "svc_k_fedcba9876543210"


async def test_everything_is_kept() -> None:
    logs = MemoryLogs()
    async with opened_plane(logs) as opened:
        plane = opened.plane
        await plane.records.create(opened.grant, "shop")
        await opened.run(opened.grant, "create table t (id integer primary key)", "shop")
        await opened.run(opened.grant, "insert into t values (42)", "shop")
        _, secret = await plane.keys.create(opened.grant, "reader", ["data:read"], ["shop"], 3600)
        revoked, dead = await plane.keys.create(opened.grant, "dead")
        await plane.keys.revoke(opened.grant, revoked.id)
        session, token = await plane.sessions.create(opened.grant, "shop")
        *_, strangers = await plane.organizations.signup("acme")
        databases = await plane.records.list_page(opened.grant)
        keys = await plane.keys.list_page(opened.grant)
        reader = await plane.authenticate(secret)
    async with opened_plane(logs) as opened:
        plane = opened.plane
        assert opened.new_key is None
        assert await plane.records.list_page(opened.grant) == databases
        assert await plane.keys.list_page(opened.grant) == keys
        found = await plane.authenticate(secret)
        assert msgspec.structs.replace(found, share=reader.share) == reader
        assert (await plane.authenticate(token)).session_id == session.id
        assert (await plane.authenticate(strangers)).organization == "acme"
        assert await opened.run(reader, "select id from t") == [(42,)]
        with pytest.raises(Unauthorized, match="revoked"):
            await plane.authenticate(dead)


async def test_a_start_names_the_logs_whose_databases_are_gone() -> None:
    logs, found = MemoryLogs(), list[Collection[str]]()

    async def remove_gone(gone: Gone) -> None:
        found.append(await gone(["control", "db_gone", *logs.names()]))

    for _ in range(2):
        plane = unopened_plane(logs)
        plane.remove_gone = remove_gone
        async with trio.open_nursery() as nursery:
            await nursery.start(plane.run)
            nursery.cancel_scope.cancel()
    assert found == [[], ["db_gone"]], "a control database that is new knows of none"


async def test_a_key_that_was_made_is_not_told_again() -> None:
    logs = MemoryLogs()
    async with opened_plane(logs, first_key=None) as opened:
        secret = opened.new_key
        assert secret is not None
    async with opened_plane(logs, first_key=None) as opened:
        assert opened.new_key is None
        assert (await opened.plane.authenticate(secret)).has("admin")


async def test_another_first_key_is_added_to_those_that_are_there() -> None:
    logs = MemoryLogs()
    async with opened_plane(logs, first_key=FIRST_KEY):
        pass
    for _ in range(2):
        async with opened_plane(logs, first_key=OTHER_KEY) as opened:
            assert opened.new_key is None
            for key in (FIRST_KEY, OTHER_KEY):
                assert (await opened.plane.authenticate(key)).has("admin")
            keys, _ = await opened.plane.keys.list_page(opened.grant)
            assert sorted(key.name for key in keys) == ["first key", "key of the settings"]


async def test_a_first_key_that_was_revoked_stays_revoked() -> None:
    logs = MemoryLogs()
    async with opened_plane(logs) as opened:
        key_id = opened.grant.key_id
        _, secret = await opened.plane.keys.create(opened.grant, "successor")
        await opened.plane.keys.revoke(opened.grant, key_id)
    plane = unopened_plane(logs, first_key=FIRST_KEY)
    async with trio.open_nursery() as nursery:
        assert await nursery.start(plane.run) is None
        with pytest.raises(Unauthorized, match="revoked"):
            await plane.authenticate(FIRST_KEY)
        assert (await plane.authenticate(secret)).has("admin")
        nursery.cancel_scope.cancel()


async def test_the_tier_of_the_default_organization_follows_the_setting() -> None:
    logs = MemoryLogs()
    for tier in ("free", "pro", None):
        async with opened_plane(logs, default_tier=tier) as opened:
            assert opened.grant.tier == (tier or "unlimited")
            *_, secret = await opened.plane.organizations.signup(f"org-{tier}".lower())
            assert (await opened.plane.authenticate(secret)).tier == "free"


async def test_requests_are_counted_anew() -> None:
    logs = MemoryLogs()
    async with opened_plane(logs, default_tier="free") as opened:
        for _ in range(200):
            opened.plane.take_request(opened.grant)
        with pytest.raises(RateLimited):
            opened.plane.take_request(opened.grant)
    async with opened_plane(logs, default_tier="free") as opened:
        assert opened.plane.take_request(opened.grant).remaining == 199


async def test_a_control_database_of_a_later_release_is_refused() -> None:
    logs = MemoryLogs()
    async with opened_plane(logs) as opened:
        version = len(MIGRATIONS) + 1
        await opened.plane._store.write(Statement("insert into migrations values ($1)", [version]))
    with pytest.raises(DatabaseUnavailable, match=f"has version {version}"):
        await unopened_plane(logs).run()
