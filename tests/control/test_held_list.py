"""Open transactions of all keys: listed and ended by admins, in whichever process they are."""

from __future__ import annotations

import pytest

from qserver.control import ControlPlane
from qserver.control.open_transactions import Held
from qserver.control.records import Grant
from qserver.errors import DatabaseUnavailable, Forbidden, TransactionNotFound
from tests.control.machines import Machine, create, grants, machine
from tests.control.planes import opened_plane


async def hold(plane: ControlPlane, grant: Grant, name: str | None = None) -> Held:
    with await plane.database(grant, name) as opened:
        opened.users += 1
        return plane.open_transactions.hold(grant, opened, await opened.sql.open(False, 1000))


async def test_an_admin_sees_and_ends_transactions_of_all_keys() -> None:
    async with opened_plane() as opened:
        plane = opened.plane
        writer = await opened.limited("data:write", "data:read")
        held = await hold(plane, writer)
        (found,) = await plane.held_list.every(opened.grant)
        assert (found.id, found.key_id, found.session_id) == (held.id, writer.key_id, None)
        assert (found.database, found.state, found.is_used) == ("main", "active", False)
        assert found.created_at == opened.world.time < found.expires_at
        assert held.use_nowait()
        assert (await plane.held_list.every(opened.grant))[0].is_used
        await plane.held_list.end(opened.grant, held.id)
        assert await plane.held_list.every(opened.grant) == [], "it ends after this use"
        assert plane.open_transactions.statistics().held == 1
        held.release()
        assert plane.open_transactions.statistics().ended["rolled_back"] == 1
        with pytest.raises(TransactionNotFound):
            await plane.held_list.end(opened.grant, held.id)


async def test_others_see_none_of_them() -> None:
    async with opened_plane() as opened:
        plane = opened.plane
        await plane.records.create(opened.grant, "shop")
        held = await hold(plane, opened.grant)
        stranger = await opened.stranger()
        assert await plane.held_list.every(stranger) == []
        with pytest.raises(TransactionNotFound):
            await plane.held_list.end(stranger, held.id)
        limited = await opened.limited("admin", databases=["shop"])
        assert await plane.held_list.every(limited) == []
        with pytest.raises(TransactionNotFound):
            await plane.held_list.end(limited, held.id)
        weak = await opened.limited("keys", "data:read", "data:write")
        with pytest.raises(Forbidden, match="the scope admin"):
            await plane.held_list.every(weak)
        with pytest.raises(Forbidden, match="the scope admin"):
            await plane.held_list.end(weak, held.id)
        assert [each.id for each in await plane.held_list.every(opened.grant)] == [held.id]


async def test_any_process_lists_and_ends_those_of_all() -> None:
    async with machine() as (made, _):
        every = await grants(made)
        wanted = [await _held_by_owner(made, every, f"d{number}") for number in range(6)]
        for at in range(3):
            found = await made[at].held_list.every(every[at])
            assert [each.id for each in found] == wanted
        for at, name in enumerate(wanted):
            await made[at % 3].held_list.end(every[at % 3], name)
        assert await made[0].held_list.every(every[0]) == []
        assert all(made[at].open_transactions.statistics().held == 0 for at in range(3))


async def test_a_process_that_is_away_may_hold_the_one_that_is_wanted() -> None:
    async with machine() as (made, start):
        every = await grants(made)
        await made.die(2)
        with pytest.raises(DatabaseUnavailable, match="process 2"):
            await made[0].held_list.every(every[0])
        with pytest.raises(DatabaseUnavailable, match="process 2"):
            await made[0].held_list.end(every[0], "txn_nonsense")
        await start(2)
        with pytest.raises(TransactionNotFound):
            await made[0].held_list.end(every[0], "txn_nonsense")


async def _held_by_owner(made: Machine, every: list[Grant], name: str) -> str:
    made.world.time += 1
    owner = made.owner((await create(made, 0, every[0], name)).family)
    return (await hold(made[owner], every[owner], name)).id
