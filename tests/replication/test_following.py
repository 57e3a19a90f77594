"""A family is followed by another machine, which takes it over with what it has in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from qserver.durability.kept import decode_outline
from qserver.durability.pinning import pin_in_log
from qserver.durability.recovery import Recovered, has_checkpoints_of
from qserver.engine.checkpointer import CheckpointPolicy
from qserver.engine.database import Database
from qserver.engine.warm_replica import WarmReplica
from qserver.errors import DatabaseMoved, LogFailed
from qserver.replication.following import FollowedFamily
from qserver.replication.memory import MemoryNodes
from tests.engine import counters
from tests.engine.fakes import Laboratory
from tests.engine.followers import ALWAYS, NEVER, contents, newest
from tests.replication.machines import Machine, all_of, records, running


@pytest.fixture
def nodes() -> MemoryNodes:
    return MemoryNodes()


@asynccontextmanager
async def owned(
    machine: Machine,
    name: str = "a",
    policy: CheckpointPolicy = ALWAYS,
    followed: Recovered | None = None,
) -> AsyncIterator[Database]:
    """A database that a machine owns, during the block."""
    async with machine.logs.open(name) as log, trio.open_nursery() as nursery:
        database = Database(log, Laboratory(), name=name, policy=policy, followed=followed)
        await nursery.start(database.run)
        yield database
        await database.close()
        nursery.cancel_scope.cancel()


class Follower:
    """A database that a machine follows, as `control.nodes.replicas` hosts it."""

    def __init__(self, machine: Machine, name: str = "a", policy: CheckpointPolicy = ALWAYS):
        self.machine = machine
        self.name = name
        self.policy = policy
        self.asked_to_end = trio.Event()
        self.replica: WarmReplica
        self.family: FollowedFamily
        self.handed: Recovered | None = None

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        async with self.machine.logs.follow(self.name, self.asked_to_end.set) as (family, log):
            self.family = family
            self.replica = replica = WarmReplica(
                log, Laboratory(), name=self.name, policy=self.policy
            )
            async with trio.open_nursery() as nursery:
                nursery.start_soon(replica.run)
                await family.begin(self.name, replica.begin)
                task_status.started()
                await self.asked_to_end.wait()
                family.ended(self.name)
                replica.hand_over()
            self.handed = replica.handed_over()

    async def has(self, version: int) -> None:
        self.family.look()
        with trio.fail_after(60):
            await self.replica.wait_durable_snapshot(version=version)


@asynccontextmanager
async def following(machine: Machine, *names: str) -> AsyncIterator[list[Follower]]:
    async with trio.open_nursery() as nursery:
        followers = [Follower(machine, name) for name in names]
        for each in followers:
            await nursery.start(each.run)
        yield followers
        for each in followers:
            each.asked_to_end.set()


async def grow(database: Database, times: int) -> int:
    for _ in range(times):
        await database.transact(counters.increment(0, 3))
    return newest(database).version


@pytest.mark.parametrize("policy", [ALWAYS, NEVER])
async def test_who_follows_takes_over_with_what_it_has_in_memory(
    nodes: MemoryNodes, policy: CheckpointPolicy, autojump_clock: MockClock
) -> None:
    one, two = Machine("one", nodes), Machine("two", nodes)
    async with running(one, two), trio.open_nursery() as nursery:
        async with owned(one) as database:
            await database.transact(counters.create(5000))
            follower = Follower(two, policy=policy)
            await nursery.start(follower.run)
            await follower.has(await grow(database, 5))
            assert contents(newest(follower.replica)) == contents(newest(database))
            # What the follower has not read yet:
            before = await grow(database, 3)
            expected = contents(newest(database))
        async with two.logs.open("a"):
            assert follower.asked_to_end.is_set(), "the family is followed or owned"
        known = follower.handed
        assert known is not None and known.snapshot.version <= before
        loads = known.saved.store.loads
        async with two.logs.open("a") as log:
            assert await has_checkpoints_of(log, known.saved)
        async with owned(two, policy=policy, followed=known) as database:
            assert database.pages is known.saved.store
            assert contents(newest(database)) == expected
            assert database.pages.loads == loads, "no page was read again"
            assert await grow(database, 5) == before + 5
            expected = contents(newest(database))
        async with owned(two) as database:
            assert contents(newest(database)) == expected, "its file says the same"
        async with owned(one) as database:
            assert contents(newest(database)) == expected


async def test_what_is_handed_over_is_not_used_if_the_file_has_other_checkpoints(
    nodes: MemoryNodes, autojump_clock: MockClock
) -> None:
    one, two = Machine("one", nodes), Machine("two", nodes)
    async with running(one, two), trio.open_nursery() as nursery:
        async with owned(one) as database:
            await database.transact(counters.create(500))
            follower = Follower(two)
            await nursery.start(follower.run)
            version = await grow(database, 5)
            await follower.has(version)
            expected = contents(newest(database))
        await two.logs.followed.end("a")
        await trio.testing.wait_all_tasks_blocked()
        async with two.logs.open("a") as log:
            assert await pin_in_log(log, "somebody", version) is not None
        async with owned(two, followed=follower.handed) as database:
            assert contents(newest(database)) == expected
            await grow(database, 3)
            await database.checkpoint()
            assert await _pins(two, "a") == {"somebody"}, "its pin was seen, and is kept"


async def test_a_branch_is_made_and_removed_while_its_parent_is_followed(
    nodes: MemoryNodes, autojump_clock: MockClock
) -> None:
    one, two = Machine("one", nodes), Machine("two", nodes)
    one.roots = two.roots = {"b": "a"}
    async with running(one, two):
        async with owned(one) as database:
            await database.transact(counters.create(300))
            version = await grow(database, 2)
            async with following(two, "a") as [parent]:
                await parent.has(version)
                kept = await database.pin_checkpoint("b", version)
                assert kept is not None
                await one.logs.branch("b", "a", database.log, kept, version)
                async with owned(one, "b") as branch, following(two, "b") as [second]:
                    await second.has(await grow(branch, 4))
                    assert contents(newest(second.replica)) == contents(newest(branch))
                    await parent.has(await grow(database, 4))
                    assert await _pins(two, "a") == {"b"}
                    await second.has(await grow(branch, 1))
                async with following(two, "b") as [second]:
                    await one.logs.remove("b")
                    await database.unpin_checkpoint("b")
                    await parent.has(await grow(database, 2))
                    assert second.asked_to_end.is_set()
                assert not await two.files.has_file("b")
                assert await _pins(two, "a") == set()
                last = contents(newest(database))
                assert contents(newest(parent.replica)) == last
        async with owned(two, followed=parent.handed) as database:
            assert contents(newest(database)) == last


async def _pins(machine: Machine, name: str) -> set[str]:
    async with machine.logs.copies.hold(name) as own:
        outlines = [decode_outline(*each) for each in await own.load_outlines()]
    return {name for each in outlines for name in each.names}


async def test_a_purged_stream_is_followed_anew_from_the_base(
    nodes: MemoryNodes, autojump_clock: MockClock
) -> None:
    one, two = Machine("one", nodes), Machine("two", nodes)
    async with running(one, two), one.logs.open("a") as log:
        await log.append(records(1, 5))
        async with two.logs.follow("a", lambda: None):
            pass
        await log.append(records(6, 9))
        await one.logs.make_base("a")
        await log.append(records(10, 12))
        async with two.logs.follow("a", lambda: None) as (_, copy):
            assert (await all_of(copy))[-1] == (12, b"12")
        ended = trio.Event()
        async with two.logs.follow("a", ended.set) as (family, _):
            stream = await nodes.find_stream("a")
            assert stream is not None
            await log.append(records(13, 13))
            await log.append(records(14, 14))
            await stream.purge((await stream.bounds()).last)
            await log.append(records(15, 15))
            family.look((await stream.bounds()).last)
            with trio.fail_after(10):
                await ended.wait()
        assert two.reports, "it says that it begins anew"


async def test_a_family_is_not_followed_where_it_is_owned(
    nodes: MemoryNodes, autojump_clock: MockClock
) -> None:
    one = Machine("one", nodes)
    async with running(one):
        with pytest.raises(LogFailed, match="no stream"):
            async with one.logs.follow("a", lambda: None):
                pass
        async with one.logs.open("a"):
            with pytest.raises(DatabaseMoved):
                async with one.logs.follow("a", lambda: None):
                    pass


async def test_a_hint_lets_a_follower_read_on_at_once(
    nodes: MemoryNodes, autojump_clock: MockClock
) -> None:
    one, two = Machine("one", nodes), Machine("two", nodes)
    heard: list[tuple[str, int]] = []
    one.logs.appended = lambda root, sequence: heard.append((root, sequence))
    async with running(one, two), one.logs.open("a") as log:
        await log.append(records(1, 3))
        assert [*dict.fromkeys(heard)] == [("a", 1), ("a", 2)], "a claim, and records"
        async with two.logs.follow("a", lambda: None) as (_, copy):
            await log.append(records(4, 4))
            two.logs.followed.look(*heard[-1])
            await trio.sleep(0.01)
            assert await copy.read(3, 1), "the hint, not the next look"


async def test_nobody_reads_on_behind_one_that_was_cut_short(
    nodes: MemoryNodes, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What that one has read and not written would be missing in the files."""

    async def fail(wholes: object) -> None:
        raise LogFailed("the file cannot be written")

    one, two = Machine("one", nodes), Machine("two", nodes)
    async with running(one, two), one.logs.open("a") as log:
        await log.append(records(1, 1))
        async with two.logs.follow("a", lambda: None) as (family, _):
            monkeypatch.setattr(family._catch_up, "apply", fail)
            await log.append(records(2, 3))
            with pytest.raises(LogFailed, match="cannot be written"):
                await family.read_on()
            monkeypatch.undo()
            await log.append(records(4, 5))
            with pytest.raises(LogFailed, match="followed anew"):
                await family.read_on()


async def test_a_position_is_kept_of_what_was_followed(
    nodes: MemoryNodes, autojump_clock: MockClock
) -> None:
    one, two = Machine("one", nodes), Machine("two", nodes)
    async with running(one, two), one.logs.open("a") as log:
        await log.append(records(1, 3))
        async with two.logs.follow("a", lambda: None):
            pass
        position = await two.logs._position("a")
        assert (position.sequence, position.versions) == (2, {"a": 3})


async def test_a_replica_that_was_handed_over_changes_no_pins_any_more(nodes: MemoryNodes) -> None:
    """The next owner's database does that; who follows the stream begins again behind it."""
    one, two = Machine("one", nodes), Machine("two", nodes)
    async with running(one, two), owned(one) as database:
        await database.transact(counters.create(10))
        version = await grow(database, 3)
        async with following(two, "a") as (follower,):
            await follower.has(version)
        assert follower.handed is not None
        with pytest.raises(LogFailed, match="handed over"):
            await follower.replica.unpin("b")
        with pytest.raises(LogFailed, match="handed over"):
            await follower.replica.pin("b", version)
