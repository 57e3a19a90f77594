"""Tokens become grants, names become open databases, and what was revoked fails at once."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from qserver.control import MemoryLogs
from qserver.control.tokens import digest
from qserver.errors import (
    ChangeUnconfirmed,
    DatabaseUnavailable,
    Forbidden,
    NotFound,
    RateLimited,
    Unauthorized,
)
from qserver.limits import CONTROL_SECONDS_MAX, SESSION_SECONDS
from qserver.query.sql_database import Statement
from tests.control.planes import FIRST_KEY, NOON, ControlLogs, TroubledLogs, opened_plane


async def test_a_key_gives_a_grant_and_is_known_without_waiting_from_then_on() -> None:
    async with opened_plane(first_key=FIRST_KEY) as opened:
        grant = opened.plane.grant_nowait(FIRST_KEY)
        assert grant == opened.grant
        assert grant is not None
        assert (grant.organization, grant.tier, grant.database) == ("default", "unlimited", "main")
        assert grant.has("admin") and grant.session_id is None and grant.database_ids is None
        assert opened.plane.grant_nowait("svc_k_" + "x" * 32) is None


@pytest.mark.parametrize(
    ("token", "message"),
    [
        ("", "neither a key"),
        ("secret", "neither a key"),
        ("svc_k_ünïcode-0123456789", "neither a key"),
        ("svc_x_" + "a" * 32, "neither a key"),
        ("svc_k_" + "a" * 300, "neither a key"),
        (FIRST_KEY + "x", "no key has this secret"),
        ("svc_s_" + "a" * 32, "no session has this token"),
    ],
)
async def test_an_unknown_token_is_refused_and_not_repeated(token: str, message: str) -> None:
    async with opened_plane() as opened:
        with pytest.raises(Unauthorized, match=message) as refused:
            await opened.plane.authenticate(token)
        assert not token or token not in f"{refused.value!r} {refused.value.hint}"


async def test_a_revoked_key_fails_on_the_very_next_request_with_its_sessions() -> None:
    async with opened_plane() as opened:
        plane = opened.plane
        record, secret = await plane.keys.create(opened.grant, "test")
        _, token = await plane.sessions.create(await plane.authenticate(secret))
        await plane.authenticate(token)
        await plane.authenticate(secret)
        await plane.keys.revoke(opened.grant, record.id)
        assert plane.grant_nowait(secret) is None and plane.grant_nowait(token) is None
        with pytest.raises(Unauthorized, match="the key was revoked"):
            await plane.authenticate(secret)
        with pytest.raises(Unauthorized, match="key of this session was revoked"):
            await plane.authenticate(token)


async def test_an_expired_key_fails_although_nothing_was_written() -> None:
    async with opened_plane() as opened:
        plane = opened.plane
        _, secret = await plane.keys.create(opened.grant, "test", expires_in=60)
        _, token = await plane.sessions.create(await plane.authenticate(secret))
        grant = await plane.authenticate(token)
        assert grant.expires_at == NOON + 60
        await plane.authenticate(secret)
        opened.world.time += 59.9
        assert plane.grant_nowait(secret) is not None
        opened.world.time += 0.1
        assert plane.grant_nowait(secret) is None and plane.grant_nowait(token) is None
        with pytest.raises(Unauthorized, match="the key has expired"):
            await plane.authenticate(secret)
        with pytest.raises(Unauthorized, match="key of this session has expired"):
            await plane.authenticate(token)


async def test_an_expired_session_fails_and_its_key_does_not() -> None:
    async with opened_plane() as opened:
        _, token = await opened.plane.sessions.create(opened.grant)
        await opened.plane.authenticate(token)
        opened.world.time += SESSION_SECONDS
        with pytest.raises(Unauthorized, match="session has expired"):
            await opened.plane.authenticate(token)
        await opened.plane.authenticate(FIRST_KEY)


async def test_no_secret_is_stored_shown_or_cached_in_a_repr() -> None:
    logs = MemoryLogs()
    async with opened_plane(logs, first_key=None) as opened:
        secret = opened.new_key
        assert secret is not None
        _, token = await opened.plane.sessions.create(opened.grant)
        grant = await opened.plane.authenticate(token)
        keys, _ = await opened.plane.keys.list_page(opened.grant)
        shown = repr((grant, keys, opened.plane, opened.plane.authenticate, opened.grant))
        assert secret not in shown and token not in shown
        assert keys[0].prefix == secret[:10]
    async with logs.open("control") as log:
        held = [*await log.read(0, 10_000), *await log.load_pages(0, 10_000)]
    stored = b"".join(data for _, data in held)
    for each in (secret, token):
        assert each.encode() not in stored and each[6:].encode() not in stored
        assert digest(each) in stored


async def test_a_database_is_found_by_name_by_id_and_by_default() -> None:
    async with opened_plane() as opened:
        plane, grant = opened.plane, opened.grant
        assert plane.database_nowait(grant, "main") is None, "not looked up yet"
        with await plane.database(grant, None) as database:
            assert database.name == "main"
            for wanted in ("main", database.id):
                with await plane.database(grant, wanted) as same:
                    assert same is database
                known = plane.database_nowait(grant, wanted)
                assert known is database
                known.release()
            assert database.users == 1


@pytest.mark.parametrize("name", ["nothing", "", "db_0000000000000000000000", "control", "Main"])
async def test_an_unknown_database_is_not_found(name: str) -> None:
    async with opened_plane() as opened:
        assert opened.plane.database_nowait(opened.grant, name) is None
        with pytest.raises(NotFound, match="there is no database"):
            await opened.plane.database(opened.grant, name)


async def test_a_limited_key_uses_its_databases_and_no_other() -> None:
    async with opened_plane() as opened:
        plane = opened.plane
        other = await plane.records.create(opened.grant, "other")
        (await plane.database(opened.grant, "main")).release()
        grant = await opened.limited("data:read", databases=["other"])
        assert grant.database == "other"
        with await plane.database(grant, None) as database:
            assert (database.id, database.name) == (other.id, "other")
        main = await plane.database(opened.grant, "main")
        main.release()
        for wanted in ("main", main.id):
            assert plane.database_nowait(grant, wanted) is None
            with pytest.raises(Forbidden, match="may not use"):
                await plane.database(grant, wanted)
            assert main.users == 0


async def test_main_is_the_default_of_a_key_that_may_use_it() -> None:
    async with opened_plane() as opened:
        await opened.plane.records.create(opened.grant, "aaa")
        await opened.plane.records.create(opened.grant, "zzz")
        assert (await opened.limited("keys", databases=["aaa", "main"])).database == "main"
        assert (await opened.limited("keys", databases=["zzz", "aaa"])).database == "aaa"


async def test_a_key_whose_databases_are_gone_may_use_none() -> None:
    async with opened_plane() as opened:
        await opened.plane.records.create(opened.grant, "other")
        record, secret = await opened.plane.keys.create(
            opened.grant, "test", ["data:read"], ["other"]
        )
        await opened.plane.records.delete(opened.grant, "other")
        grant = await opened.plane.authenticate(secret)
        assert grant.database_ids is not None
        with pytest.raises(Forbidden):
            await opened.plane.database(grant, None)
        assert (await opened.plane.keys.find(opened.grant, record.id)).databases == ()


async def test_a_renamed_database_is_found_by_its_new_name_only() -> None:
    async with opened_plane() as opened:
        plane, grant = opened.plane, opened.grant
        await opened.run(grant, "create table t (id integer primary key)")
        await plane.records.rename(grant, "main", "core")
        assert plane.database_nowait(grant, "main") is None
        with pytest.raises(NotFound):
            await plane.database(grant, "main")
        with await plane.database(grant, "core") as database:
            assert database.name == "core"
            assert (await database.sql.execute("select count(*) from t")).rows == [(0,)]


async def test_requests_are_counted_by_organization_whatever_the_token() -> None:
    async with opened_plane(default_tier="free") as opened:
        plane = opened.plane
        reader = await opened.limited("data:read")
        _, token = await plane.sessions.create(opened.grant)
        session = await plane.authenticate(token)
        other = await opened.stranger()
        for grant in (opened.grant, reader, session):
            plane.take_request(grant)
        allowance = plane.take_request(opened.grant)
        assert (allowance.policy, allowance.limit, allowance.remaining) == ("free", 200, 196)
        for _ in range(196):
            plane.take_request(session)
        with pytest.raises(RateLimited):
            plane.take_request(reader)
        assert plane.take_request(other).remaining == 199


async def test_refused_callers_get_through_after_the_wait(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with opened_plane(default_tier="free") as opened:
        for _ in range(200):
            opened.plane.take_request(opened.grant)
        with pytest.raises(RateLimited) as refused:
            opened.plane.take_request(opened.grant)
        await trio.sleep(refused.value.retry_after_seconds)
        opened.plane.take_request(opened.grant)


async def test_after_a_restart_of_the_control_database_tokens_are_good_again() -> None:
    logs = ControlLogs()
    async with opened_plane(logs) as opened:
        logs.control.fails_before_append = True
        with pytest.raises(ChangeUnconfirmed):
            await opened.plane.keys.create(opened.grant, "test")
        logs.control.fails_before_append = False
        assert await opened.plane.authenticate(FIRST_KEY) == opened.grant
        assert len((await opened.plane.keys.list_page(opened.grant))[0]) == 1


async def test_a_database_that_cannot_be_opened_is_unavailable_and_then_tried_again(
    autojump_clock: trio.testing.MockClock,
) -> None:
    logs = TroubledLogs()
    async with opened_plane(logs, idle_seconds=10) as opened:
        await trio.sleep(20)
        assert not opened.is_open("main")
        logs.fail_open = True
        with pytest.raises(DatabaseUnavailable):
            await opened.plane.database(opened.grant, "main")
        logs.fail_open = False
        (await opened.plane.database(opened.grant, "main")).release()
        assert opened.is_open("main")


async def test_while_the_disk_of_the_control_database_is_away_keys_are_known_and_nothing_changes(
    autojump_clock: trio.testing.MockClock,
) -> None:
    logs = ControlLogs()
    async with opened_plane(logs) as opened:
        logs.control.fails_before_append = logs.control.fails_read = True
        with pytest.raises(ChangeUnconfirmed):
            await opened.plane.keys.create(opened.grant, "test")
        assert await opened.plane.authenticate(FIRST_KEY) == opened.grant
        assert opened.plane.grant_nowait(FIRST_KEY) is not None
        began = trio.current_time()
        with pytest.raises(DatabaseUnavailable, match="control database does not answer"):
            await opened.plane._store.write(Statement("delete from sessions"))
        assert trio.current_time() - began == pytest.approx(CONTROL_SECONDS_MAX)
        logs.control.fails_before_append = logs.control.fails_read = False
        assert await opened.plane.authenticate(FIRST_KEY) == opened.grant
