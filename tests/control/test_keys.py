"""Keys give nothing that they lack, can only be narrowed, and end at once."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from qserver.control import SCOPES
from qserver.errors import Forbidden, InvalidRequest, NotFound, Unauthorized
from qserver.limits import (
    KEY_GRACE_SECONDS_MAX,
    KEY_KEPT_SECONDS,
    KEY_LIFE_SECONDS_MAX,
    KEYS_OF_ORGANIZATION_MAX,
)
from tests.control.planes import FIRST_KEY, NOON, Opened, opened_plane, outcome_of


async def states(opened: Opened) -> dict[str, str]:
    records, _ = await opened.plane.keys.list_page(opened.grant)
    return {record.name: record.state for record in records}


async def test_a_new_key_is_shown_once_and_does_what_it_may() -> None:
    async with opened_plane() as opened:
        record, secret = await opened.plane.keys.create(
            opened.grant, "reader", ["data:read"], ["main"], 3600
        )
        assert secret.startswith("svc_k_") and len(secret) == 38
        assert record.id.startswith("key_") and record.prefix == secret[:10]
        assert (record.name, record.scopes, record.databases) == (
            "reader",
            ("data:read",),
            ("main",),
        )
        assert (record.state, record.revoked_at) == ("active", None)
        assert record.expires_at is not None
        assert record.expires_at.timestamp() == NOON + 3600
        assert await opened.plane.keys.find(opened.grant, record.id) == record
        grant = await opened.plane.authenticate(secret)
        assert grant.scopes == {"data:read"} and grant.key_id == record.id


async def test_what_is_not_said_comes_from_the_key_that_makes_it() -> None:
    async with opened_plane() as opened:
        record, _ = await opened.plane.keys.create(opened.grant, "same")
        assert (record.scopes, record.databases, record.expires_at) == (SCOPES, None, None)
        narrow = await opened.limited("keys", "data:read", databases=["main"], expires_in=60)
        record, _ = await opened.plane.keys.create(narrow, "child")
        assert (record.scopes, record.databases) == (("data:read", "keys"), ("main",))
        assert record.expires_at is not None
        assert record.expires_at.timestamp() == NOON + 60


async def test_a_key_gives_no_scope_that_it_lacks() -> None:
    async with opened_plane() as opened:
        grant = await opened.limited("keys", "data:read")
        for scopes in (["data:write"], ["admin"], ["data:read", "schema"]):
            with pytest.raises(Forbidden, match="cannot give what it lacks"):
                await opened.plane.keys.create(grant, "more", scopes)
        record, _ = await opened.plane.keys.create(grant, "less", ["data:read"])
        assert record.scopes == ("data:read",)


async def test_a_key_gives_no_database_that_it_lacks() -> None:
    async with opened_plane() as opened:
        await opened.plane.records.create(opened.grant, "shop")
        grant = await opened.limited("keys", "admin", databases=["shop"])
        with pytest.raises(Forbidden, match="may not use the database 'main'"):
            await opened.plane.keys.create(grant, "more", None, ["shop", "main"])
        record, _ = await opened.plane.keys.create(grant, "same", None, None)
        assert record.databases == ("shop",)


async def test_a_key_gives_no_longer_life_than_its_own() -> None:
    async with opened_plane() as opened:
        grant = await opened.limited("keys", expires_in=60)
        with pytest.raises(Forbidden, match="longer life"):
            await opened.plane.keys.create(grant, "more", None, None, 61)
        await opened.plane.keys.create(grant, "same", None, None, 60)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"name": ""}, InvalidRequest),
        ({"name": "a\nb"}, InvalidRequest),
        ({"name": "k", "scopes": []}, InvalidRequest),
        ({"name": "k", "scopes": ["root"]}, InvalidRequest),
        ({"name": "k", "databases": []}, InvalidRequest),
        ({"name": "k", "databases": ["nothing"]}, NotFound),
        ({"name": "k", "databases": ["control"]}, NotFound),
        ({"name": "k", "expires_in": 0}, InvalidRequest),
        ({"name": "k", "expires_in": -5}, InvalidRequest),
        ({"name": "k", "expires_in": KEY_LIFE_SECONDS_MAX + 1}, InvalidRequest),
    ],
)
async def test_a_key_that_makes_no_sense_is_refused(
    arguments: dict[str, Any], error: type[Exception]
) -> None:
    async with opened_plane() as opened:
        with pytest.raises(error):
            await opened.plane.keys.create(opened.grant, **arguments)
        assert len(await states(opened)) == 1


async def test_the_scope_keys_is_needed() -> None:
    async with opened_plane() as opened:
        plane = opened.plane
        grant = await opened.limited("data:read", "data:write", "schema", "databases")
        for call in (
            plane.keys.list_page(grant),
            plane.keys.create(grant, "more"),
            plane.keys.find(grant, grant.key_id),
            plane.keys.change(grant, grant.key_id, name="new"),
            plane.keys.revoke(grant, grant.key_id),
            plane.keys.rotate(grant, grant.key_id),
        ):
            with pytest.raises(Forbidden, match="scope keys"):
                await call


async def test_lists_of_keys_come_in_pages_without_secrets() -> None:
    async with opened_plane() as opened:
        secrets = []
        for number in range(4):
            opened.world.time += 1
            _, secret = await opened.plane.keys.create(opened.grant, f"k{number}")
            secrets.append(secret)
        first, cursor = await opened.plane.keys.list_page(opened.grant, None, 3)
        rest, end = await opened.plane.keys.list_page(opened.grant, cursor, 3)
        assert [record.name for record in first + rest] == ["first key", "k0", "k1", "k2", "k3"]
        assert end is None
        assert not any(secret in repr(first + rest) for secret in secrets)
        with pytest.raises(InvalidRequest, match="cursor"):
            await opened.plane.keys.list_page(opened.grant, "nonsense")


async def test_an_unknown_key_is_not_found() -> None:
    async with opened_plane() as opened:
        plane, grant = opened.plane, opened.grant
        for call in (
            plane.keys.find(grant, "key_nothing"),
            plane.keys.change(grant, "key_nothing", name="new"),
            plane.keys.revoke(grant, "key_nothing"),
            plane.keys.rotate(grant, "key_nothing"),
        ):
            with pytest.raises(NotFound, match="no key 'key_nothing'"):
                await call


async def test_a_key_can_be_renamed_and_narrowed() -> None:
    async with opened_plane() as opened:
        await opened.plane.records.create(opened.grant, "shop")
        record, secret = await opened.plane.keys.create(opened.grant, "k", ["data:read", "keys"])
        changed = await opened.plane.keys.change(
            opened.grant, record.id, name="reader", scopes=["data:read"], databases=["shop"]
        )
        assert (changed.name, changed.scopes, changed.databases) == (
            "reader",
            ("data:read",),
            ("shop",),
        )
        assert await opened.plane.keys.find(opened.grant, record.id) == changed
        grant = await opened.plane.authenticate(secret)
        assert grant.scopes == {"data:read"} and not grant.has("keys")
        assert grant.database == "shop"
        same = await opened.plane.keys.change(opened.grant, record.id)
        assert same == changed


async def test_a_key_cannot_be_widened() -> None:
    async with opened_plane() as opened:
        await opened.plane.records.create(opened.grant, "shop")
        record, _ = await opened.plane.keys.create(opened.grant, "k", ["data:read"], ["shop"])
        change = opened.plane.keys.change
        for call in (
            change(opened.grant, record.id, scopes=["data:read", "data:write"]),
            change(opened.grant, record.id, scopes=["admin"]),
            change(opened.grant, record.id, databases=["shop", "main"]),
        ):
            with pytest.raises(InvalidRequest, match="only be narrowed"):
                await call
        assert await opened.plane.keys.find(opened.grant, record.id) == record


async def test_admin_may_be_narrowed_to_what_it_implied() -> None:
    async with opened_plane() as opened:
        record, _ = await opened.plane.keys.create(opened.grant, "k", ["admin"])
        changed = await opened.plane.keys.change(opened.grant, record.id, scopes=["schema"])
        assert changed.scopes == ("schema",)


async def test_a_lesser_key_cannot_touch_a_greater_one() -> None:
    async with opened_plane() as opened:
        plane = opened.plane
        await plane.records.create(opened.grant, "shop")
        writer, _ = await plane.keys.create(opened.grant, "writer", ["data:write"])
        lesser = await opened.limited("keys", "data:read")
        limited = await opened.limited("admin", databases=["shop"])
        for grant, key_id in (
            (lesser, writer.id),
            (lesser, opened.grant.key_id),
            (limited, writer.id),
        ):
            for call in (
                plane.keys.revoke(grant, key_id),
                plane.keys.rotate(grant, key_id),
                plane.keys.change(grant, key_id, name="mine"),
            ):
                with pytest.raises(Forbidden, match="may do more"):
                    await call
        assert set((await states(opened)).values()) == {"active"}


async def test_a_revoked_key_stays_in_the_list_and_ends_its_sessions() -> None:
    async with opened_plane() as opened:
        plane = opened.plane
        record, secret = await plane.keys.create(opened.grant, "k")
        _, token = await plane.sessions.create(await plane.authenticate(secret))
        opened.world.time += 5
        await plane.keys.revoke(opened.grant, record.id)
        await plane.keys.revoke(opened.grant, record.id)
        found = await plane.keys.find(opened.grant, record.id)
        assert found.state == "revoked" and found.revoked_at is not None
        assert found.revoked_at.timestamp() == NOON + 5
        for each in (secret, token):
            with pytest.raises(Unauthorized, match="revoked"):
                await plane.authenticate(each)
        for call in (
            plane.keys.rotate(opened.grant, record.id),
            plane.keys.change(opened.grant, record.id, name="new"),
        ):
            with pytest.raises(InvalidRequest, match="revoked"):
                await call
        assert (await plane.organizations.overview(opened.grant)).use.sessions == 0


async def test_the_last_key_that_can_make_others_cannot_go() -> None:
    async with opened_plane() as opened:
        plane, key_id = opened.plane, opened.grant.key_id
        await plane.keys.create(opened.grant, "expires", expires_in=60)
        await plane.keys.create(opened.grant, "limited", databases=["main"])
        await plane.keys.create(opened.grant, "lesser", ["keys"])
        for call in (
            plane.keys.revoke(opened.grant, key_id),
            plane.keys.change(opened.grant, key_id, scopes=["data:read"]),
            plane.keys.change(opened.grant, key_id, databases=["main"]),
        ):
            with pytest.raises(Forbidden, match="last key"):
                await call
        await plane.keys.change(opened.grant, key_id, name="still here")
        _, secret = await plane.keys.create(opened.grant, "successor")
        await plane.keys.revoke(opened.grant, key_id)
        successor = await plane.authenticate(secret)
        with pytest.raises(Forbidden, match="last key"):
            await plane.keys.revoke(successor, successor.key_id)


async def test_of_two_last_keys_that_revoke_each_other_one_stays() -> None:
    async with opened_plane() as opened:
        record, secret = await opened.plane.keys.create(opened.grant, "other")
        other = await opened.plane.authenticate(secret)
        outcomes: list[Any] = []

        async def revoke(grant: Any, key_id: str) -> None:
            outcomes.append(await outcome_of(opened.plane.keys.revoke(grant, key_id)))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(revoke, opened.grant, record.id)
            nursery.start_soon(revoke, other, opened.grant.key_id)
        assert sorted(type(each).__name__ for each in outcomes) == ["NoneType", "Unauthorized"]


async def test_rotation_without_grace_replaces_the_secret_at_once() -> None:
    async with opened_plane() as opened:
        record, secret = await opened.plane.keys.create(
            opened.grant, "k", ["data:read"], ["main"], 600
        )
        successor, new = await opened.plane.keys.rotate(opened.grant, record.id)
        assert new != secret and successor.id != record.id
        assert (successor.name, successor.scopes, successor.databases, successor.expires_at) == (
            record.name,
            record.scopes,
            record.databases,
            record.expires_at,
        )
        await opened.plane.authenticate(new)
        with pytest.raises(Unauthorized, match="revoked"):
            await opened.plane.authenticate(secret)


async def test_rotation_with_grace_lets_the_old_one_go_on_for_so_long() -> None:
    async with opened_plane() as opened:
        record, secret = await opened.plane.keys.create(opened.grant, "k")
        _, new = await opened.plane.keys.rotate(opened.grant, record.id, 60)
        opened.world.time += 59
        await opened.plane.authenticate(secret)
        opened.world.time += 1
        with pytest.raises(Unauthorized, match="expired"):
            await opened.plane.authenticate(secret)
        await opened.plane.authenticate(new)
        assert (await opened.plane.keys.find(opened.grant, record.id)).state == "expired"


async def test_a_grace_never_prolongs_a_key() -> None:
    async with opened_plane() as opened:
        record, _ = await opened.plane.keys.create(opened.grant, "k", expires_in=30)
        await opened.plane.keys.rotate(opened.grant, record.id, 60)
        found = await opened.plane.keys.find(opened.grant, record.id)
        assert found.expires_at == record.expires_at


@pytest.mark.parametrize("grace", [-1, KEY_GRACE_SECONDS_MAX + 1, float("nan")])
async def test_a_grace_is_bounded(grace: float) -> None:
    async with opened_plane() as opened:
        with pytest.raises(InvalidRequest, match="grace_seconds"):
            await opened.plane.keys.rotate(opened.grant, opened.grant.key_id, grace)


async def test_the_last_key_can_rotate_itself() -> None:
    async with opened_plane() as opened:
        _, secret = await opened.plane.keys.rotate(opened.grant, opened.grant.key_id)
        assert (await opened.plane.authenticate(secret)).has("admin")
        with pytest.raises(Unauthorized):
            await opened.plane.authenticate(FIRST_KEY)


@pytest.mark.long
async def test_an_organization_has_a_bounded_number_of_active_keys() -> None:
    async with opened_plane() as opened:
        plane = opened.plane
        rows = [
            plane.keys.insertion(opened.grant.organization_id, "k", ("keys",), None, None)
            for _ in range(KEYS_OF_ORGANIZATION_MAX - 1)
        ]
        await plane._store.write(*[statement for statement, _, _ in rows])
        with pytest.raises(InvalidRequest, match="at most 1000 active keys"):
            await plane.keys.create(opened.grant, "more")
        await plane.keys.revoke(opened.grant, rows[0][1].id)
        await plane.keys.create(opened.grant, "more")


async def test_dead_keys_are_swept_in_the_end() -> None:
    async with opened_plane() as opened:
        plane = opened.plane
        record, secret = await plane.keys.create(opened.grant, "revoked")
        await plane.sessions.create(await plane.authenticate(secret))
        await plane.keys.create(opened.grant, "expired", expires_in=60)
        await plane.keys.create(opened.grant, "living")
        await plane.keys.revoke(opened.grant, record.id)
        opened.world.time += KEY_KEPT_SECONDS
        await plane.sweep()
        assert set(await states(opened)) == {"first key", "revoked", "expired", "living"}
        opened.world.time += 61
        await plane.sweep()
        assert set(await states(opened)) == {"first key", "living"}


async def test_a_revoked_key_that_waited_for_its_turn_makes_no_key() -> None:
    async with opened_plane() as opened:
        plane = opened.plane
        record, secret = await plane.keys.create(opened.grant, "thief")
        grant = await plane.authenticate(secret)
        outcomes: list[Any] = []

        async def make() -> None:
            outcomes.append(await outcome_of(plane.keys.create(grant, "back door")))

        async with trio.open_nursery() as nursery:
            async with plane._store.changing():
                nursery.start_soon(plane.keys.revoke, opened.grant, record.id)
                await trio.testing.wait_all_tasks_blocked()
                nursery.start_soon(make)
                await trio.testing.wait_all_tasks_blocked()
        assert [type(each) for each in outcomes] == [Unauthorized]
        assert "back door" not in await states(opened)
