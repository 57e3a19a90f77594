"""Sessions live a day, are refreshed for a month at most, and never outlive their key."""

from __future__ import annotations

import pytest

from qserver.control import SCOPES, Grant, SessionRecord
from qserver.errors import Forbidden, InvalidRequest, NotFound, Unauthorized
from qserver.limits import SESSION_KEPT_SECONDS, SESSION_SECONDS, SESSIONS_OF_KEY_MAX
from qserver.query.sql_database import Statement
from tests.control.planes import NOON, Opened, opened_plane

DAY = SESSION_SECONDS


async def made(
    opened: Opened, grant: Grant | None = None, database: str | None = None
) -> tuple[SessionRecord, Grant]:
    record, token = await opened.plane.sessions.create(grant or opened.grant, database)
    return record, await opened.plane.authenticate(token)


async def test_a_session_lives_for_24_hours_with_all_that_its_key_may_do() -> None:
    async with opened_plane() as opened:
        record, token = await opened.plane.sessions.create(opened.grant)
        assert token.startswith("svc_s_") and len(token) == 38
        assert record.id.startswith("ses_") and record.key_id == opened.grant.key_id
        assert record.created_at.timestamp() == NOON
        assert record.expires_at.timestamp() == NOON + 86_400
        assert (record.database, record.scopes) == ("main", SCOPES)
        assert token not in repr(record)
        grant = await opened.plane.authenticate(token)
        assert grant.session_id == record.id and grant.key_id == opened.grant.key_id
        assert grant.scopes == opened.grant.scopes and grant.database_ids is None
        opened.world.time += 86_399
        await opened.plane.authenticate(token)
        opened.world.time += 1
        with pytest.raises(Unauthorized, match="expired"):
            await opened.plane.authenticate(token)


async def test_a_session_can_be_narrowed_to_scopes_and_a_database() -> None:
    async with opened_plane() as opened:
        shop = await opened.plane.records.create(opened.grant, "shop")
        record, token = await opened.plane.sessions.create(opened.grant, "shop", ["data:read"])
        assert (record.database, record.scopes) == ("shop", ("data:read",))
        grant = await opened.plane.authenticate(token)
        assert (grant.database, grant.database_ids) == ("shop", frozenset([shop.id]))
        assert grant.may_read and not grant.may_write
        with await opened.plane.database(grant, None) as database:
            assert database.id == shop.id
        with pytest.raises(Forbidden):
            await opened.plane.database(grant, "main")


async def test_a_session_has_nothing_that_its_key_lacks() -> None:
    async with opened_plane() as opened:
        await opened.plane.records.create(opened.grant, "shop")
        key = await opened.limited("data:read", databases=["shop"])
        with pytest.raises(Forbidden, match="lacks: data:write"):
            await opened.plane.sessions.create(key, None, ["data:read", "data:write"])
        with pytest.raises(Forbidden):
            await opened.plane.sessions.create(key, "main")
        with pytest.raises(NotFound):
            await opened.plane.sessions.create(key, "nothing")
        with pytest.raises(InvalidRequest):
            await opened.plane.sessions.create(key, None, ["root"])
        record, grant = await made(opened, key)
        assert record.database == "shop" == grant.database
        assert grant.database_ids == key.database_ids


async def test_what_is_taken_from_a_key_is_taken_from_its_sessions() -> None:
    async with opened_plane() as opened:
        await opened.plane.records.create(opened.grant, "shop")
        record, secret = await opened.plane.keys.create(
            opened.grant, "k", ["data:read", "data:write"]
        )
        key = await opened.plane.authenticate(secret)
        _, token = await opened.plane.sessions.create(key)
        _, on_main = await opened.plane.sessions.create(key, "main")
        await opened.plane.keys.change(
            opened.grant, record.id, scopes=["data:read"], databases=["shop"]
        )
        grant = await opened.plane.authenticate(token)
        assert grant.scopes == {"data:read"} and grant.database == "shop"
        assert (await opened.plane.authenticate(on_main)).database_ids == frozenset()


async def test_only_a_key_makes_sessions_and_only_a_session_is_refreshed_or_ended() -> None:
    async with opened_plane() as opened:
        _, grant = await made(opened)
        with pytest.raises(Forbidden, match="cannot make a session"):
            await opened.plane.sessions.create(grant)
        for call in (opened.plane.sessions.refresh, opened.plane.sessions.delete):
            with pytest.raises(Forbidden, match="not a session"):
                await call(opened.grant)


async def test_a_refresh_ends_24_hours_later_than_it_would_have() -> None:
    async with opened_plane() as opened:
        record, grant = await made(opened)
        opened.world.time += 3600
        refreshed = await opened.plane.sessions.refresh(grant)
        assert refreshed.expires_at.timestamp() == NOON + 2 * DAY
        assert (refreshed.id, refreshed.scopes, refreshed.database, refreshed.created_at) == (
            record.id,
            record.scopes,
            record.database,
            record.created_at,
        )
        assert (await opened.plane.sessions.refresh(grant)).expires_at.timestamp() == NOON + 3 * DAY


async def test_a_session_lives_for_30_days_at_most() -> None:
    async with opened_plane() as opened:
        _, grant = await made(opened)
        ends = [
            (await opened.plane.sessions.refresh(grant)).expires_at.timestamp() for _ in range(32)
        ]
        assert ends[28] == NOON + 30 * DAY
        assert ends[-1] == NOON + 30 * DAY


async def test_a_session_never_outlives_its_key() -> None:
    async with opened_plane() as opened:
        key = await opened.limited("data:read", expires_in=3600)
        record, grant = await made(opened, key)
        assert record.expires_at.timestamp() == NOON + 3600 == grant.expires_at
        refreshed = await opened.plane.sessions.refresh(grant)
        assert refreshed.expires_at == record.expires_at


async def test_an_ended_session_is_unknown_from_then_on() -> None:
    async with opened_plane() as opened:
        _, token = await opened.plane.sessions.create(opened.grant)
        grant = await opened.plane.authenticate(token)
        await opened.plane.sessions.delete(grant)
        assert opened.plane.grant_nowait(token) is None
        with pytest.raises(Unauthorized, match="no session"):
            await opened.plane.authenticate(token)
        for call in (opened.plane.sessions.refresh, opened.plane.sessions.delete):
            with pytest.raises(Unauthorized, match="meanwhile"):
                await call(grant)


async def test_a_session_needs_no_scope_and_works_where_its_key_does() -> None:
    async with opened_plane() as opened:
        _, grant = await made(opened)
        record, _ = await opened.plane.keys.create(grant, "made by a session")
        await opened.plane.keys.revoke(grant, record.id)
        await opened.plane.records.create(grant, "shop")
        assert len((await opened.plane.records.list_page(grant))[0]) == 2


async def test_a_key_has_a_bounded_number_of_sessions() -> None:
    async with opened_plane() as opened:
        await made(opened)
        await opened.plane._store.write(
            Statement(
                "insert into sessions select 'ses_' || n, key_id, n::text::bytea, scopes, null,"
                " created_at, expires_at from sessions, generate_series(2, $1) n",
                [SESSIONS_OF_KEY_MAX],
            )
        )
        with pytest.raises(InvalidRequest, match="at most 1000 sessions"):
            await opened.plane.sessions.create(opened.grant)
        opened.world.time += DAY
        await opened.plane.sessions.create(opened.grant)


async def test_expired_sessions_are_swept_and_living_ones_stay() -> None:
    async with opened_plane() as opened:
        _, old = await opened.plane.sessions.create(opened.grant)
        opened.world.time += DAY
        _, young = await opened.plane.sessions.create(opened.grant)
        await opened.plane.sweep()
        with pytest.raises(Unauthorized, match="expired"):
            await opened.plane.authenticate(old)
        opened.world.time += SESSION_KEPT_SECONDS - 1
        await opened.plane.authenticate(young)
        opened.world.time += 2
        await opened.plane.sweep()
        with pytest.raises(Unauthorized, match="no session"):
            await opened.plane.authenticate(old)
        with pytest.raises(Unauthorized, match="expired"):
            await opened.plane.authenticate(young)


async def test_living_sessions_are_listed_in_pages_without_their_tokens() -> None:
    async with opened_plane() as opened:
        await opened.plane.records.create(opened.grant, "shop")
        whole, _ = await made(opened)
        opened.world.time += 1
        narrow, _ = await opened.plane.sessions.create(opened.grant, "shop", ["data:read"])
        opened.world.time += 1
        key, secret = await opened.plane.keys.create(opened.grant, "temporary")
        of_key, _ = await made(opened, await opened.plane.authenticate(secret))
        stranger = await opened.stranger()
        await made(opened, stranger)
        first, cursor = await opened.plane.sessions.list_page(opened.grant, None, 2)
        rest, end = await opened.plane.sessions.list_page(opened.grant, cursor, 2)
        assert [each.id for each in (*first, *rest)] == [whole.id, narrow.id, of_key.id]
        assert cursor is not None and end is None
        assert (first[1].database, first[1].scopes) == ("shop", ("data:read",))
        assert (first[0].database, rest[0].key_id, rest[0].key) == (None, key.id, "temporary")
        await opened.plane.keys.revoke(opened.grant, key.id)
        assert len((await opened.plane.sessions.list_page(opened.grant))[0]) == 2
        opened.world.time += DAY - 2
        ((left,), _) = await opened.plane.sessions.list_page(opened.grant)
        assert left.id == narrow.id
        opened.world.time += 1
        assert await opened.plane.sessions.list_page(opened.grant) == ([], None)


async def test_a_session_of_another_key_is_ended_by_one_that_may_do_as_much() -> None:
    async with opened_plane() as opened:
        record, token = await opened.plane.sessions.create(opened.grant)
        end = opened.plane.sessions.end
        for refused in (
            await opened.limited("keys"),
            await opened.limited("keys", *SCOPES, databases=["main"]),
        ):
            with pytest.raises(Forbidden, match="may do more"):
                await end(refused, record.id)
        for without in (
            opened.plane.sessions.list_page(await opened.limited("data:read")),
            end(await opened.limited("databases", "data:write"), record.id),
        ):
            with pytest.raises(Forbidden, match="the scope keys"):
                await without
        stranger = await opened.stranger()
        with pytest.raises(NotFound):
            await end(stranger, record.id)
        await opened.plane.authenticate(token)
        await end(opened.grant, record.id)
        with pytest.raises(Unauthorized):
            await opened.plane.authenticate(token)
        with pytest.raises(NotFound, match="no session"):
            await end(opened.grant, record.id)


async def test_a_session_that_somebody_ends_takes_its_open_transactions_along() -> None:
    async with opened_plane() as opened:
        record, grant = await made(opened)
        with await opened.plane.database(grant, None) as database:
            database.users += 1
            opened.plane.open_transactions.hold(
                grant, database, await database.sql.open(False, 1000)
            )
        await opened.plane.sessions.end(opened.grant, record.id)
        assert opened.plane.open_transactions.statistics().held == 0
