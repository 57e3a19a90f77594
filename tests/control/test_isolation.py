"""An organization finds nothing of another, by any method, and cannot tell that it exists."""

from __future__ import annotations

from operator import attrgetter

import pytest

from qserver.errors import NotFound, QserverError, UndefinedTable
from tests.control.planes import Opened, opened_plane, outcome_of


async def refused(opened: Opened, method: str, theirs: str, nobodys: str, *rest: str) -> None:
    """The same error, but for the name, for what is another's and for what is not there."""
    call = attrgetter(method)(opened.plane)
    stranger = await opened.stranger("stranger")
    errors: list[QserverError] = []
    for wanted in (theirs, nobodys):
        error = await outcome_of(call(stranger, wanted, *rest))
        assert isinstance(error, NotFound), error
        errors.append(error)
    one, other = (f"{each.message} {each.detail} {each.hint}" for each in errors)
    assert one.replace(theirs, "X") == other.replace(nobodys, "X")


@pytest.mark.parametrize(
    ("method", "rest"),
    [
        ("database", ()),
        ("records.find", ()),
        ("records.rename", ("other",)),
        ("records.delete", ()),
        ("sessions.create", ()),
    ],
)
@pytest.mark.parametrize("by", ["name", "id"])
async def test_databases_of_another_are_not_found(
    method: str, rest: tuple[str, ...], by: str
) -> None:
    async with opened_plane() as opened:
        record = await opened.plane.records.create(opened.grant, "shop")
        await opened.run(opened.grant, "create table t (id integer primary key)", "shop")
        if by == "name":
            await refused(opened, method, "shop", "none", *rest)
        else:
            await refused(opened, method, record.id, "db_" + "0" * 22, *rest)
        assert await opened.run(opened.grant, "select * from t", "shop") == []


@pytest.mark.parametrize("method", ["keys.find", "keys.change", "keys.revoke", "keys.rotate"])
async def test_keys_of_another_are_not_found(method: str) -> None:
    async with opened_plane() as opened:
        record, secret = await opened.plane.keys.create(opened.grant, "k", ["data:read"])
        await refused(opened, method, record.id, "key_" + "0" * 22)
        assert (await opened.plane.authenticate(secret)).key_id == record.id


async def test_databases_known_to_one_are_not_given_to_another_without_waiting() -> None:
    async with opened_plane() as opened:
        stranger = await opened.stranger()
        with await opened.plane.database(opened.grant, "main") as database:
            assert opened.plane.database_nowait(opened.grant, database.id) is None
            (await opened.plane.database(opened.grant, database.id)).release()
            assert opened.plane.database_nowait(stranger, database.id) is None
            with await opened.plane.database(stranger, "main") as theirs:
                assert theirs.id != database.id


async def test_lists_show_only_ones_own() -> None:
    async with opened_plane() as opened:
        await opened.plane.records.create(opened.grant, "shop")
        await opened.limited("data:read")
        stranger = await opened.stranger()
        (database,), _ = await opened.plane.records.list_page(stranger)
        assert (database.organization_id, database.name) == (stranger.organization_id, "main")
        (key,), _ = await opened.plane.keys.list_page(stranger)
        assert key.id == stranger.key_id
        use = (await opened.plane.organizations.overview(stranger)).use
        assert (use.databases, use.keys, use.sessions) == (1, 1, 0)


async def test_a_key_cannot_be_limited_to_databases_of_another() -> None:
    async with opened_plane() as opened:
        record = await opened.plane.records.create(opened.grant, "shop")
        stranger = await opened.stranger()
        for wanted in ("shop", record.id):
            with pytest.raises(NotFound):
                await opened.plane.keys.create(stranger, "k", None, [wanted])
            with pytest.raises(NotFound):
                await opened.plane.keys.change(stranger, stranger.key_id, databases=[wanted])


async def test_the_same_name_is_free_in_every_organization() -> None:
    async with opened_plane() as opened:
        stranger = await opened.stranger()
        mine = await opened.plane.records.create(opened.grant, "shop")
        theirs = await opened.plane.records.create(stranger, "shop")
        await opened.run(opened.grant, "create table t (id integer primary key)", "shop")
        with pytest.raises(UndefinedTable):
            await opened.run(stranger, "select * from t", "shop")
        await opened.plane.records.delete(stranger, "shop")
        assert mine.id != theirs.id
        assert await opened.run(opened.grant, "select * from t", "shop") == []


async def test_a_cursor_of_another_shows_nothing_of_theirs() -> None:
    async with opened_plane() as opened:
        for number in range(3):
            await opened.plane.records.create(opened.grant, f"d{number}")
        stranger = await opened.stranger()
        _, cursor = await opened.plane.records.list_page(opened.grant, None, 1)
        records, _ = await opened.plane.records.list_page(stranger, cursor, 1)
        assert all(each.organization_id == stranger.organization_id for each in records)


async def test_a_reset_leaves_other_organizations_alone() -> None:
    async with opened_plane() as opened:
        stranger = await opened.stranger()
        for grant in (opened.grant, stranger):
            await opened.run(grant, "create table t (id integer primary key)")
        assert (await opened.plane.reset(stranger)).tables_dropped == 1
        assert await opened.run(opened.grant, "select * from t") == []


async def test_the_control_database_is_nobodys() -> None:
    async with opened_plane() as opened:
        with pytest.raises(NotFound):
            await opened.plane.database(opened.grant, "control")
        await opened.plane.records.create(opened.grant, "control")
        with pytest.raises(UndefinedTable):
            await opened.run(opened.grant, "select * from keys", "control")
