"""What several processes make of a change of `control`, and of a request for another's database."""

from __future__ import annotations

from collections.abc import Awaitable

import pytest
import trio

from qserver.control.branches import Origin
from qserver.control.owners import OwnedElsewhere
from qserver.errors import (
    AlreadyExists,
    ChangeUnconfirmed,
    DatabaseUnavailable,
    InvalidRequest,
    NotFound,
    TransactionNotFound,
)
from tests.control.machines import Member, create, grants, impatient, issue_key, machine
from tests.control.planes import until

pytestmark = pytest.mark.trio


async def test_a_database_is_made_by_the_process_of_its_name_and_found_by_all() -> None:
    async with machine() as (made, _):
        every = await grants(made)
        for number in range(9):
            name = f"d{number}"
            at = number % 3
            record = await create(made, at, every[0], name)
            for other, grant in enumerate(every):
                try:
                    (await made[other].database(grant, name)).release()
                    assert other == made.owner(record.family)
                except OwnedElsewhere as elsewhere:
                    assert elsewhere.process == made.owner(record.family) != other
        found, _ = await made[1].records.list_page(every[1])
        owners = [made.owner(each.family) for each in found if each.name != "main"]
        assert sorted(owners) == [0, 0, 0, 1, 1, 1, 2, 2, 2], "numbered names are spread evenly"


async def test_a_name_is_taken_whichever_process_is_asked() -> None:
    async with machine() as (made, _):
        every = await grants(made)
        await create(made, 0, every[0], "d")
        with pytest.raises(AlreadyExists):
            await create(made, 1, every[1], "d")


@pytest.mark.long
async def test_a_revoked_key_fails_everywhere_from_the_answer_on() -> None:
    async with machine() as (made, _):
        for number in range(60):
            by, at = number % 3, (number // 3) % 3
            key = await issue_key(made, by)
            assert (await made[at].authenticate(key.secret)).key_id == key.id
            assert made[at].grant_nowait(key.secret) is not None
            await key.revoke((by + 1) % 3)
            assert made[at].grant_nowait(key.secret) is None
            for each in range(3):
                await key.check_revoked(each)


async def test_nothing_is_answered_before_every_process_has_it() -> None:
    async with machine() as (made, start):
        key = await issue_key(made)
        await made.die(2)
        await key.check_that_revoking_waits()
        await start(2)
        await key.revoke(0)
        await key.check_revoked()


async def test_a_repeated_revocation_is_answered_when_every_process_has_the_first() -> None:
    async with machine() as (made, start):
        key = await issue_key(made)
        await made.die(2)
        for _ in range(2):
            await key.check_that_revoking_waits()
        await start(2)
        await key.revoke()
        await key.check_revoked()


async def test_others_go_on_while_the_leader_is_away_and_follow_its_successor() -> None:
    async with machine() as (made, start):
        key = await issue_key(made)
        await made.die(0)
        assert (await made[2].authenticate(key.secret)).key_id == key.id
        await start(0)
        await key.revoke()
        await key.check_revoked()


async def test_a_branch_is_made_and_deleted_where_its_parent_is() -> None:
    async with machine() as (made, _):
        every = await grants(made)
        parent = await create(made, 0, every[0], "d1")
        owner = made.owner(parent.family)
        elsewhere = (owner + 1) % 3
        names = made.logs.names()
        with pytest.raises(OwnedElsewhere):
            await made[elsewhere].records.create(every[0], "b", Origin("d1"))
        assert made.logs.names() == names, "nothing has changed"
        branch = await made[owner].records.create(every[owner], "b", Origin("d1"))
        assert branch.family == parent.family
        twig = await made[owner].records.create(every[owner], "c", Origin("b"))
        assert twig.family == parent.family
        records, grant = made[elsewhere].records, every[elsewhere]
        changes: list[Awaitable[object]] = [
            records.delete(grant, "b"),
            records.rename(grant, "b", "x"),
            records.keep(grant, "b"),
            records.keep_history(grant, "b", 7.0),
        ]
        for change in changes:
            with pytest.raises(OwnedElsewhere) as raised:
                await change
            assert raised.value.process == owner
        await made[owner].records.delete(every[owner], "c")
        with pytest.raises(NotFound):
            await made[elsewhere].database(every[elsewhere], "c")


async def test_a_name_that_has_changed_hands_meanwhile_is_looked_up_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first look finds another database of that name than the one under the lock."""
    async with machine() as (made, _):
        every = await grants(made)
        record = await create(made, 0, every[0], "d1")
        owner = made.owner(record.family)
        elsewhere = (owner + 1) % 3
        records, grant = made[elsewhere].records, every[elsewhere]

        async def was_here(*_: object) -> None:
            return None

        monkeypatch.setattr(records, "_check_here", was_here)
        changes: list[Awaitable[object]] = [
            records.create(grant, "b", Origin("d1")),
            records.delete(grant, "d1"),
            records.rename(grant, "d1", "x"),
            records.keep(grant, "d1"),
            records.keep_history(grant, "d1", 7.0),
        ]
        for change in changes:
            with pytest.raises(OwnedElsewhere) as raised:
                await change
            assert raised.value.process == owner
        (await made[owner].database(every[owner], "d1")).release()
        assert len((await made[owner].records.list_page(every[owner]))[0]) == 2


async def test_what_a_process_has_read_at_the_leader_its_own_copy_has() -> None:
    """It would look up a database, and open its file, that it knows to be deleted."""
    async with machine() as (made, _):
        every = await grants(made)
        store = made[1]._store
        before = store.version()
        async with trio.open_nursery() as nursery:
            async with store.source._copy._applying:  # type: ignore[attr-defined]
                nursery.start_soon(made[0].keys.create, every[0], "test")
                await until(lambda: made[0].version() != before)
                with trio.move_on_after(0.2) as patience:
                    await store.read("select 1")
                assert patience.cancelled_caught, "the copy is behind"
            read = await store.read("select 1")
        assert read.version == store.version() != before


async def test_what_a_process_that_was_away_has_cut_short_is_finished_soon() -> None:
    async with machine() as (made, start):
        every = await grants(made)
        for number in range(3):
            record = await create(made, 0, every[0], f"d{number}")
            if made.owner(record.family) == 1:
                break
        else:
            raise AssertionError("numbered names are spread evenly")
        await made.die(2)
        with impatient(made), pytest.raises(ChangeUnconfirmed, match="has not confirmed"):
            await made[1].records.delete(every[1], record.id)
        await start(2)
        while True:
            await trio.sleep(0.05)
            found, _ = await made[2].records.list_page(every[2])
            if record.id not in [each.id for each in found]:
                break
        assert record.id not in made.logs.names(), "the files go before the record"


async def test_one_request_may_concern_databases_of_all_processes() -> None:
    async with machine() as (made, _):
        every = await grants(made)
        for number in range(6):
            name = f"d{number}"
            record = await create(made, 0, every[0], name)
            owner = made.owner(record.family)
            with await made[owner].database(every[owner], name) as opened:
                await opened.sql.execute("create table t (id int primary key, n int)")
                await opened.sql.execute("insert into t values (1, 2), (2, 3)")
        found, _ = await made[1].records.list_page(every[1])
        facts = [(await made[1].records.find(every[1], each.id))[1] for each in found]
        assert sorted(each.rows for each in facts) == [0, 2, 2, 2, 2, 2, 2]
        texts = {"one": "select * from t where id = :id"}
        _, secret = await made[2].keys.create(
            every[2], "all", databases=[f"d{number}" for number in range(6)], statements=texts
        )
        statements = (await made[0].authenticate(secret)).statements
        assert statements is not None and "n" in statements["one"].sql
        with pytest.raises(InvalidRequest, match="not good in the database 'd"):
            await made[2].keys.create(
                every[2], "no", databases=["d0", "d1"], statements={"one": "select * from missing"}
            )
        report = await made[2].reset(every[2])
        assert (report.databases, report.tables_dropped, report.rows_deleted) == (7, 6, 12)
        overview = await made[1].organizations.overview(every[1])
        assert overview.use.databases == 7 and overview.use.stored_bytes > 0


@pytest.mark.half
async def test_signups_are_counted_by_one_process_and_their_databases_spread() -> None:
    async with machine() as (made, _):
        with pytest.raises(OwnedElsewhere) as raised:
            made[1].take_signup("127.0.0.1")
        assert raised.value.process == 0
        made[0].take_signup("127.0.0.1")
        owners = set()
        for number in range(40):
            _, database, _, secret = await made[0].organizations.signup(f"acme{number}")
            owners.add(made.owner(database.family))
            assert (await made[2].authenticate(secret)).organization == f"acme{number}"
        assert owners == {0, 1, 2}


async def test_an_open_transaction_is_looked_for_at_its_owner() -> None:
    async with machine() as (made, _):
        every = await grants(made)
        record = await create(made, 0, every[0], "d1")
        owner = made.owner(record.family)
        elsewhere = (owner + 1) % 3
        with await made[owner].database(every[owner], "d1") as opened:
            transaction = await opened.sql.open(False, 1000)
            opened.users += 1
            held = made[owner].open_transactions.hold(every[owner], opened, transaction)
        with pytest.raises(OwnedElsewhere):
            await made[elsewhere].find_elsewhere(every[elsewhere], held.id)
        with pytest.raises(TransactionNotFound):
            await made[owner].find_elsewhere(every[owner], held.id)
        with pytest.raises(TransactionNotFound):
            await made[elsewhere].find_elsewhere(every[elsewhere], "txn_nonsense")
        key, secret = await made[elsewhere].keys.create(every[elsewhere], "test")
        assert made[owner].open_transactions.find(every[owner], held.id) is held
        made[owner].open_transactions.finish(held, "rolled_back")
        with await made[owner].database(every[owner], "d1") as opened:
            grant = await made[owner].authenticate(secret)
            transaction = await opened.sql.open(False, 1000)
            opened.users += 1
            made[owner].open_transactions.hold(grant, opened, transaction)
        await made[elsewhere].keys.revoke(every[elsewhere], key.id)
        registry = made[owner].open_transactions
        await until(lambda: registry.statistics().held == 0)


async def test_a_process_that_starts_does_nothing_for_others_yet() -> None:
    async with machine() as (made, _):
        starting = Member(1, 3, made.logs, made.world).owners.methods
        for method in ("open", "remove", "facts", "describe", "wipe"):
            with pytest.raises(DatabaseUnavailable, match="the process is starting"):
                starting[method]


@pytest.mark.long
async def test_a_process_that_is_away_is_named() -> None:
    async with machine() as (made, _):
        await made.die(2)
        found = await made.members[0].owners.try_all("in_use", "org", "free", None)
        assert isinstance(found[2], DatabaseUnavailable) and "process 2" in found[2].message
        assert found[0] == found[1] == [0, 0, 0, 0, 0]
