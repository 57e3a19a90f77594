"""Replicas: other processes answer reads of a database, as new as at its owner."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import pytest
import trio

from qserver.control.branches import Origin
from qserver.control.databases import OpenDatabase
from qserver.control.owners import OwnedElsewhere, Owners
from qserver.control.records import DatabaseRecord, Grant
from qserver.engine.freshness import STRONG, Freshness
from qserver.engine.replica import Replica
from qserver.errors import DatabaseDropped, InvalidRequest, NotFound, ReadOnlyTransaction
from qserver.query.sql_database import Statement
from tests.control.machines import Machine, create, grants, machine
from tests.patience import PATIENCE_SECONDS
from tests.processes.machine import until


class Stage:
    """A machine with a database that others may follow."""

    def __init__(self, made: Machine, every: list[Grant], record: DatabaseRecord) -> None:
        self.made = made
        self.every = every
        self.record = record
        self.owner = made.owner(record.family)
        others = [each for each in range(made.count) if each != self.owner]
        self.followers = [
            each for each in others if made.members[each].owners.follows(record.family, 1)
        ]
        self.rest = [each for each in others if each not in self.followers]

    async def write(self, sql: str) -> int:
        with await self.made[self.owner].database(self.every[self.owner], "d") as opened:
            return (await opened.sql.transaction([Statement(sql)])).version

    async def try_read(self, at: int, name: str = "d", deadline: float = 1e9) -> OpenDatabase:
        return await self.made[at].database_to_read(self.every[at], name, deadline)

    async def read(self, at: int, sql: str, name: str = "d") -> Any:
        """Read from a replica, as soon as there is one."""
        with await self.replica(at, name) as opened:
            return (await opened.sql.execute(sql)).rows

    async def replica(self, at: int, name: str = "d") -> OpenDatabase:
        with trio.fail_after(PATIENCE_SECONDS):
            while True:
                try:
                    return await self.try_read(at, name)
                except OwnedElsewhere as elsewhere:
                    assert elsewhere.process == self.owner and elsewhere.visits > 4
                    await trio.sleep(0.01)

    async def until_none(self, at: int) -> None:
        replicas = self.made[at].replicas
        assert replicas is not None
        await until(lambda: not (replicas.all_open() or replicas._closing), "it does not end")


async def _stage(made: Machine, every: list[Grant]) -> Stage:
    """Make databases, until the leader has nothing to do with one."""
    for number in count():
        stage = Stage(made, every, await create(made, 0, every[0], f"d{number}"))
        if stage.rest == [0]:
            return stage
    raise AssertionError


@asynccontextmanager
async def staged(replicas: int | None = 1) -> AsyncIterator[tuple[Stage, Any]]:
    async with machine() as (made, start):
        every = await grants(made)
        stage = await _stage(made, every)
        owner = made[stage.owner]
        await owner.records.rename(every[stage.owner], stage.record.id, "d")
        await owner.records.set_replicas(every[stage.owner], "d", replicas)
        await stage.write("create table t (id int primary key, a int)")
        yield stage, start


def test_followers_come_behind_the_owner_and_are_no_more_than_wanted() -> None:
    for family in map(str, range(20)):
        members = [Owners(each, 4, replicas=2) for each in range(4)]
        owner = members[0].owner_of(family)
        for wanted in range(5):
            follow = [each.process for each in members if each.follows(family, wanted)]
            assert len(follow) == min(wanted, 3) and owner not in follow
        more, fewer = ({e.process for e in members if e.follows(family, n)} for n in (2, 1))
        assert fewer < more, "one more moves nobody"
        assert len([each for each in members if each.follows(family, None)]) == 2
    assert not Owners(0, 1, replicas=3).follows("f", 2), "one process follows nobody"


async def test_a_follower_answers_reads_and_sees_each_answered_write() -> None:
    async with staged() as (stage, _):
        (follower,) = stage.followers
        for number in range(100):
            await stage.write(f"insert into t values ({number}, {number})")
            rows = await stage.read(follower, "select count(*) from t")
            assert rows == [(number + 1,)]
        with await stage.replica(follower) as opened:
            assert isinstance(opened.readable, Replica) and opened.owner == stage.owner
            with pytest.raises(ReadOnlyTransaction):
                await opened.sql.execute("insert into t values (1000, 1)")


async def test_other_processes_and_databases_without_replicas_are_read_at_the_owner() -> None:
    async with staged() as (stage, _):
        for at in stage.rest:
            with pytest.raises(OwnedElsewhere) as elsewhere:
                await stage.try_read(at)
            assert (elsewhere.value.followed, elsewhere.value.visits) == (None, 0)
        for follower in stage.followers:
            with pytest.raises(OwnedElsewhere) as elsewhere:
                await stage.made[follower].database(stage.every[follower], "d")
            assert elsewhere.value.followed == stage.record.id


async def test_a_follower_that_is_behind_waits_and_then_the_owner_answers() -> None:
    async with staged() as (stage, _):
        (follower,) = stage.followers
        await stage.read(follower, "select 1")
        announce = stage.made.versions.of_owner(stage.owner).find(stage.record.id)
        assert announce is not None
        version = await stage.write("insert into t values (0, 0)")
        await stage.read(follower, "select 1")
        announce(version + 1)  # it is durable at the owner, and on its way
        with pytest.raises(OwnedElsewhere):
            await stage.try_read(follower, deadline=trio.current_time() + 0.05)
        assert await stage.write("insert into t values (1, 1)") == version + 1
        assert await stage.read(follower, "select id from t") == [(0,), (1,)]


async def test_who_takes_what_is_near_does_not_wait_for_what_is_newer() -> None:
    async with staged() as (stage, _):
        (follower,) = stage.followers
        version = await stage.write("insert into t values (0, 0)")
        await stage.read(follower, "select 1")
        announce = stage.made.versions.of_owner(stage.owner).find(stage.record.id)
        assert announce is not None
        plane, elsewhere = stage.made[follower], OwnedElsewhere(stage.owner, stage.record.id)

        def is_read(freshness: Freshness) -> bool:
            opened = plane.replica_nowait(elsewhere, freshness)
            if opened is not None:
                opened.release()
            return opened is not None

        near, later = Freshness(version, replica=True), Freshness(version + 1, replica=True)
        assert is_read(STRONG) and is_read(near) and is_read(Freshness(0, True, 0))
        announce(version + 1)  # it is durable at the owner, and on its way
        assert is_read(near) and is_read(Freshness(0, replica=True))
        assert not is_read(STRONG) and not is_read(later), "it lacks that"
        assert not is_read(Freshness(version, True, 1000)), "how old it is, nobody knows"
        assert await stage.write("insert into t values (1, 1)") == version + 1
        assert await stage.read(follower, "select id from t") == [(0,), (1,)]
        assert is_read(later) and is_read(STRONG)


async def test_reads_go_on_while_the_owner_is_dead_and_its_successor_goes_on() -> None:
    async with staged() as (stage, start):
        (follower,) = stage.followers
        await stage.write("insert into t values (1, 1)")
        await stage.read(follower, "select 1")
        await stage.made.die(stage.owner)
        assert await stage.read(follower, "select id from t") == [(1,)]
        await start(stage.owner)
        stage.every = await grants(stage.made)
        for number in range(2, 30):
            await stage.write(f"insert into t values ({number}, 1)")
            assert len(await stage.read(follower, "select id from t")) == number
        replica = stage.made[follower].replicas
        assert replica is not None and replica.replica_statistics()[0].records > 20


async def test_a_follower_that_was_killed_begins_anew() -> None:
    async with staged() as (stage, start):
        (follower,) = stage.followers
        await stage.read(follower, "select 1")
        await stage.made.die(follower)
        await stage.write("insert into t values (1, 1)")
        await start(follower)
        stage.every = await grants(stage.made)
        assert await stage.read(follower, "select id from t") == [(1,)]


async def test_a_branch_has_replicas_of_its_own() -> None:
    async with staged() as (stage, _):
        (follower,) = stage.followers
        owner, grant = stage.made[stage.owner], stage.every[stage.owner]
        await stage.write("insert into t values (1, 1)")
        await owner.records.create(grant, "b", Origin("d"))
        with pytest.raises(OwnedElsewhere) as elsewhere:
            await stage.try_read(follower, "b")
        assert elsewhere.value.followed is None, "as the service has it"
        await owner.records.set_replicas(grant, "b", 1)
        await stage.write("insert into t values (2, 1)")
        assert await stage.read(follower, "select id from t", "b") == [(1,)]
        assert await stage.read(follower, "select id from t") == [(1,), (2,)]
        await owner.records.delete(grant, "b")
        with pytest.raises(NotFound):
            await stage.try_read(follower, "b")
        assert len(await stage.read(follower, "select id from t")) == 2


async def test_a_deleted_database_is_gone_at_once_and_its_replica_soon() -> None:
    async with staged() as (stage, _):
        (follower,) = stage.followers
        opened = await stage.replica(follower)
        owner = stage.made[stage.owner]
        await owner.records.delete(stage.every[stage.owner], "d")
        with pytest.raises(NotFound):
            await stage.try_read(follower)
        await until(lambda: opened.is_closing, "it does not end")
        with pytest.raises(DatabaseDropped):
            opened.check_open()
        opened.release()
        await stage.until_none(follower)


async def test_replicas_come_and_go_with_their_number_and_live_through_a_new_name() -> None:
    async with staged() as (stage, _):
        (follower,) = stage.followers
        await stage.read(follower, "select 1")
        owner, grant = stage.made[stage.owner], stage.every[stage.owner]
        await owner.records.rename(grant, "d", "e")
        with await stage.replica(follower, "e") as opened:
            assert opened.name == "e"
        await owner.records.set_replicas(grant, "e", 0)
        with pytest.raises(OwnedElsewhere) as elsewhere:
            await stage.try_read(follower, "e")
        assert elsewhere.value.followed is None
        await stage.until_none(follower)
        await owner.records.set_replicas(grant, "e", None)
        with pytest.raises(InvalidRequest, match="from 0 to 63"):
            await owner.records.set_replicas(grant, "e", 64)
        await owner.records.set_replicas(grant, "e", 2)
        for at in (*stage.followers, *stage.rest):
            assert await stage.read(at, "select count(*) from t", "e") == [(0,)]


async def test_a_disk_that_is_full_has_no_room_for_replicas() -> None:
    async with staged() as (stage, _):
        (follower,) = stage.followers
        await stage.read(follower, "select 1")
        replicas = stage.made[follower].replicas
        assert replicas is not None
        replicas.has_room = lambda: False
        await stage.until_none(follower)
        with pytest.raises(OwnedElsewhere):
            await stage.try_read(follower)
        assert repr(replicas) == "0 replicas, 0 begin"
